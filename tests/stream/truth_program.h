// tests/stream/truth_program.h: a random program of uploads, copies, kernels, events, frees and downloads over three chips
// of two makers, whose result is known at every moment.
//
// Each buffer belongs to a stream, holds one value in all of its bytes, and has canaries before and behind. Work on another
// stream than the buffer's own is ordered by events, both ways; a buffer freed behind such work is named with used_on.
// `without` leaves one mechanism out, to prove that the program notices: then step() must report a wrong byte sooner or later.
#pragma once

#include <flhal/op.h>
#include <flhal/ops.h>

#include <cstring>
#include <random>

#include "core/event.h"
#include "stream/level.h"

namespace flhal::test {

enum class Without { kNothing, kWaits, kUsedOn, kOwnSource, kDownloadWait };

class TruthProgram {
 public:
  TruthProgram(uint64_t seed, Without without) : random_(seed), without_(without) {
    for (const char* name : {"chip_a", "chip_b", "ram"})
      for (int i = 0; i < 2; ++i) streams_.push_back(*make_stream(chip(name), 0));
    for (size_t i = 0; i < 12; ++i) buffers_.push_back(make(streams_[i % streams_.size()]));
  }
  ~TruthProgram() {
    for (Stream* s : streams_) (void)s->synchronize();
    for (Buffer& b : buffers_) (void)pool_free(b.block);
    for (Stream* s : streams_) {
      s->clear_error();
      (void)release_stream(s);
    }
  }
  TruthProgram(const TruthProgram&) = delete;

  // One random piece of work. `wrong` names what was found wrong, "" so far.
  void step() {
    ++steps;
    Buffer& b = any();
    switch (random_() % 8) {
      case 0: return fill(b);
      case 1: return upload(b);
      case 2: return upload_pinned(b);
      case 3: return download(b);
      case 4: return copy(b, any());
      case 5: return add(b);
      case 6: return read_aside_and_free(b);
      default: return check(b);
    }
  }
  void check_all() {
    for (Buffer& b : buffers_) check(b);
  }

  std::string wrong;
  uint64_t steps = 0;

 private:
  static constexpr uint64_t kGuard = 256;
  static constexpr uint8_t kCanary = 0xa5;
  struct Buffer {
    Stream* home = nullptr;
    uint64_t block = 0, bytes = 0;
    uint8_t value = 0;
    uint64_t at() const { return block + kGuard; }
  };

  void must(Status status, const char* what) {
    if (!status.ok() && wrong.empty()) wrong = fmt::format("{}: {}", what, last_error_text());
  }
  Buffer& any() { return buffers_[random_() % buffers_.size()]; }
  Stream* beside(Stream* home) {                 // the other stream of the same chip
    for (Stream* s : streams_)
      if (s != home && s->device == home->device) return s;
    return home;
  }
  uint8_t some_value() { return uint8_t(random_() % 100); }

  Buffer make(Stream* home) {
    static constexpr uint64_t kSizes[] = {512, 4096, 40000, 400000};
    Buffer b;
    b.home = home;
    b.bytes = kSizes[random_() % 4];
    auto got = pool_allocate(home, b.bytes + 2 * kGuard);
    must(got.status(), "alloc");
    b.block = got.ok() ? *got : 0;
    must(fill_bytes(home, b.block, kGuard, &kCanary, 1), "canary");
    must(fill_bytes(home, b.at() + b.bytes, kGuard, &kCanary, 1), "canary");
    fill(b);
    return b;
  }

  // Later work of `later` comes after all work of `earlier` so far.
  void order(Stream* earlier, Stream* later) {
    if (earlier == later || without_ == Without::kWaits) return;
    Event event(0);
    must(event.record(earlier), "record");
    must(event.wait(later), "wait");
  }

  void fill(Buffer& b) {
    b.value = some_value();
    must(fill_bytes(b.home, b.at(), b.bytes, &b.value, 1), "fill");
  }

  void upload(Buffer& b) {                       // the pageable source is gone when the call has returned
    b.value = some_value();
    std::vector<uint8_t> source(b.bytes, b.value);
    must(copy_bytes(b.home, b.at(), number(source.data()), b.bytes, FLHAL_COPY_MAY_RETURN_EARLY), "upload");
    std::memset(source.data(), 0xee, source.size());
  }

  void upload_pinned(Buffer& b) {                // given back at once; the next one who gets it writes over it
    b.value = some_value();
    auto pinned = pinned_alloc(b.home->device, b.bytes);
    must(pinned.status(), "pinned");
    if (!pinned.ok()) return;
    std::memset(*pinned, b.value, b.bytes);
    must(copy_bytes(b.home, b.at(), number(*pinned), b.bytes, FLHAL_COPY_MAY_RETURN_EARLY), "upload");
    if (without_ == Without::kOwnSource) std::memset(*pinned, 0xee, b.bytes);   // as if core neither staged nor waited
    must(pinned_free(*pinned), "pinned free");
  }

  void download(Buffer& b) {                     // early, into pinned memory; readable after a wait
    auto pinned = pinned_alloc(b.home->device, b.bytes);
    must(pinned.status(), "pinned");
    if (!pinned.ok()) return;
    auto* bytes = static_cast<uint8_t*>(*pinned);
    std::memset(bytes, 0xdd, b.bytes);
    must(copy_bytes(b.home, number(bytes), b.at(), b.bytes, FLHAL_COPY_MAY_RETURN_EARLY), "download");
    Event event(0);
    must(event.record(b.home), "record");
    if (without_ != Without::kDownloadWait) must(event.synchronize(), "synchronize");
    compare(b, bytes, b.bytes, "download");
    must(b.home->synchronize(), "synchronize");
    must(pinned_free(bytes), "pinned free");
  }

  void copy(Buffer& to, Buffer& from) {          // within a chip on any of its streams, or between chips of any maker
    if (&to == &from) return;
    Stream* on = random_() % 2 ? to.home : beside(to.home);
    uint64_t bytes = std::min(to.bytes, from.bytes);
    order(to.home, on);
    order(from.home, on);
    if (bytes < to.bytes) must(fill_bytes(on, to.at(), to.bytes, &from.value, 1), "fill");
    must(copy_bytes(on, to.at(), from.at(), bytes, 0), "copy");
    to.value = from.value;
    order(on, to.home);
    order(on, from.home);
  }

  void add(Buffer& b) {                          // b = b + b, a kernel or the host route; small values only: bytes do not carry
    if (b.value >= 100) return fill(b);
    const int64_t sizes[1] = {int64_t(b.bytes / 4)}, strides[1] = {1};
    flhal_tensor tensors[3] = {};
    for (flhal_tensor& t : tensors) {
      t.address = b.at();
      t.sizes = sizes;
      t.strides = strides;
      t.dtype = FLHAL_I32;
      t.rank = 1;
    }
    flhal_op_call call{};
    call.struct_size = sizeof call;
    call.struct_type = FLHAL_ST_OP_CALL;
    call.op = FLHAL_OP_ADD;
    call.tensors = tensors;
    call.tensor_stride = sizeof(flhal_tensor);
    call.n_outputs = 1;
    call.n_inputs = 2;
    must(Status(flhal_op_run(handle_of(b.home), &call)), "add");
    b.value = uint8_t(b.value * 2);
  }

  void read_aside_and_free(Buffer& b) {          // another stream still reads when the block is free and written again
    Stream* aside = beside(b.home);
    Buffer* to = nullptr;
    for (Buffer& other : buffers_)
      if (&other != &b && other.home == aside && other.bytes == b.bytes) to = &other;
    if (to == nullptr) return;
    order(b.home, aside);
    for (int i = 0; i < 4; ++i) must(copy_bytes(aside, to->at(), b.at(), b.bytes, 0), "copy aside");   // it takes its time
    to->value = b.value;
    if (without_ != Without::kUsedOn) must(pool_used_on(b.block, aside), "used on");
    must(pool_free(b.block), "free");
    b = make(b.home);
  }

  void check(Buffer& b) {
    std::vector<uint8_t> bytes(b.bytes + 2 * kGuard);
    must(copy_bytes(b.home, number(bytes.data()), b.block, bytes.size(), 0), "check");
    compare(b, bytes.data() + kGuard, b.bytes, "content");
    for (uint64_t i = 0; i < kGuard; ++i)
      if ((bytes[i] != kCanary || bytes[kGuard + b.bytes + i] != kCanary) && wrong.empty())
        wrong = fmt::format("step {}: a canary of a buffer on {} was written over", steps, b.home->device->name);
  }

  void compare(const Buffer& b, const uint8_t* bytes, uint64_t n, const char* what) {
    for (uint64_t i = 0; i < n && wrong.empty(); ++i)
      if (bytes[i] != b.value)
        wrong = fmt::format("step {}: {} on {}: byte {} of {} is {}, expected {}", steps, what, b.home->device->name, i, n,
                            bytes[i], b.value);
  }

  std::mt19937_64 random_;
  const Without without_;
  std::vector<Stream*> streams_;
  std::vector<Buffer> buffers_;
};

}  // namespace flhal::test

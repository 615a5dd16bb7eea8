// src/memory/copy_engine.cc: which way a copy goes; see copy_engine.h.
//
//   within one device                 one slot call on `stream`; declined: through host memory
//   ... where a worker runs the calls of `stream`: queued like any other; what the host waits for is moved by the caller
//   host to device, pageable          staged in pinned chunks, so the call returns once the source is read
//   host to device, pinned            one slot call; waited for unless FLHAL_COPY_MAY_RETURN_EARLY
//   device to host                    one slot call; waited for unless pinned and MAY_RETURN_EARLY
//   between devices                   through host memory: either side's own when the host sees it, else two pinned chunks,
//                                     one coming down while the other goes up (bounce.h)
// Where a side lies on another device than `stream`, that device's default stream is waited for, and the copy has ended
// when the call returns.
#include "memory/copy_engine.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/worker.h"
#include "memory/bounce.h"
#include "memory/kept_ranges.h"
#include "memory/pinned.h"
#include "memory/traffic.h"

namespace flhal {

namespace {

constexpr uint32_t kChunksInFlight = 4;

struct Side {
  uint64_t address;
  Located at;                                    // slab nullptr: host memory
  Device* device() const { return at.slab ? at.slab->device : nullptr; }
  char* host() const { return reinterpret_cast<char*>(address); }
  flhal_p_place place() const {
    return at.slab ? place_of(at.slab, at.offset) : flhal_p_place{nullptr, 0, reinterpret_cast<void*>(address)};
  }
  // The bytes themselves, when the host sees them without a flush.
  char* visible() const {
    if (at.slab == nullptr) return host();
    constexpr uint64_t kBoth = FLHAL_CAP_HOST_VISIBLE | FLHAL_CAP_HOST_COHERENT;
    return at.slab->host && (at.slab->device->info.caps & kBoth) == kBoth ? at.slab->host + at.offset : nullptr;
  }
};

Status find_side(const Stream* stream, uint64_t address, uint64_t bytes, const char* operand, Side* side) {
  side->address = address;
  if (stream->kept && stream->kept->find(address, bytes, &side->at)) return FLHAL_OK;
  if (AddressMap::find(address) == nullptr) {
    if (address == 0) return fail(FLHAL_E_INVALID, "flhal_copy: {} is address 0, which is no memory (never allocated, or a storage that was resized to 0); give a device address or a host pointer", operand);
    return FLHAL_OK;
  }
  return AddressMap::locate_range(address, bytes, "flhal_copy", operand, &side->at);
}

flhal_p_copy_v1 description_of(const flhal_p_place& dst, const flhal_p_place& src, const Rect& rect) {
  flhal_p_copy_v1 copy{};
  copy.struct_size = sizeof copy;
  copy.struct_type = FLHAL_ST_COPY;
  copy.dst = dst;
  copy.src = src;
  copy.bytes = rect.bytes;
  copy.rows = rect.rows;
  copy.dst_pitch = rect.dst_pitch;
  copy.src_pitch = rect.src_pitch;
  return copy;
}

// The slot call, as the next submission; may answer kQueueInstead.
Status slot_copy(Stream* stream, const flhal_p_place& dst, const flhal_p_place& src, const Rect& rect) {
  flhal_p_copy_v1 copy = description_of(dst, src, rect);
  Device* device = stream->device;
  return stream->submit("copy", [&](flhal_p_stream* queue) { return plugin_call(device->plugin->table.copy, device->handle, queue, &copy); });
}

// The next piece of work of the stream. Host memory must outlive it.
Status submit_copy(Stream* stream, const flhal_p_place& dst, const flhal_p_place& src, const Rect& rect) {
  Status done = slot_copy(stream, dst, src, rect);
  if (done.code() != kQueueInstead) return done;
  return stream->queue(work_of("copy", [=](Stream* s) { return slot_copy(s, dst, src, rect); }));
}

// Done when it returns. A worker's stream is waited for first, then the bytes are moved here: one change of threads less.
Status copy_now(Stream* stream, const flhal_p_place& dst, const flhal_p_place& src, const Rect& rect) {
  if (stream->queues_calls()) {
    FLHAL_TRY(stream->wait_for(stream->here().sequence));
    flhal_p_copy_v1 copy = description_of(dst, src, rect);
    Device* device = stream->device;
    return stream->submit_here("copy", [&](flhal_p_stream* q) { return plugin_call(device->plugin->table.copy, device->handle, q, &copy); });
  }
  FLHAL_TRY(submit_copy(stream, dst, src, rect));
  return stream->deferred() ? stream->wait_for(stream->here().sequence) : Status();
}

flhal_p_place host_place(const void* pointer) { return {nullptr, 0, const_cast<void*>(pointer)}; }

flhal_p_place moved(flhal_p_place place, uint64_t by) {
  if (place.memory) place.offset += by;
  else place.host = static_cast<char*>(place.host) + by;
  return place;
}

void host_rows(char* dst, const char* src, const Rect& rect) {
  if (rect.dst_pitch == rect.bytes && rect.src_pitch == rect.bytes) {
    std::memcpy(dst, src, rect.bytes * rect.rows);
    return;
  }
  for (uint64_t r = 0; r < rect.rows; ++r) std::memcpy(dst + r * rect.dst_pitch, src + r * rect.src_pitch, rect.bytes);
}

Status host_to_device(Stream* stream, const Side& dst, const char* src, const Rect& rect, bool pinned, bool early) {
  if (stream->worker_idle()) return copy_now(stream, dst.place(), host_place(src), rect);   // dearer ways gain nothing
  if (pinned) {
    if (!early) return copy_now(stream, dst.place(), host_place(src), rect);
    FLHAL_TRY(submit_copy(stream, dst.place(), host_place(src), rect));
    return pinned_used_on(src, stream);
  }
  uint64_t sequences[kChunksInFlight] = {}, n = 0;
  return in_chunks(rect, kChunkBytes, [&](uint64_t row, uint64_t offset, Rect piece) -> Status {
    // At most kChunksInFlight chunks of staging: the source cannot run ahead of the chip for ever.
    uint64_t& slot = sequences[n++ % kChunksInFlight];
    if (slot) FLHAL_TRY(stream->wait_for(slot));
    FLHAL_ASSIGN(Staging staging, Staging::make(stream, piece.bytes * piece.rows));
    host_rows(staging.bytes(), src + row * rect.src_pitch + offset, Rect{piece.bytes, piece.rows, piece.bytes, rect.src_pitch});
    piece.src_pitch = piece.bytes;
    FLHAL_TRY(submit_copy(stream, moved(dst.place(), row * rect.dst_pitch + offset), host_place(staging.bytes()), piece));
    slot = stream->here().sequence;
    return FLHAL_OK;
  });
}

Status device_to_host(Stream* stream, char* dst, const Side& src, const Rect& rect, bool pinned, bool early) {
  if (!pinned || !early) return copy_now(stream, host_place(dst), src.place(), rect);   // it may be gone once we return
  FLHAL_TRY(submit_copy(stream, host_place(dst), src.place(), rect));
  return stream->deferred() ? pinned_used_on(dst, stream) : Status();
}

// What bounce() submits and waits for: downloads on one stream, uploads on another; both may be the same.
class TwoStreams {
 public:
  TwoStreams(Stream* to, const Side& dst, Stream* from, const Side& src, const Rect& rect)
      : to_(to), from_(from), dst_(dst.place()), src_(src.place()), rect_(rect), largest_(bounce_bytes(rect.bytes * rect.rows)) {}

  Status wait_free(uint64_t buffer) { return buffers_[buffer].up ? to_->wait_for(buffers_[buffer].up) : Status(); }
  Status down(uint64_t buffer, uint64_t row, uint64_t offset, const Rect& piece) {
    std::optional<Staging>& staging = buffers_[buffer].staging;
    if (!staging) {
      FLHAL_ASSIGN(Staging made, Staging::make(to_, largest_));
      staging.emplace(std::move(made));
    }
    return submit_copy(from_, host_place(staging->bytes()), moved(src_, row * rect_.src_pitch + offset),
                       Rect{piece.bytes, piece.rows, piece.bytes, rect_.src_pitch});
  }
  Status wait_down() { return from_->wait_for(from_->here().sequence); }
  Status up(uint64_t buffer, uint64_t row, uint64_t offset, const Rect& piece) {
    FLHAL_TRY(submit_copy(to_, moved(dst_, row * rect_.dst_pitch + offset), host_place(buffers_[buffer].staging->bytes()),
                          Rect{piece.bytes, piece.rows, rect_.dst_pitch, piece.bytes}));
    buffers_[buffer].up = to_->here().sequence;
    return FLHAL_OK;
  }
  Status wait_up() { return to_->wait_for(to_->here().sequence); }
  // Nothing uses the buffers any more. A failed stream counts as over for whoever waits for a point of it, though its queue may
  // still move bytes: the whole queue is waited for.
  void stop() {
    (void)to_->synchronize();
    (void)from_->synchronize();
  }

 private:
  struct Buffer {
    std::optional<Staging> staging;
    uint64_t up = 0;                             // the submission that empties it; 0: none yet
  };
  Stream *to_, *from_;
  flhal_p_place dst_, src_;
  Rect rect_;
  uint64_t largest_;
  Buffer buffers_[2];
};

// Both streams belong to the devices of their sides. Returns when the bytes are in dst.
Status across(Stream* to, const Side& dst, Stream* from, const Side& src, const Rect& rect, TrafficTimer* timer) {
  FLHAL_TRY(to->wait_for(to->here().sequence));
  FLHAL_TRY(from->wait_for(from->here().sequence));
  timer->waited();
  if (char* bytes = src.visible()) return copy_now(to, dst.place(), host_place(bytes), rect);
  if (char* bytes = dst.visible()) return copy_now(from, host_place(bytes), src.place(), rect);
  if (rect.bytes * rect.rows <= kChunkBytes) {   // one piece has nothing to overlap with
    FLHAL_ASSIGN(Staging staging, Staging::make(to, rect.bytes * rect.rows));
    FLHAL_TRY(copy_now(from, host_place(staging.bytes()), src.place(), Rect{rect.bytes, rect.rows, rect.bytes, rect.src_pitch}));
    return copy_now(to, dst.place(), host_place(staging.bytes()), Rect{rect.bytes, rect.rows, rect.dst_pitch, rect.bytes});
  }
  TwoStreams ways(to, dst, from, src, rect);
  Status done = bounce(rect, ways);
  if (done.ok()) done = ways.wait_up();
  if (done.ok()) return FLHAL_OK;
  const std::string why = last_error_text();     // the first failure is the one that explains the others
  ways.stop();
  return fail_text(done.code(), why);
}

Status within(Stream* stream, const Side& dst, const Side& src, const Rect& rect) {
  Status done = slot_copy(stream, dst.place(), src.place(), rect);
  if (done.code() == kQueueInstead)         // the other way, too, is the worker's when the plugin declines
    return stream->queue(work_of("copy", [=](Stream* s) { return within(s, dst, src, rect); }));
  if (done.code() != FLHAL_E_UNSUPPORTED && done.code() != FLHAL_DECLINED) return done;
  TrafficTimer not_between_devices(stream->device->index, stream->device->index, 0);
  return across(stream, dst, stream, src, rect, &not_between_devices);
}

Status copy_rect(Stream* stream, uint64_t dst_address, uint64_t src_address, const Rect& rect, uint32_t flags) {
  if (flags & ~FLHAL_COPY_MAY_RETURN_EARLY) {
    return fail(FLHAL_E_INVALID, "flhal_copy: flags {:#x} are not known; give 0 or FLHAL_COPY_MAY_RETURN_EARLY", flags);
  }
  if (!stream->usable()) return stream->unusable_failure("flhal_copy");
  uint64_t dst_bytes = rect.dst_span(), src_bytes = rect.src_span();
  if (dst_bytes == 0) return FLHAL_OK;   // nothing to do keeps any place
  Side dst, src;
  FLHAL_TRY(find_side(stream, dst_address, dst_bytes, "dst", &dst));
  FLHAL_TRY(find_side(stream, src_address, src_bytes, "src", &src));
  if (dst_address < src_address + src_bytes && src_address < dst_address + dst_bytes) {
    return fail(FLHAL_E_INVALID, "flhal_copy: dst range [{:#x}, {:#x}) and src range [{:#x}, {:#x}) overlap; copy through a "
                "third place", dst_address, dst_address + dst_bytes, src_address, src_address + src_bytes);
  }
  bool early = (flags & FLHAL_COPY_MAY_RETURN_EARLY) != 0;
  Device *to = dst.device(), *from = src.device(), *here = stream->device;

  if (to == nullptr && from == nullptr) {        // both on the host: in order of the stream all the same
    FLHAL_TRY(stream->wait_for(stream->here().sequence));
    host_rows(dst.host(), src.host(), rect);
    return FLHAL_OK;
  }
  if (to && from) {
    // A slab of another device is not a legal place, also within one plugin: direct ways between chips are a later table.
    if (to == here && from == here) return within(stream, dst, src, rect);
    FLHAL_TRY(to->open());
    FLHAL_TRY(from->open());
    if (to != here && from != here) FLHAL_TRY(stream->wait_for(stream->here().sequence));
    TrafficTimer timer(from->index, to->index, rect.bytes * rect.rows);
    FLHAL_TRY(across(to == here ? stream : to->default_stream, dst, from == here ? stream : from->default_stream, src, rect, &timer));
    if (to != from) timer.finished();
    return FLHAL_OK;
  }
  Device* other = to ? to : from;
  Stream* queue = stream;
  if (other != here) {                           // a stream of one device asked to move bytes of another one
    FLHAL_TRY(stream->wait_for(stream->here().sequence));
    FLHAL_TRY(other->open());
    queue = other->default_stream;
    early = false;
  }
  Status done = to ? host_to_device(queue, dst, src.host(), rect, is_pinned_range(src.host(), src_bytes), early)
                   : device_to_host(queue, dst.host(), src, rect, is_pinned_range(dst.host(), dst_bytes), early);
  FLHAL_TRY(done);
  return queue == stream ? Status() : queue->wait_for(queue->here().sequence);
}

// `pattern` has 16 bytes of room and is copied.
struct Pattern {
  char bytes[16];
  uint32_t n;
};

Status fill_place(Stream* stream, const flhal_p_place& place, uint64_t bytes, const Pattern& pattern) {
  Device* device = stream->device;
  Status done = stream->submit("fill", [&](flhal_p_stream* q) {
    return plugin_call(device->plugin->table.fill, device->handle, q, &place, bytes, pattern.bytes, pattern.n);
  });
  if (done.code() == kQueueInstead)
    return stream->queue(work_of("fill", [=](Stream* s) { return fill_place(s, place, bytes, pattern); }));
  if (done.code() != FLHAL_E_UNSUPPORTED && done.code() != FLHAL_DECLINED) return done;
  for (uint64_t offset = 0; offset < bytes; offset += kChunkBytes) {   // written by the host, then copied
    uint64_t piece = std::min(kChunkBytes, bytes - offset);
    FLHAL_ASSIGN(Staging staging, Staging::make(stream, piece));
    for (uint64_t i = 0; i < piece; i += pattern.n) std::memcpy(staging.bytes() + i, pattern.bytes, pattern.n);
    FLHAL_TRY(submit_copy(stream, moved(place, offset), host_place(staging.bytes()), Rect{piece, 1, piece, piece}));
  }
  return FLHAL_OK;
}

}  // namespace

Status copy_bytes(Stream* stream, uint64_t dst, uint64_t src, uint64_t bytes, uint32_t flags) {
  return copy_rect(stream, dst, src, Rect{bytes, 1, bytes, bytes}, flags);
}

Status copy_rows(Stream* stream, uint64_t dst, uint64_t src, uint64_t bytes, uint64_t rows, uint64_t dst_pitch,
                 uint64_t src_pitch, uint32_t flags) {
  if (rows > 1 && (dst_pitch < bytes || src_pitch < bytes)) {
    return fail(FLHAL_E_INVALID, "flhal_copy: rows of {} bytes with pitches {} and {}; a pitch is at least a row", bytes,
                dst_pitch, src_pitch);
  }
  uint64_t end;
  if (rows > 1 && (__builtin_mul_overflow(rows - 1, std::max(dst_pitch, src_pitch), &end) || end > kAddressLimit)) {
    return fail(FLHAL_E_INVALID, "flhal_copy: {} rows with pitches {} and {} leave the address space", rows, dst_pitch, src_pitch);
  }
  return copy_rect(stream, dst, src, Rect{bytes, rows, dst_pitch, src_pitch}, flags);
}

Status fill_bytes(Stream* stream, uint64_t dst, uint64_t bytes, const void* pattern, uint32_t pattern_bytes) {
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return fail(FLHAL_E_INVALID, "flhal_fill: a pattern of {} bytes; it must have 1, 2, 4, 8 or 16", pattern_bytes);
  }
  if (pattern == nullptr) return fail(FLHAL_E_INVALID, "flhal_fill: pattern is NULL; give {} bytes", pattern_bytes);
  if (bytes % pattern_bytes != 0) {
    return fail(FLHAL_E_INVALID, "flhal_fill: {} bytes are not a multiple of the pattern's {}", bytes, pattern_bytes);
  }
  if (!stream->usable()) return stream->unusable_failure("flhal_fill");
  if (bytes == 0) return FLHAL_OK;
  Located at;
  FLHAL_TRY(locate_for(stream, dst, bytes, "flhal_fill", "dst", &at));
  Stream* queue = stream;
  if (at.slab->device != stream->device) {
    FLHAL_TRY(stream->wait_for(stream->here().sequence));
    FLHAL_TRY(at.slab->device->open());
    queue = at.slab->device->default_stream;
  }
  Pattern kept{{}, pattern_bytes};
  std::memcpy(kept.bytes, pattern, pattern_bytes);
  FLHAL_TRY(fill_place(queue, place_of(at.slab, at.offset), bytes, kept));
  return queue == stream ? Status() : queue->wait_for(queue->here().sequence);
}

}  // namespace flhal

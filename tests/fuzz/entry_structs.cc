// tests/fuzz/entry_structs.cc: the application's calls with structs of any size, tail and chain, wrong handles, ranges that
// leave their allocation, texts of every kind.
//
// Structs lie in memory of exactly the size they say (and never less than what version 1.0 has of an input), so that
// AddressSanitizer sees what reads or writes past it.
#include <flhal/ops.h>

#include <algorithm>
#include <vector>

#include "chips.h"

using namespace flhal::fuzz;

namespace {

void sink(void*, const char*, uint64_t) {}

// A negative answer has a text; every answer is known.
flhal_status told(flhal_status answer) {
  if (answer >= 0) return answer;
  char text[32];
  FLHAL_MUST(flhal_last_error(text, sizeof text, nullptr) == answer && text[0] != 0);
  FLHAL_MUST(answer != FLHAL_E_INTERNAL);
  return answer;
}

uint32_t take_size(Bytes& b, uint32_t ours) {
  switch (b.below(6)) {
    case 0: return ours + b.byte();
    case 1: return b.byte();
    case 2: return b.number<uint16_t>();
    case 3: return ours - b.below(9);
    default: return ours;
  }
}

// An output struct: what is written must end where it says, and the rest of the memory is AddressSanitizer's to watch.
template <typename T, typename Call>
void output_struct(Bytes& b, Call call) {
  const uint32_t size = take_size(b, sizeof(T));
  Exact<uint8_t> memory(std::max<uint32_t>(size, 4));
  std::memset(memory.data(), 0x5a, std::max<uint32_t>(size, 4));
  std::memcpy(memory.data(), &size, 4);
  told(call(reinterpret_cast<T*>(memory.data())));
  if (size >= 4) FLHAL_MUST(std::memcmp(memory.data(), &size, 4) == 0);
  for (uint32_t i = sizeof(T); i < size; ++i) FLHAL_MUST(memory[i] == 0x5a);
}

struct Link {
  uint32_t struct_size, struct_type;
  const void* next;
};

void op_call(Bytes& b, const Chip& chip) {
  const int64_t four[1] = {4}, one[1] = {1};
  flhal_tensor tensors[3] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    tensors[i].address = chip.arena + 256 * i;
    tensors[i].sizes = four;
    tensors[i].strides = one;
    tensors[i].dtype = FLHAL_F32;
    tensors[i].rank = 1;
  }
  flhal_op_call plain{};
  plain.struct_type = b.below(8) ? FLHAL_ST_OP_CALL : b.number<uint32_t>();
  plain.op = FLHAL_OP_ADD;
  plain.tensors = tensors;
  plain.tensor_stride = sizeof(flhal_tensor);
  plain.n_outputs = 1;
  plain.n_inputs = 2;
  plain.compute_dtype = FLHAL_F32;
  plain.struct_size = take_size(b, sizeof plain);
  const bool no_size = b.below(32) == 0;      // a number that nobody can mean: refused before anything is read
  if (no_size) plain.struct_size = 0x10001u + b.number<uint32_t>() / 2;

  std::vector<Exact<Link>> chain;
  const uint32_t links = b.below(4) == 0 ? b.below(100) : b.below(3);
  bool needed = false, endless = false;
  for (uint32_t i = 0; i < links; ++i) {
    chain.emplace_back(1);
    Link& link = chain.back()[0];
    link.struct_size = b.byte();
    link.struct_type = b.number<uint16_t>() | (b.below(16) == 0 ? 0x80000000u : 0);
    link.next = plain.next;
    if (i == 0 && b.below(8) == 0) link.next = &link, endless = true;
    needed |= link.struct_type >> 31;
    plain.next = &link;
  }
  Exact<uint8_t> memory(no_size ? sizeof plain : std::max<size_t>(plain.struct_size, sizeof plain));
  std::memcpy(memory.data(), &plain, sizeof plain);
  bool tail = false;
  if (b.below(2) && !no_size)
    for (uint32_t i = sizeof plain; i < plain.struct_size && !b.empty(); ++i) tail |= (memory[i] = b.byte()) != 0;
  const auto* call = reinterpret_cast<const flhal_op_call*>(memory.data());
  uint32_t route;
  const char* reason;
  flhal_status answer = FLHAL_OK;
  switch (b.below(3)) {
    case 0: answer = flhal_op_run(chip.stream, call); break;
    case 1: answer = flhal_op_route(chip.device, call, &route, &reason); break;
    default: {
      int64_t axes[32];
      flhal_tensor out = tensors[0];
      out.sizes = axes;
      out.strides = axes + 16;
      answer = flhal_op_infer(call, &out);
    }
  }
  told(answer);
  const bool well = plain.struct_type == FLHAL_ST_OP_CALL && plain.struct_size >= sizeof plain && !no_size && !tail && !needed &&
                    !endless && links <= 64;
  FLHAL_MUST(well ? answer == FLHAL_OK : answer < 0);
}

// In the arena, near its end, or behind it in the same slab. What lies before it may be a good host pointer.
flhal_addr take_address(Bytes& b, const Chip& chip) {
  switch (b.below(6)) {
    case 0: return chip.arena + kArenaBytes - b.byte();
    case 1: return chip.arena + kArenaBytes + b.byte();
    case 2: return chip.arena + kArenaBytes + b.number<uint16_t>() % 60000;   // no slab is below 64 KiB
    default: return chip.arena + b.number<uint16_t>() % kArenaBytes;
  }
}
uint64_t take_bytes(Bytes& b) {
  switch (b.below(5)) {
    case 0: return b.number<uint16_t>();
    case 1: return ~0ull - b.byte();
    case 2: return 1ull << b.below(64);
    default: return b.byte();
  }
}
bool inside(const Chip& chip, flhal_addr at, uint64_t bytes) {
  return at >= chip.arena && at - chip.arena <= kArenaBytes && bytes <= kArenaBytes - (at - chip.arena);
}

void ranges(Bytes& b, const Chip& chip) {
  const flhal_addr to = take_address(b, chip), from = take_address(b, chip);
  const uint64_t bytes = take_bytes(b);
  const uint8_t pattern[16] = {1, 2, 3, 4};
  flhal_status answer;
  switch (b.below(3)) {
    case 0:
      answer = told(flhal_copy(chip.stream, to, from, bytes, b.below(4) ? 0 : b.byte()));
      if (answer == FLHAL_OK && bytes != 0) FLHAL_MUST(inside(chip, to, bytes) && inside(chip, from, bytes));
      break;
    case 1: {
      const uint32_t width = b.below(4) ? 1u << b.below(5) : b.number<uint32_t>();
      answer = told(flhal_fill(chip.stream, to, bytes, b.below(16) ? pattern : nullptr, width));
      if (answer == FLHAL_OK && bytes != 0) FLHAL_MUST(inside(chip, to, bytes) && width <= 16);
      break;
    }
    default: {
      void* host = nullptr;
      uint64_t ticket = 0;
      const uint32_t access = b.below(8) ? FLHAL_READ | FLHAL_WRITE : b.byte();
      answer = told(flhal_host_begin(chip.stream, to, bytes, access, &host, &ticket));
      if (answer != FLHAL_OK) break;
      FLHAL_MUST(bytes == 0 || (inside(chip, to, bytes) && host != nullptr));
      if (bytes != 0 && (access & FLHAL_READ)) FLHAL_MUST(static_cast<volatile uint8_t*>(host)[bytes - 1] <= 255);
      told(flhal_host_end(chip.stream, ticket));
    }
  }
  told(flhal_host_end(chip.stream, b.number<uint64_t>()));
  told(flhal_memory_used_on(to, chip.stream));
  FLHAL_MUST(told(flhal_stream_synchronize(chip.stream)) == FLHAL_OK);
}

// Memory that is no handle: refused by its tag.
void wrong_handles(Bytes& b) {
  Exact<uint8_t> memory(512);
  const uint32_t n = b.below(200);
  for (uint32_t i = 0; i < n; ++i) memory[i] = b.byte();
  void* handle = b.below(4) ? memory.data() : nullptr;
  auto* stream = static_cast<flhal_stream*>(handle);
  flhal_addr address;
  void* host;
  FLHAL_MUST(told(flhal_stream_query(stream)) < 0);
  FLHAL_MUST(told(flhal_alloc(stream, 16, &address)) < 0);
  FLHAL_MUST(told(flhal_device_open(static_cast<flhal_device*>(handle))) < 0);
  FLHAL_MUST(told(flhal_event_query(static_cast<flhal_event*>(handle))) < 0);
  if (handle != nullptr) {
    FLHAL_MUST(told(flhal_stream_release(stream)) < 0);
    FLHAL_MUST(told(flhal_event_release(static_cast<flhal_event*>(handle))) < 0);
    FLHAL_MUST(told(flhal_module_release(static_cast<flhal_module*>(handle))) < 0);
    FLHAL_MUST(told(flhal_host_alloc(static_cast<flhal_device*>(handle), 8, &host)) < 0);
  }
}

void texts(Bytes& b, const Chip& chip) {
  const uint8_t which = b.byte();
  const std::string text = b.text(), second = b.text();
  uint32_t index = 0;
  switch (which % 8) {
    case 0: told(flhal_report(text.c_str(), sink, nullptr)); break;
    case 1: told(flhal_config_get(text.c_str(), sink, nullptr)); break;
    case 2: told(flhal_device_find(text.c_str(), &index)); break;
    case 3: flhal_op_find(text.c_str()); break;
    case 4:
      if (flhal_fallback_push(text.c_str(), second.empty() ? nullptr : second.c_str()) == FLHAL_OK) FLHAL_MUST(flhal_fallback_pop() == FLHAL_OK);
      break;
    case 5: {
      uint64_t ticket = 0;
      if (told(flhal_fallback_enter(chip.device, "fuzz", second.c_str(), &ticket)) == FLHAL_OK)
        told(flhal_fallback_leave(ticket, 1, 2, text.c_str()));
      told(flhal_fallback_leave(b.number<uint64_t>(), 1, 2, nullptr));
      break;
    }
    case 6: told(flhal_report_reset(text.c_str())); break;
    default: {
      flhal_module* module = nullptr;
      flhal_status answer = told(flhal_module_load(chip.device, ("x-" + text).c_str(), second.data(), second.size(), nullptr, &module));
      FLHAL_MUST(answer < 0);
    }
  }
}

void numbers(Bytes& b, const Chip& chip) {
  told(flhal_init(b.below(2) ? FLHAL_VERSION : b.number<uint32_t>()));
  FLHAL_MUST(*flhal_status_name(b.number<int32_t>()) != 0);
  const uint8_t capacity = b.byte();
  Exact<char> text(capacity);
  flhal_last_error(capacity ? text.data() : nullptr, capacity, nullptr);
  flhal_event* event = nullptr;
  if (told(flhal_event_create(b.byte(), &event)) == FLHAL_OK) {
    told(flhal_event_record(event, chip.stream));
    FLHAL_MUST(told(flhal_event_synchronize(event)) == FLHAL_OK);
    told(flhal_event_release(event));
  }
  flhal_device* device = flhal_device_at(b.number<uint32_t>());
  (void)device;
  flhal_stream* stream = nullptr;
  if (told(flhal_stream_create(chip.device, b.number<int32_t>(), &stream)) == FLHAL_OK) told(flhal_stream_release(stream));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes b(data, size);
  for (int calls = 0; calls < 8 && !b.empty(); ++calls) {
    const uint8_t what = b.byte();
    const Chip& c = chip(what >> 7);
    switch (what % 9) {
      case 0: output_struct<flhal_device_info>(b, [&](auto* out) { return flhal_device_get_info(c.device, out); }); break;
      case 1: output_struct<flhal_memory_stats>(b, [&](auto* out) { return flhal_memory_get_stats(c.device, out); }); break;
      case 2: {
        const flhal_addr at = take_address(b, c);
        output_struct<flhal_memory_place>(b, [&](auto* out) { return flhal_memory_lookup(at, out); });
        break;
      }
      case 3: ranges(b, c); break;
      case 4: wrong_handles(b); break;
      case 5: texts(b, c); break;
      case 6: numbers(b, c); break;
      default: op_call(b, c); break;
    }
  }
  return 0;
}

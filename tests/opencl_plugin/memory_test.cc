// tests/opencl_plugin/memory_test.cc: slabs, copies, rectangles, fills, views, and what happens when memory is out.
#include "memory/copy_engine.h"
#include "world.h"

using namespace flhal;
using namespace flhal::test;
using Catch::Contains;

TEST_CASE("memory: the chip says what it is", "[opencl]") {
  Device* c = chip();
  CHECK(std::string(c->info.chip) == "opencl");
  CHECK(c->info.device_class == FLHAL_DEVICE_CLASS_CPU_DRIVER);
  CHECK(c->has(FLHAL_CAP_LANES_ARE_CORES));
  CHECK(c->has(FLHAL_CAP_EVENT_HOST_SIGNAL));
  CHECK(c->has(FLHAL_CAP_INT64));
  CHECK(c->info.memory_bytes > 0);
  CHECK(c->info.largest_slab_bytes % 65536 == 0);
  CHECK(c->info.max_local_bytes >= 16384);
  CHECK_THAT(c->info.dialects, Contains("opencl-c-1.2") && Contains("opencl-binary"));
  CHECK(std::string(c->info.compute_capability).size() == 3);
  // Devices of one plugin and chip name: ordinals, and each its own uuid, equal twins too.
  CHECK((devices()[0]->name == "opencl" && devices()[1]->name == "opencl:1" && devices()[2]->name == "opencl:2"));
  CHECK(memcmp(chip(0)->info.uuid, chip(1)->info.uuid, 16) != 0);
  CHECK(memcmp(chip(0)->info.uuid, chip(kBasic)->info.uuid, 16) != 0);
  const char* mode = std::getenv("FLHAL_OPENCL_MEMORY");
  bool buffers = mode && std::string(mode) == "buffer", coarse = mode && std::string(mode) == "coarse";
  CHECK(c->has(FLHAL_CAP_ADDRESSES_OURS) == !buffers);
  CHECK(c->has(FLHAL_CAP_HOST_VISIBLE) == (!buffers && !coarse));
  uint64_t left = 0, total = 0;
  REQUIRE(c->plugin->table.memory_budget(c->handle, &left, &total) == FLHAL_OK);
  CHECK(total == c->info.memory_bytes);
  CHECK((left > 0 && left <= total));
}

TEST_CASE("memory: bytes come back as they went, at any offset and size", "[opencl][copy]") {
  for (uint32_t which : {0u, kBasic}) {
    flhal_stream* s = new_stream(chip(which));
    const uint64_t n = (3 << 20) + 17;
    flhal_addr a = allocate(s, n), b = allocate(s, n);
    auto bytes = pattern_bytes(n);
    upload(s, a, bytes.data(), n);
    CHECK((download(s, a, n) == bytes));
    REQUIRE_FINE(flhal_copy(s, b, a, n, 0));
    CHECK((download(s, b, n) == bytes));
    for (uint64_t offset : {1ull, 3ull, 64ull, 4097ull, 1ull << 20}) {
      for (uint64_t size : {1ull, 2ull, 1000ull, 65537ull}) {
        REQUIRE_FINE(flhal_copy(s, b + offset, a + offset + 5, size, 0));
        std::copy_n(bytes.begin() + long(offset) + 5, size, bytes.begin() + long(offset));
        upload(s, a, bytes.data(), n);
        REQUIRE(download(s, b + offset, size) == std::vector<uint8_t>(bytes.begin() + long(offset), bytes.begin() + long(offset + size)));
      }
    }
    flhal_free(a), flhal_free(b);
  }
}

TEST_CASE("memory: a pinned source may go on its way before the call returns, a pageable one may not", "[opencl][copy]") {
  Device* c = chip();
  flhal_stream* s = new_stream(c);
  const uint64_t n = 8 << 20;
  flhal_addr a = allocate(s, n);
  void* pinned = nullptr;
  REQUIRE_FINE(flhal_host_alloc(device_of(c), n, &pinned));
  auto bytes = pattern_bytes(n);
  memcpy(pinned, bytes.data(), n);
  REQUIRE_FINE(flhal_copy(s, a, number(pinned), n, FLHAL_COPY_MAY_RETURN_EARLY));
  REQUIRE_FINE(flhal_stream_synchronize(s));
  auto copy = bytes;
  CHECK((download(s, a, n) == bytes));
  REQUIRE_FINE(flhal_copy(s, a, number(copy.data()), n, FLHAL_COPY_MAY_RETURN_EARLY));
  std::fill(copy.begin(), copy.end(), uint8_t(0xee));   // freed or overwritten at once: legal
  CHECK((download(s, a, n) == bytes));
  REQUIRE_FINE(flhal_host_free(pinned));
  flhal_free(a);
}

TEST_CASE("memory: rectangles between host and chip and on the chip", "[opencl][copy]") {
  Slots t(chip());
  const uint64_t n = 1 << 20;
  flhal_p_slab_v1 a = t.slab(n), b = t.slab(n);
  flhal_p_stream* stream = t.stream();
  struct Case {
    uint64_t bytes, rows, dst_pitch, src_pitch, dst_offset, src_offset;
  };
  for (Case c : {Case{12, 7, 100, 64, 5, 3}, Case{1, 300, 2, 3, 0, 1}, Case{4096, 16, 4096, 8192, 128, 0}, Case{100, 50, 100, 101, 77, 999},
                 Case{60, 9, 64, 64, 50, 63}}) {
    for (bool with_stream : {true, false}) {
      INFO(c.bytes << " x " << c.rows << " pitches " << c.dst_pitch << " " << c.src_pitch << " stream " << with_stream);
      flhal_p_stream* q = with_stream ? stream : nullptr;
      auto src = pattern_bytes(n, 7), zero = std::vector<uint8_t>(n), want = zero, out = zero;
      for (uint64_t r = 0; r < c.rows; ++r)
        memcpy(want.data() + c.dst_offset + r * c.dst_pitch, src.data() + c.src_offset + r * c.src_pitch, c.bytes);
      // host to chip
      REQUIRE(t.copy(q, on(b), host(zero.data()), n) == FLHAL_OK);
      REQUIRE(t.copy(q, on(b, c.dst_offset), host(src.data() + c.src_offset), c.bytes, c.rows, c.dst_pitch, c.src_pitch) == FLHAL_OK);
      if (q) REQUIRE(t.table.stream_synchronize(q) == FLHAL_OK);
      REQUIRE((t.read(b) == want));
      // on the chip
      REQUIRE(t.copy(q, on(a), host(src.data()), n) == FLHAL_OK);
      REQUIRE(t.copy(q, on(b), host(zero.data()), n) == FLHAL_OK);
      REQUIRE(t.copy(q, on(b, c.dst_offset), on(a, c.src_offset), c.bytes, c.rows, c.dst_pitch, c.src_pitch) == FLHAL_OK);
      if (q) REQUIRE(t.table.stream_synchronize(q) == FLHAL_OK);
      REQUIRE((t.read(b) == want));
      // chip to host
      REQUIRE(t.copy(q, host(out.data() + c.dst_offset), on(a, c.src_offset), c.bytes, c.rows, c.dst_pitch, c.src_pitch) == FLHAL_OK);
      if (q) REQUIRE(t.table.stream_synchronize(q) == FLHAL_OK);
      REQUIRE((out == want));
    }
  }
  t.table.stream_destroy(stream);
  t.table.memory_free(t.handle(), a.memory);
  t.table.memory_free(t.handle(), b.memory);
}

TEST_CASE("memory: fills of every pattern size, and odd ones through core", "[opencl][copy]") {
  flhal_stream* s = new_stream(chip());
  const uint64_t n = 1 << 16;
  flhal_addr a = allocate(s, n);
  auto pattern = pattern_bytes(16, 3);
  for (uint32_t size : {1u, 2u, 4u, 8u, 16u})
    for (uint64_t offset : {0ull, 16ull, 3ull, 10ull}) {   // the last two are no multiples: core writes those
      INFO("pattern of " << size << " at " << offset);
      std::vector<uint8_t> want(n, 0);
      upload(s, a, want.data(), n);
      uint64_t bytes = 1000 * size;
      for (uint64_t i = 0; i < bytes; ++i) want[offset + i] = pattern[i % size];
      REQUIRE_FINE(flhal_fill(s, a + offset, bytes, pattern.data(), size));
      REQUIRE((download(s, a, n) == want));
    }
  flhal_free(a);
}

TEST_CASE("memory: views show and change the chip's bytes, several at once", "[opencl][view]") {
  flhal_stream* s = new_stream(chip());
  const uint64_t n = 1 << 20;
  flhal_addr a = allocate(s, n);
  auto bytes = pattern_bytes(n);
  upload(s, a, bytes.data(), n);
  void *first = nullptr, *second = nullptr;
  uint64_t ticket_1 = 0, ticket_2 = 0;
  REQUIRE_FINE(flhal_host_begin(s, a + 100, 1000, FLHAL_READ, &first, &ticket_1));
  REQUIRE_FINE(flhal_host_begin(s, a + 5000, 64, FLHAL_READ | FLHAL_WRITE, &second, &ticket_2));
  CHECK(memcmp(first, bytes.data() + 100, 1000) == 0);
  CHECK(memcmp(second, bytes.data() + 5000, 64) == 0);
  memset(second, 0x5a, 64);
  REQUIRE_FINE(flhal_host_end(s, ticket_1));
  REQUIRE_FINE(flhal_host_end(s, ticket_2));
  std::fill_n(bytes.begin() + 5000, 64, uint8_t(0x5a));
  CHECK((download(s, a, n) == bytes));
  REQUIRE_FINE(flhal_host_begin(s, a, n, FLHAL_WRITE | FLHAL_DISCARD, &first, &ticket_1));
  memset(first, 0x11, n);
  REQUIRE_FINE(flhal_host_end(s, ticket_1));
  CHECK((download(s, a, n) == std::vector<uint8_t>(n, 0x11)));
  flhal_free(a);
}

TEST_CASE("memory: what the chip cannot give is refused with figures, and the chip lives on", "[opencl][oom]") {
  Device* c = chip();
  flhal_stream* s = new_stream(c);
  flhal_addr a = 0;
  REQUIRE(flhal_alloc(s, c->info.largest_slab_bytes + (1 << 20), &a) == FLHAL_E_OUT_OF_MEMORY);
  CHECK_THAT(last_error_text(), Contains("out of memory on") && Contains("requested"));
  Slots t(c);
  flhal_p_slab_v1 slab{};
  slab.struct_size = sizeof slab;
  slab.struct_type = FLHAL_ST_SLAB;
  slab.align = 65536;
  slab.bytes = c->info.largest_slab_bytes + 65536;
  CHECK(t.table.memory_alloc(t.handle(), &slab) == FLHAL_EXHAUSTED);
  // Until the chip is full: what was taken is counted, and comes back.
  uint64_t before = 0, left = 0, total = 0;
  REQUIRE(t.table.memory_budget(t.handle(), &before, &total) == FLHAL_OK);
  std::vector<flhal_p_slab_v1> taken;
  for (int i = 0; i < 64; ++i) {
    slab.bytes = c->info.largest_slab_bytes;
    flhal_status answer = t.table.memory_alloc(t.handle(), &slab);
    if (answer != FLHAL_OK) {
      CHECK(answer == FLHAL_EXHAUSTED);
      break;
    }
    taken.push_back(slab);
  }
  CHECK(taken.size() < 64);
  for (auto& one : taken) t.table.memory_free(t.handle(), one.memory);
  REQUIRE(t.table.memory_budget(t.handle(), &left, &total) == FLHAL_OK);
  CHECK(left > before / 2);
  REQUIRE_FINE(flhal_alloc(s, 1000, &a));
  flhal_free(a);
}

TEST_CASE("memory: slabs begin at granules; pinned and shared memory is the host's", "[opencl]") {
  Slots t(chip());
  for (uint32_t kind : {FLHAL_MEM_DEVICE, FLHAL_MEM_PINNED}) {
    flhal_p_slab_v1 s = t.slab(1 << 20, kind);
    if (kind == FLHAL_MEM_PINNED) REQUIRE(s.host != nullptr);
    CHECK(s.address % 65536 == 0);
    CHECK(number(s.host) % 65536 == 0);
    CHECK((s.address != 0) == (kind == FLHAL_MEM_DEVICE && has_addresses()));
    if (s.host) memset(s.host, 1, 1 << 20);
    t.table.memory_free(t.handle(), s.memory);
  }
  flhal_p_slab_v1 s{};
  s.struct_size = sizeof s;
  s.struct_type = FLHAL_ST_SLAB;
  s.align = 65536;
  s.bytes = 65536;
  s.kind = FLHAL_MEM_SHARED;
  flhal_status answer = t.table.memory_alloc(t.handle(), &s);
  if (chip()->has(FLHAL_CAP_HOST_VISIBLE)) {
    REQUIRE(answer == FLHAL_OK);
    CHECK(s.host == reinterpret_cast<void*>(s.address));
    t.table.memory_free(t.handle(), s.memory);
  } else {
    CHECK(answer == FLHAL_E_UNSUPPORTED);
    CHECK_THAT(left_text(answer), Contains("fine-grain SVM"));
  }
  s.bytes = 0;
  answer = t.table.memory_alloc(t.handle(), &s);
  CHECK(answer == FLHAL_E_INVALID);
  CHECK_THAT(left_text(answer), Contains("bytes must be above 0"));
}

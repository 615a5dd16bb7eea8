// tests/memory/chips.h: the chips of the real test plugins: "ram", "chip_a", "chip_b", opened.
#pragma once

#include <catch2/catch.hpp>

#include "core/device.h"
#include "core/event.h"
#include "core/stream.h"
#include "memory/copy_engine.h"
#include "memory/host_access.h"
#include "memory/pinned.h"
#include "memory/pool.h"
#include "support/mock_control.h"
#include "support/test_world.h"

namespace flhal::test {

Device* chip(const char* name);

#ifndef REQUIRE_OK
#define REQUIRE_OK(expression)                         \
  do {                                                 \
    ::flhal::Status required_ = (expression);          \
    INFO(::flhal::last_error_text());                  \
    REQUIRE(required_.code() == FLHAL_OK);             \
  } while (0)
#endif

inline uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }

inline uint64_t allocate(Stream* stream, uint64_t bytes) {
  auto got = pool_allocate(stream, bytes);
  INFO(last_error_text());
  REQUIRE(got.ok());
  return *got;
}

inline std::vector<uint8_t> bytes_of(Stream* stream, uint64_t address, uint64_t n) {
  std::vector<uint8_t> out(n);
  REQUIRE_OK(copy_bytes(stream, number(out.data()), address, n, 0));
  return out;
}

inline flhal_memory_stats stats_of(Device* device) {
  flhal_memory_stats s{};
  s.struct_size = sizeof s;
  device->pool->stats(&s);
  return s;
}

}  // namespace flhal::test

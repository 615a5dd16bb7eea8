// tests/mock/direct_mock.cc
#include "mock/direct_mock.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <mutex>

namespace flhal::test {
namespace {

std::mutex g_error_mutex;
std::string g_error;

const flhal_host_v1 kHost = {
    sizeof(flhal_host_v1), FLHAL_ST_HOST, nullptr, FLHAL_PLUGIN_ABI_MINOR, 0,
    [](int32_t, const char*) {},
    [](flhal_status, int64_t, const char* text) {
      std::lock_guard lock(g_error_mutex);
      g_error = text;
    },
    [](uint64_t bytes, uint64_t align) -> void* { return aligned_alloc(align, (bytes + align - 1) / align * align); },
    [](void* p) { free(p); },
    [](uint64_t, flhal_status) {},
    [](const char*) -> const char* { return nullptr; },
    []() -> uint64_t { return 0; }};

}  // namespace

const flhal_host_v1& test_host() { return kHost; }

flhal_plugin_info_v1 mock_info() {
  static const auto entry = [] {
    void* library = dlopen(FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_mock.so", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    return reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
  }();
  flhal_plugin_info_v1 info{};
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_PLUGIN_INFO;
  REQUIRE(entry(&kHost, &info) == FLHAL_OK);
  return info;
}

DirectMock::DirectMock(const char* script) {
  flhal_plugin_info_v1 info = mock_info();
  table_ = info.table;
  ops_ = static_cast<const flhal_ops_v1*>(info.optional_table("ops", 0));
  flhal_init_v1 start{sizeof start, FLHAL_ST_INIT, nullptr, 0, 0};
  setenv("FLHAL_MOCK", script, 1);
  REQUIRE(table_->init(&kHost, &start, &plugin_) == FLHAL_OK);
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(table_->device_open(plugin_, i, &devices_[i]) == FLHAL_OK);
}

DirectMock::~DirectMock() {
  for (flhal_p_device* device : devices_) table_->device_close(device);
  table_->shutdown(plugin_);
}

std::string DirectMock::error() const {
  std::lock_guard lock(g_error_mutex);
  return g_error;
}

flhal_p_slab_v1 DirectMock::slab(uint64_t bytes, int i) const {
  flhal_p_slab_v1 s{};
  s.struct_size = sizeof s;
  s.struct_type = FLHAL_ST_SLAB;
  s.bytes = bytes;
  s.align = 256;
  REQUIRE(table_->memory_alloc(devices_[i], &s) == FLHAL_OK);
  return s;
}

flhal_p_stream* DirectMock::stream(int i) const {
  flhal_p_stream* s = nullptr;
  REQUIRE(table_->stream_create(devices_[i], 0, 0, &s) == FLHAL_OK);
  return s;
}

flhal_p_copy_v1 copy_of(flhal_p_place dst, flhal_p_place src, uint64_t bytes) {
  return {sizeof(flhal_p_copy_v1), FLHAL_ST_COPY, nullptr, dst, src, bytes, 1, 0, 0};
}

}  // namespace flhal::test

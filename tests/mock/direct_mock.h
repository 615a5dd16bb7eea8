// tests/mock/direct_mock.h: the mock's table without core, for tests of the mock itself.
#pragma once

#include <flhal/plugin.h>

#include <string>

#include "support/mock_control.h"

namespace flhal::test {

// init, both chips opened; everything closed and counted at the end. One at a time in a process.
class DirectMock {
 public:
  explicit DirectMock(const char* script = "");
  ~DirectMock();
  DirectMock(const DirectMock&) = delete;

  const flhal_plugin_table_v1& table() const { return *table_; }
  const flhal_ops_v1& ops() const { return *ops_; }
  flhal_p_device* chip(int i) const { return devices_[i]; }
  std::string error() const;                       // what the plugin last left with set_error, on any thread
  flhal_p_slab_v1 slab(uint64_t bytes, int i = 0) const;   // REQUIREs success
  flhal_p_stream* stream(int i = 0) const;

 private:
  const flhal_plugin_table_v1* table_;
  const flhal_ops_v1* ops_;
  flhal_p_plugin* plugin_ = nullptr;
  flhal_p_device* devices_[2] = {};
};

flhal_p_copy_v1 copy_of(flhal_p_place dst, flhal_p_place src, uint64_t bytes);
inline flhal_p_place on(const flhal_p_slab_v1& slab, uint64_t offset = 0) { return {slab.memory, offset, nullptr}; }
inline flhal_p_place host(void* p) { return {nullptr, 0, p}; }

// The plugin's entry, without any init.
flhal_plugin_info_v1 mock_info();
const flhal_host_v1& test_host();

}  // namespace flhal::test

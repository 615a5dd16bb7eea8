// conformance/runner/plugin.h: the plugin under test, as cases see it: loaded, started, its devices, slabs, streams, events.
//
// Idea: each class is one handle of the vendor ABI, made in the constructor and given back in the destructor, in the order
// core would. A call that must work is `expect_ok(...)`: its failure ends the case with the plugin's own sentence.
// Threads: with SERIALIZE_ALL every call is made under Plugin::lock(), as core does.
#pragma once

#include <flhal/plugin.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runner/check.h"
#include "runner/host_table.h"

namespace flhal::conformance {

// Fails the case unless `status` is FLHAL_OK; DEVICE_LOST ends it as device_lost.
void expect_ok(flhal_status status, const char* slot);
// The slot must refuse with `wanted`, and have left a sentence. `what` says what was asked: "device_info of index 7".
void expect_refused(flhal_status status, flhal_status wanted, const std::string& what);
inline constexpr flhal_status kAnyFailure = 1;   // for expect_refused: every negative status will do

// The library, and what its entry answers. Never unloaded.
class Plugin {
 public:
  explicit Plugin(const std::string& path);        // dlopen and the entry; throws Failed with the loader's own text
  const std::string& path() const { return path_; }
  flhal_plugin_v1_fn entry() const { return entry_; }
  const flhal_plugin_info_v1& info() const { return info_; }
  const flhal_plugin_table_v1& table() const { return table_; }     // a copy: short tables have NULL at the end
  const flhal_ops_v1* ops() const { return ops_; }                  // nullptr: none
  bool serialized() const { return info_.flags & FLHAL_PLUGIN_SERIALIZE_ALL; }
  std::unique_lock<std::mutex> lock() const;

  bool has_kernels() const { return table_.launch != nullptr; }
  bool has_streams() const { return table_.stream_create != nullptr; }
  bool has_host_access() const { return table_.host_begin != nullptr && table_.host_end != nullptr; }

  flhal_p_plugin* start() const;                   // init
  void stop(flhal_p_plugin* handle) const;         // shutdown

 private:
  std::string path_;
  flhal_plugin_v1_fn entry_ = nullptr;
  flhal_plugin_info_v1 info_{};
  flhal_plugin_table_v1 table_{};
  const flhal_ops_v1* ops_ = nullptr;
  mutable std::mutex mutex_;
};

flhal_plugin_info_v1 empty_plugin_info();
flhal_init_v1 plain_init();
flhal_p_device_info_v1 empty_device_info();

class Slab;

// One open device and its facts.
class Device {
 public:
  Device(const Plugin& plugin, flhal_p_plugin* handle, uint32_t index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Plugin& plugin;
  const flhal_plugin_table_v1& table;
  const uint32_t index;
  flhal_p_device* handle = nullptr;
  flhal_p_device_info_v1 info;

  bool has(uint64_t cap) const { return (info.caps & cap) == cap; }
  bool speaks(const char* dialect_prefix) const;   // one word of dialects begins so
  uint64_t slab_bytes_max() const;                 // the largest slab it promises; 1 GiB when unknown
  uint64_t slab_bytes_free() const;                // one that fits now: others may use the chip's memory, too

  // All with stream NULL unless given: finished on return.
  void upload(const Slab& to, uint64_t offset, const void* from, uint64_t bytes, flhal_p_stream* stream = nullptr);
  void download(void* to, const Slab& from, uint64_t offset, uint64_t bytes, flhal_p_stream* stream = nullptr);
  void move(const Slab& to, uint64_t to_offset, const Slab& from, uint64_t from_offset, uint64_t bytes,
            flhal_p_stream* stream = nullptr);
  void fill(const Slab& to, uint64_t offset, uint64_t bytes, const void* pattern, uint32_t pattern_bytes,
            flhal_p_stream* stream = nullptr);
  flhal_status try_copy(flhal_p_stream* stream, const flhal_p_copy_v1& what);
};

flhal_p_slab_v1 slab_request(uint64_t bytes, uint64_t align = 0, uint32_t kind = FLHAL_MEM_DEVICE);

// One slab; freed in the destructor.
class Slab {
 public:
  Slab(Device& device, uint64_t bytes, uint64_t align = 0, uint32_t kind = FLHAL_MEM_DEVICE);
  Slab(Device& device, const flhal_p_slab_v1& answered);        // takes what memory_alloc gave
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  Device& device;
  flhal_p_slab_v1 made;
  flhal_p_place place(uint64_t offset) const { return {made.memory, offset, nullptr}; }
  std::vector<uint8_t> read() const;                             // the whole content
  void write(const std::vector<uint8_t>& content);
  void free();
};

inline flhal_p_place host_place(const void* p) { return {nullptr, 0, const_cast<void*>(p)}; }
flhal_p_copy_v1 linear_copy(flhal_p_place dst, flhal_p_place src, uint64_t bytes);

}  // namespace flhal::conformance

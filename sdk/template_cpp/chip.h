// chip.h: the types of this plugin and who implements which slot.
//
// A plugin to copy: ten slots in C++20. The "chip" is a piece of this process's own heap that nobody else can see: no device
// addresses, not visible to the host. All traffic goes through copy and fill, exactly as on a card behind a bus. Where a real
// chip needs its driver, the comment says "driver:". Slots may throw: flhal::slot turns it into a status with a sentence.
//
//   plugin.cc   the exported symbol, the table, init and shutdown      slots 1, 2
//   device.cc   which chips there are, opening and closing one         slots 3 to 6
//   memory.cc   slabs, copies, fills                                   slots 7 to 10
#pragma once

#include <flhal/plugin.hpp>

#include <memory>

// The eight handle types are ours to define; core only passes pointers to them around.
struct flhal_p_plugin {};

struct flhal_p_device {
  uint64_t used_bytes = 0;          // sum of live slabs; never above kMemoryBytes
};

struct flhal_p_memory {             // one slab
  struct Free { void operator()(char* p) const { flhal::host->free(p); } };
  std::unique_ptr<char, Free> bytes;   // driver: its buffer object
  uint64_t size;
};

namespace chip {

inline constexpr char kName[] = "ram_cpp";               // what users type: [a-z0-9_]+
inline constexpr char kUuid[] = "ram_cpp-00000001";      // 16 bytes count; driver: the serial number, the same in every boot
inline constexpr uint64_t kMemoryBytes = 4ull << 30;
inline constexpr uint64_t kLargestSlabBytes = 1ull << 30;
inline constexpr uint64_t kSlabAlignment = 256;

// device.cc
flhal_status device_count(flhal_p_plugin*, uint32_t* out);
flhal_status device_info(flhal_p_plugin*, uint32_t index, flhal_p_device_info_v1* out);
flhal_status device_open(flhal_p_plugin*, uint32_t index, flhal_p_device** out);
void device_close(flhal_p_device*);

// memory.cc
flhal_status memory_alloc(flhal_p_device*, flhal_p_slab_v1* slab);
void memory_free(flhal_p_device*, flhal_p_memory*);
flhal_status copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1*);
flhal_status fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes);

}  // namespace chip

// chip.h: the types of this plugin and who implements which slot.
//
// A plugin to copy, in C++20. The "chip" is a piece of this process's own heap that nobody else can see: no device
// addresses, not visible to the host. All traffic goes through copy and fill, exactly as on a card behind a bus. Where a real
// chip needs its driver, the comment says "driver:". Slots may throw: flhal::slot turns it into a status with a sentence.
//
//   plugin.cc   the exported symbol, the table, init and shutdown      slots 1, 2
//   device.cc   which chips there are, opening and closing one         slots 3 to 6
//   memory.cc   slabs, copies, fills                                   slots 7 to 10
#ifdef CHIP_KERNEL
//   module.cc   code for the chip, and launching it                    slots 11 to 14
#endif
#ifdef CHIP_ASYNC
//   stream.cc   queues of work, each with a worker of its own          slots 18 to 21
//   event.cc    points in queues                                       slots 22 to 29
#endif
#pragma once

#include <flhal/plugin.hpp>

#ifdef CHIP_ASYNC
#include <condition_variable>
#include <deque>
#include <functional>
#endif
#include <memory>
#ifdef CHIP_ASYNC
#include <mutex>
#include <thread>
#endif

// The eight handle types are ours to define; core only passes pointers to them around.
#ifndef CHIP_ASYNC
struct flhal_p_plugin {};

struct flhal_p_device {
  uint64_t used_bytes = 0;          // sum of live slabs; never above kMemoryBytes
};
#endif
#ifdef CHIP_ASYNC
struct flhal_p_plugin {
  std::mutex mutex;                 // guards what any of these structs changes; not held while work runs
  std::condition_variable changed;  // work was queued or has ended. driver: has waiting calls of its own
};

struct flhal_p_device {
  flhal_p_plugin* plugin;
  uint64_t used_bytes = 0;          // sum of live slabs; never above kMemoryBytes
};
#endif

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
#ifdef CHIP_KERNEL

// module.cc
flhal_status module_load(flhal_p_device*, const flhal_p_source_v1*, flhal_p_module** out);
void module_unload(flhal_p_module*);
flhal_status function_get(flhal_p_module*, const char* name, flhal_p_function** out);
flhal_status launch(flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1*);
#endif
#ifdef CHIP_ASYNC

// stream.cc
using Work = std::function<flhal_status()>;
// Now (stream == nullptr) or behind what is queued. `work` holds copies of all it needs: a slot's own arguments end with the call.
flhal_status submit(flhal_p_stream*, Work work);
flhal_status stream_create(flhal_p_device*, int32_t priority, uint32_t flags, flhal_p_stream** out);
void stream_destroy(flhal_p_stream*);
flhal_status stream_query(flhal_p_stream*);
flhal_status stream_synchronize(flhal_p_stream*);

// event.cc
flhal_status event_create(flhal_p_device*, uint32_t flags, flhal_p_event** out);
void event_destroy(flhal_p_event*);
flhal_status event_record(flhal_p_event*, flhal_p_stream*);
flhal_status event_wait(flhal_p_event*, flhal_p_stream*);
flhal_status event_query(flhal_p_event*);
flhal_status event_synchronize(flhal_p_event*);
flhal_status event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out);
flhal_status event_signal(flhal_p_event*, flhal_status);
#endif

}  // namespace chip
#ifdef CHIP_ASYNC

struct flhal_p_stream {
  flhal_p_device* device;
  std::deque<chip::Work> queue{};
  uint64_t submitted = 0, completed = 0;
  bool stop = false;
  flhal_status failure = FLHAL_OK;  // the first one of the work so far; kept as long as the stream lives
  std::thread worker{};
};
#endif

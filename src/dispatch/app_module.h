// src/dispatch/app_module.h: an application's own kernel modules and functions, behind flhal/kernel.h.
//
// Life: a module is reference counted; its functions live as long as it. Released with launches in flight, it is unloaded
// when they have ended. Closing the device unloads it at once; the objects stay and answer FLHAL_E_INVALID.
#pragma once

#include <flhal/kernel.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/stream.h"
#include "memory/address_map.h"

namespace flhal {

inline constexpr uint32_t kModuleTag = 0x4d564c46;    // "FLVM"
inline constexpr uint32_t kFunctionTag = 0x46564c46;  // "FLVF"

struct AppModule;

struct AppFunction {
  uint32_t tag = kFunctionTag;
  AppModule* module = nullptr;
  Device* device = nullptr;
  flhal_p_function* handle = nullptr;                 // nullptr once the device was closed
  std::string name;                                   // in error texts; kept as long as the process
};

struct AppModule {
  uint32_t tag = kModuleTag;
  Device* device = nullptr;
  flhal_p_module* handle = nullptr;
  std::atomic<uint32_t> references{1};
  std::mutex mutex;                                   // functions, more_streams
  std::vector<std::unique_ptr<AppFunction>> functions;
  std::atomic<Stream*> only_stream{nullptr};          // where it was launched; needed on asynchronous chips alone
  std::vector<Stream*> more_streams;

  static Result<AppModule*> load(Device* device, const char* dialect, const void* data, uint64_t bytes,
                                 const char* options);
  void release();
  Result<AppFunction*> function(const char* name);
  void note_stream(Stream* stream);
  void unload();                                      // gives the handle back to the plugin
};

// For the stream's worker: copies the launch with its arguments and holds the module until it has run.
[[gnu::cold]] Status queue_launch(Stream* stream, AppFunction* f, const flhal_p_launch_v1& launch);

// Refusals of a launch.
[[gnu::cold]] Status argument_out_of_place(const AppFunction& f, uint32_t i, uint64_t address, const Slab* slab);
[[gnu::cold]] Status bad_launch(const AppFunction& f, Stream* stream, const uint64_t* groups, const uint32_t* size);

}  // namespace flhal

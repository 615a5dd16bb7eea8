// src/dispatch/app_module.cc: loading, finding, launching, giving back.
#include "dispatch/app_module.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_set>

#include "core/exit.h"
#include "core/worker.h"
#include "dispatch/dispatch.h"
#include "dispatch/reasons.h"
#include "memory/address_map.h"

namespace flhal {
namespace {

struct LiveModules {
  std::mutex mutex;
  std::unordered_set<AppModule*> modules;
};
LiveModules& live_modules() {
  static LiveModules& l = *new LiveModules;           // never destroyed: modules may be released at exit
  return l;
}

}  // namespace

namespace {

struct QueuedLaunch final : Work {
  QueuedLaunch(AppFunction* f, const flhal_p_launch_v1& from) : Work("flhal_launch"), module(f->module), launch(from) {
    module->references.fetch_add(1, std::memory_order_relaxed);
    args.assign(from.args, from.args + from.n_args);
    size_t bytes = 0;
    for (const flhal_p_arg& a : args)
      if (a.kind == FLHAL_ARG_VALUE) bytes += (a.size + 15ull) / 16 * 16;
    values.reset(new (std::align_val_t(16)) char[bytes]);
    char* at = values.get();
    for (flhal_p_arg& a : args) {
      if (a.kind != FLHAL_ARG_VALUE) continue;
      std::memcpy(at, a.value, a.size);
      a.value = at;
      at += (a.size + 15ull) / 16 * 16;
    }
    launch.args = args.data();
  }
  ~QueuedLaunch() override { module->release(); }

  Status run(Stream* stream) override {
    Device* device = module->device;
    return stream->submit("flhal_launch", [&](flhal_p_stream* s) {
      return plugin_call(device->plugin->table.launch, device->handle, s, &launch);
    });
  }

  struct Aligned {
    void operator()(char* p) const { ::operator delete[](p, std::align_val_t(16)); }
  };
  AppModule* const module;
  flhal_p_launch_v1 launch;
  std::vector<flhal_p_arg> args;
  std::unique_ptr<char[], Aligned> values;
};

}  // namespace

Status queue_launch(Stream* stream, AppFunction* f, const flhal_p_launch_v1& launch) {
  return stream->queue(std::make_unique<QueuedLaunch>(f, launch));
}

Status argument_out_of_place(const AppFunction& f, uint32_t i, uint64_t address, const Slab* slab) {
  if (!slab)
    return fail(FLHAL_E_INVALID, "flhal_launch: {}: argument {} lies at {:#x}, which is no device memory", f.name, i,
                address);
  return fail(FLHAL_E_INVALID, "flhal_launch: {}: argument {} lies on device {} ({}), the stream is of device {} ({})",
              f.name, i, slab->device->index, slab->device->name, f.device->index, f.device->name);
}

Status bad_launch(const AppFunction& f, Stream* stream, const uint64_t* groups, const uint32_t* size) {
  if (!f.handle)
    return fail(FLHAL_E_INVALID, "flhal_launch: {}: its device {} was closed or reset; load the module again", f.name,
                f.device->name);
  if (f.device != stream->device)
    return fail(FLHAL_E_INVALID, "flhal_launch: {} was loaded for device {} ({}), the stream is of device {} ({})", f.name,
                f.device->index, f.device->name, stream->device->index, stream->device->name);
  return fail(FLHAL_E_INVALID, "flhal_launch: {}: groups [{}, {}, {}] of [{}, {}, {}] work-items; none may be 0", f.name,
              groups[0], groups[1], groups[2], size[0], size[1], size[2]);
}

Result<AppModule*> AppModule::load(Device* device, const char* dialect, const void* data, uint64_t bytes,
                                   const char* options) {
  if (!dialect || !data) return fail(FLHAL_E_INVALID, "flhal_module_load: dialect and data may not be NULL");
  Plugin& plugin = *device->plugin;
  std::string offered = std::string(" ") + (device->info.dialects ? device->info.dialects : "") + " ";
  if (!plugin.has_kernels || offered.find(" " + std::string(dialect) + " ") == std::string::npos)
    return fail(FLHAL_E_UNSUPPORTED, "flhal_module_load: {} does not take dialect \"{}\"; its dialects: {}", device->name,
                dialect, plugin.has_kernels && offered.size() > 2 ? offered.substr(1, offered.size() - 2) : "none");
  FLHAL_TRY(device->open());
  std::vector<char> log(64 * 1024);
  flhal_p_source_v1 source{};
  source.struct_size = sizeof source;
  source.struct_type = FLHAL_ST_SOURCE;
  source.dialect = dialect;
  source.data = data;
  source.bytes = bytes;
  source.options = options;
  source.build_log = log.data();
  source.build_log_capacity = log.size();
  flhal_p_module* handle = nullptr;
  flhal_status answer;
  {
    auto serial = plugin.lock();
    answer = plugin_call(plugin.table.module_load, device->handle, &source, &handle);
  }
  if (answer != FLHAL_OK || !handle) {
    Status failure = plugin_answer(plugin, "module_load", answer);
    if (failure.ok()) return fail(FLHAL_E_BUILD, "flhal_module_load: {} gave no module", device->name);
    log.back() = 0;
    if (answer == FLHAL_E_BUILD && log[0]) return fail(FLHAL_E_BUILD, "{}; build log:\n{}", last_error_text(), log.data());
    return failure;
  }
  rest_before_exit();
  auto* module = new AppModule;
  module->device = device;
  module->handle = handle;
  std::lock_guard lock(live_modules().mutex);
  live_modules().modules.insert(module);
  return module;
}

void AppModule::unload() {
  flhal_p_module* h;
  {
    std::lock_guard lock(live_modules().mutex);
    live_modules().modules.erase(this);
    h = std::exchange(handle, nullptr);
  }
  for (auto& f : functions) f->handle = nullptr;
  if (!h) return;
  auto serial = device->plugin->lock();
  plugin_call(device->plugin->table.module_unload, h);
}

void AppModule::release() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  tag = 0;
  for (auto& f : functions) f->tag = 0;
  std::vector<Point> points;
  if (Stream* s = only_stream.load(std::memory_order_relaxed)) points.push_back(s->here());
  for (Stream* s : more_streams) points.push_back(s->here());
  retire(points.data(), static_cast<uint32_t>(points.size()),
         [](void* self) {
           auto* module = static_cast<AppModule*>(self);
           module->unload();
           delete module;
         },
         this);
}

Result<AppFunction*> AppModule::function(const char* name) {
  if (!name) return fail(FLHAL_E_INVALID, "flhal_function_get: name may not be NULL");
  std::lock_guard lock(mutex);
  for (auto& f : functions)
    if (f->name == name) return f.get();
  if (!handle) return fail(FLHAL_E_INVALID, "flhal_function_get: the module's device {} was closed or reset", device->name);
  flhal_p_function* found = nullptr;
  flhal_status answer;
  {
    auto serial = device->plugin->lock();
    answer = plugin_call(device->plugin->table.function_get, handle, name, &found);
  }
  if (answer != FLHAL_OK || !found) {
    Status failure = plugin_answer(*device->plugin, "function_get", answer);
    if (!failure.ok() && failure.code() != FLHAL_E_NOT_FOUND && failure.code() != FLHAL_E_INVALID) return failure;
    return fail(FLHAL_E_NOT_FOUND, "flhal_function_get: the module has no function \"{}\"", name);
  }
  auto f = std::make_unique<AppFunction>();
  f->module = this;
  f->device = device;
  f->handle = found;
  f->name = name;
  functions.push_back(std::move(f));
  return functions.back().get();
}

void AppModule::note_stream(Stream* stream) {
  Stream* none = nullptr;
  if (only_stream.compare_exchange_strong(none, stream, std::memory_order_relaxed) || none == stream) return;
  std::lock_guard lock(mutex);
  if (std::find(more_streams.begin(), more_streams.end(), stream) == more_streams.end()) more_streams.push_back(stream);
}

void unload_application_modules(Device* device) {
  std::vector<AppModule*> modules;
  {
    std::lock_guard lock(live_modules().mutex);
    for (AppModule* m : live_modules().modules)
      if (m->device == device) modules.push_back(m);
  }
  for (AppModule* m : modules) m->unload();
}

}  // namespace flhal

// module.cc: modules, functions and launches of the dialect "flhal-host-1".
#include <cstring>

#include "mock.h"

namespace mock {
namespace {

// What a launch keeps: its arguments are only valid during the call, the work runs later.
struct Launch {
  const flhal_host_function* code;
  flhal_p_module* module;
  uint64_t count;
  std::vector<const void*> argv;
  std::vector<std::unique_ptr<char[]>> owned;   // value bytes and local memory, each aligned for any scalar
};

flhal_status bad_launch(flhal_p_device* device, const char* text) {
  misuse(device->chip, text);
  return fail(FLHAL_E_INVALID, std::string("mock: launch: ") + text);
}

const flhal_p_arg& argument(const flhal_p_launch_v1* l, uint32_t i) {
  uint32_t stride = l->arg_stride != 0 ? l->arg_stride : sizeof(flhal_p_arg);
  return *reinterpret_cast<const flhal_p_arg*>(reinterpret_cast<const char*>(l->args) + static_cast<size_t>(i) * stride);
}

flhal_status take_arguments(flhal_p_device* device, const flhal_p_launch_v1* l, Launch* out, std::vector<flhal_p_memory*>* uses) {
  for (uint32_t i = 0; i < l->n_args; ++i) {
    const flhal_p_arg& arg = argument(l, i);
    if (arg.kind == FLHAL_ARG_MEMORY) {
      flhal_p_memory* m = arg.memory != nullptr ? arg.memory : memory_at(arg.address);
      if (m == nullptr && arg.address == 0) {   // an operand that is absent
        out->argv.push_back(nullptr);
        continue;
      }
      if (m == nullptr) return bad_launch(device, "an address that no live slab holds");
      uint64_t offset = arg.memory != nullptr ? arg.offset : arg.address - m->address;
      if (offset > m->bytes) return bad_launch(device, "an offset outside of its slab");
      if (arg.memory != nullptr && arg.address != 0 && arg.address != m->address + offset)
        return bad_launch(device, "an address that is not slab plus offset");
      uses->push_back(m);
      out->argv.push_back(m->inside + offset);
    } else if (arg.kind == FLHAL_ARG_VALUE || arg.kind == FLHAL_ARG_LOCAL) {
      out->owned.push_back(std::make_unique<char[]>(arg.size == 0 ? 1 : arg.size));
      if (arg.kind == FLHAL_ARG_VALUE) memcpy(out->owned.back().get(), arg.value, arg.size);
      out->argv.push_back(out->owned.back().get());
    } else {
      return bad_launch(device, "an argument of unknown kind");
    }
  }
  return FLHAL_OK;
}

// The contract allows any split in any order; a kernel that needs another one is found here.
void run(const Launch& launch) {
  if (launch.count < 2) {
    if (launch.count == 1) launch.code->run(launch.argv.data(), 0, 1);
    return;
  }
  uint64_t half = launch.count / 2;
  launch.code->run(launch.argv.data(), half, launch.count - half);
  launch.code->run(launch.argv.data(), 0, half);
}

}  // namespace

namespace slots {

flhal_status module_load(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module** out) {
  if (flhal_status s = extensions(source->next, "module_load"); s != FLHAL_OK) return s;
  if (flhal_status s = slot_begin(Slot::module_load, device->chip); s != FLHAL_OK) {
    if (s == FLHAL_E_BUILD && source->build_log != nullptr && source->build_log_capacity > 0)
      snprintf(source->build_log, source->build_log_capacity, "mock: line 1: the script made this build fail");
    return s;
  }
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: module_load: the device is lost");
  if (source->dialect == nullptr || strcmp(source->dialect, FLHAL_DIALECT_HOST) != 0)
    return fail(FLHAL_E_UNSUPPORTED, std::string("mock: module_load: dialect '") + (source->dialect ? source->dialect : "") +
                                         "' is unknown; this chip takes " FLHAL_DIALECT_HOST);
  auto* module = new flhal_p_module();
  module->device = device;
  module->code = static_cast<const flhal_host_module*>(source->data);
  device->counts().live_modules.fetch_add(1);
  *out = module;
  return FLHAL_OK;
}

void module_unload(flhal_p_module* module) {
  if (module->in_use.load() != 0) misuse(module->device->chip, "module_unload while launches are queued");
  module->device->counts().live_modules.fetch_sub(1);
  delete module;
}

flhal_status function_get(flhal_p_module* module, const char* name, flhal_p_function** out) {
  if (flhal_status s = slot_begin(Slot::function_get, module->device->chip); s != FLHAL_OK) return s;
  for (uint32_t i = 0; i < module->code->n_functions; ++i) {
    const flhal_host_function& code = module->code->functions[i];
    if (strcmp(code.name, name) != 0) continue;
    std::lock_guard lock(module->mutex);
    *out = &module->functions.emplace_back(flhal_p_function{&code, module});
    return FLHAL_OK;
  }
  return fail(FLHAL_E_NOT_FOUND, std::string("mock: function_get: the module has no function '") + name + "'");
}

flhal_status launch(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_launch_v1* l) {
  if (flhal_status s = slot_begin(Slot::launch, device->chip); s != FLHAL_OK) return s;
  if (flhal_status s = extensions(l->next, "launch"); s != FLHAL_OK) return s;
  if (l->groups[1] > 1 || l->groups[2] > 1 || l->group_size[0] > 1 || l->group_size[1] > 1 || l->group_size[2] > 1)
    return bad_launch(device, "groups[1], groups[2] and group_size are 1 in this dialect");
  auto kept = std::make_shared<Launch>();
  kept->code = l->function->code;
  kept->module = l->function->module;
  kept->count = l->groups[0];
  std::vector<flhal_p_memory*> uses;
  if (flhal_status s = take_arguments(device, l, kept.get(), &uses); s != FLHAL_OK) return s;
  kept->module->in_use.fetch_add(1);
  // The count goes back when the closure is destroyed, also when the work never ran.
  std::shared_ptr<void> hold(nullptr, [module = kept->module](void*) { module->in_use.fetch_sub(1); });
  flhal_status answer = submit(device, stream, Slot::launch, std::move(uses), [kept, hold]() -> Outcome {
    run(*kept);
    return {};
  });
  if (answer == FLHAL_OK) device->counts().launches.fetch_add(1, std::memory_order_relaxed);
  return answer;
}

}  // namespace slots
}  // namespace mock

// reference_plugins/host/module.cc: the dialect "flhal-host-1": code that is compiled already and lies in the process.
//
// Idea: module_load looks at the list of functions once and sorts it by name; launch turns the arguments into pointers on
// the stack and splits groups[0] over the threads. One group = work that is worth a thread's while (the kernel plan
// decides that), so a launch of one group runs in the caller without entering a parallel region.
#include "host_plugin.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include "threads.h"

struct flhal_p_function {
  std::string_view name;
  flhal_host_kernel run;
};

struct flhal_p_module {
  flhal_p_plugin* plugin;
  std::vector<flhal_p_function> functions;   // sorted by name; never changes, so pointers into it are the handles
};

namespace flhal::host {
namespace {
constexpr uint32_t kMaxArgs = 256;
// A core of 1.0 gives this much, for ever; a member behind it is read only where struct_size reaches it.
constexpr uint32_t kModuleBytesV1_0 = offsetof(flhal_host_module, functions) + sizeof(void*);
}

flhal_status module_load(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module** out) {
  if (uint32_t needed = flhal_needed_extension(source->next)) return needs_extension(device->plugin->host, "module_load", needed);
  try {
    if (source->build_log && source->build_log_capacity) source->build_log[0] = 0;
    if (!source->dialect || std::strcmp(source->dialect, FLHAL_DIALECT_HOST) != 0)
      return fail(device->plugin, FLHAL_E_UNSUPPORTED,
                  fmt::format("host: module_load got the dialect \"{}\"; this device takes \"{}\"",
                              source->dialect ? source->dialect : "(none)", FLHAL_DIALECT_HOST));
    auto* given = static_cast<const flhal_host_module*>(source->data);
    if (!given || given->struct_size < kModuleBytesV1_0 || (given->n_functions && !given->functions))
      return fail(device->plugin, FLHAL_E_INVALID,
                  fmt::format("host: module_load needs `data` to be a flhal_host_module of at least {} bytes; struct_size is {}",
                              kModuleBytesV1_0, given ? given->struct_size : 0));
    auto module = std::make_unique<flhal_p_module>();
    module->plugin = device->plugin;
    module->functions.reserve(given->n_functions);
    for (uint32_t i = 0; i < given->n_functions; ++i)
      module->functions.push_back({given->functions[i].name, given->functions[i].run});
    std::sort(module->functions.begin(), module->functions.end(), [](auto& a, auto& b) { return a.name < b.name; });
    *out = module.release();
    return FLHAL_OK;
  } catch (const std::exception& e) {
    return fail(device->plugin, FLHAL_E_INTERNAL, fmt::format("host: module_load failed: {}", e.what()));
  }
}

void module_unload(flhal_p_module* module) { delete module; }

flhal_status function_get(flhal_p_module* module, const char* name, flhal_p_function** out) {
  auto& list = module->functions;
  auto at = std::lower_bound(list.begin(), list.end(), std::string_view(name),
                             [](auto& f, std::string_view n) { return f.name < n; });
  if (at == list.end() || at->name != name)
    return fail(module->plugin, FLHAL_E_NOT_FOUND,
                fmt::format("host: the module has no function \"{}\" among its {}", name, list.size()));
  *out = &*at;
  return FLHAL_OK;
}

// The refusals of launch, apart from it: their texts would cost every launch a larger frame.
[[gnu::noinline]] static flhal_status refuse_launch(flhal_p_device* device, const flhal_p_launch_v1* l) {
  return fail(device->plugin, FLHAL_E_INVALID,
              fmt::format("host: launch of {} x {} x {} groups with {} arguments; the dialect " FLHAL_DIALECT_HOST
                          " splits groups[0] only and takes at most {} arguments",
                          l->groups[0], l->groups[1], l->groups[2], l->n_args, kMaxArgs));
}
[[gnu::noinline]] static flhal_status refuse_argument(flhal_p_device* device, uint32_t i, uint32_t kind) {
  return fail(device->plugin, FLHAL_E_UNSUPPORTED,
              fmt::format("host: argument {} of a launch has kind {}; the dialect " FLHAL_DIALECT_HOST
                          " has values and memory, no work-group memory", i, kind));
}

flhal_status launch(flhal_p_device* device, flhal_p_stream*, const flhal_p_launch_v1* l) {
  if (l->n_args > kMaxArgs || l->groups[1] > 1 || l->groups[2] > 1) return refuse_launch(device, l);
  if (__builtin_expect(l->next != nullptr, 0)) {
    if (uint32_t needed = flhal_needed_extension(l->next)) return needs_extension(device->plugin->host, "launch", needed);
  }
  const void* argv[kMaxArgs];   // not initialised: only n_args of it are written and read
  const char* at = reinterpret_cast<const char*>(l->args);
  for (uint32_t i = 0; i < l->n_args; ++i, at += l->arg_stride) {
    auto& arg = *reinterpret_cast<const flhal_p_arg*>(at);
    if (__builtin_expect(arg.kind == FLHAL_ARG_MEMORY, 1)) {
      argv[i] = reinterpret_cast<const void*>(arg.address);
      if (__builtin_expect(arg.address == 0 && arg.memory != nullptr, 0)) argv[i] = arg.memory->base + arg.offset;
    } else if (arg.kind == FLHAL_ARG_VALUE) {
      argv[i] = arg.value;
    } else {
      return refuse_argument(device, i, arg.kind);
    }
  }
  const flhal_host_kernel run = l->function->run;
  const uint64_t groups = l->groups[0];
  if (groups <= 1) {                     // the small calls, without asking OpenMP anything
    if (groups == 1) run(argv, 0, 1);
    return FLHAL_OK;
  }
  for_ranges(groups, [&](uint64_t first, uint64_t count) { run(argv, first, count); });
  return FLHAL_OK;
}

}  // namespace flhal::host

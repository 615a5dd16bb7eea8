// reference_plugins/host/module.cc: the dialects "flhal-host-1", code that is compiled already and lies in the process, and
// "flhal-host-elf-1", shared objects whose functions have described signatures.
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

#include "elf_object.h"
#include "native_function.h"
#include "threads.h"

struct flhal_p_function {
  std::string_view name;
  flhal_host_kernel run;                     // nullptr: `native` is called
  const flhal::host::NativeFunction* native = nullptr;
};

struct flhal_p_module {
  flhal_p_plugin* plugin;
  std::vector<flhal_p_function> functions;   // sorted by name; never changes, so pointers into it are the handles
  flhal::host::ElfObject object;
  std::vector<std::unique_ptr<flhal::host::NativeFunction>> natives;
};

namespace flhal::host {
namespace {
constexpr uint32_t kMaxArgs = 256;
// A core of 1.0 gives this much, for ever; a member behind it is read only where struct_size reaches it.
constexpr uint32_t kModuleBytesV1_0 = offsetof(flhal_host_module, functions) + sizeof(void*);

void sort_by_name(flhal_p_module& module) {
  std::sort(module.functions.begin(), module.functions.end(), [](auto& a, auto& b) { return a.name < b.name; });
}

flhal_status load_compiled(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module& module) {
  auto* given = static_cast<const flhal_host_module*>(source->data);
  if (!given || given->struct_size < kModuleBytesV1_0 || (given->n_functions && !given->functions))
    return fail(device->plugin, FLHAL_E_INVALID,
                fmt::format("host: module_load needs `data` to be a flhal_host_module of at least {} bytes; struct_size is {}",
                            kModuleBytesV1_0, given ? given->struct_size : 0));
  module.functions.reserve(given->n_functions);
  for (uint32_t i = 0; i < given->n_functions; ++i)
    module.functions.push_back({given->functions[i].name, given->functions[i].run});
  return FLHAL_OK;
}

// Reads the signatures, opens the object and finds each function. "" or why that is not possible.
std::string fault_of_object(const flhal_p_source_v1* source, flhal_p_module& module) {
  if (source->data == nullptr || source->bytes == 0) return "there is no image and no path: `data` is NULL or has 0 bytes";
  std::string_view rest = source->options ? source->options : "";
  while (!rest.empty()) {
    const size_t end = rest.find_first_of(";\n");
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (std::string why = NativeFunction::parse(line, &module.natives.emplace_back()); !why.empty()) return why;
  }
  if (module.natives.empty())
    return "no function is described; `options` lists the signatures, as \"saxpy(f32, ptr, ptr, first, count); ...\"";
  if (std::string why = module.object.open({static_cast<const char*>(source->data), source->bytes}); !why.empty()) return why;
  for (auto& native : module.natives) {
    void* code = module.object.find(native->name().c_str());
    if (code == nullptr)
      return fmt::format("the object exports no function \"{}\", which is described; declare it extern \"C\" and with default visibility",
                         native->name());
    native->set_code(code);
    module.functions.push_back({native->name(), nullptr, native.get()});
  }
  return "";
}

flhal_status load_object(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module& module) {
  const std::string why = fault_of_object(source, module);
  if (why.empty()) return FLHAL_OK;
  if (source->build_log && source->build_log_capacity) {
    const size_t n = std::min<size_t>(why.size(), source->build_log_capacity - 1);
    std::memcpy(source->build_log, why.data(), n);
    source->build_log[n] = 0;
  }
  return fail(device->plugin, FLHAL_E_BUILD, "host: module_load: " + why);
}

}  // namespace

flhal_status module_load(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module** out) {
  if (uint32_t needed = flhal_needed_extension(source->next)) return needs_extension(device->plugin->host, "module_load", needed);
  try {
    if (source->build_log && source->build_log_capacity) source->build_log[0] = 0;
    const std::string_view dialect = source->dialect ? source->dialect : "(none)";
    if (dialect != FLHAL_DIALECT_HOST && dialect != FLHAL_DIALECT_HOST_ELF)
      return fail(device->plugin, FLHAL_E_UNSUPPORTED,
                  fmt::format("host: module_load got the dialect \"{}\"; this device takes \"{}\" and \"{}\"", dialect,
                              FLHAL_DIALECT_HOST, FLHAL_DIALECT_HOST_ELF));
    auto module = std::make_unique<flhal_p_module>();
    module->plugin = device->plugin;
    const auto load = dialect == FLHAL_DIALECT_HOST ? load_compiled : load_object;
    if (flhal_status status = load(device, source, *module); status != FLHAL_OK) return status;
    sort_by_name(*module);
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
                fmt::format("host: the module has no function \"{}\" among its {}{}", name, list.size(),
                            module->natives.empty() ? "" : " that were described"));
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

// A function of a shared object: its arguments must be what its signature says.
[[gnu::noinline]] static flhal_status launch_native(flhal_p_device* device, const flhal_p_launch_v1* l, const void* const* argv) {
  const NativeFunction& f = *l->function->native;
  auto refuse = [&](const std::string& why) {
    return fail(device->plugin, FLHAL_E_INVALID, fmt::format("host: launch of {}: {}", f.name(), why));
  };
  if (l->n_args != f.n_arguments())
    return refuse(fmt::format("{} arguments are given; its signature has {}", l->n_args, f.n_arguments()));
  uint32_t i = 0;
  for (const NativeFunction::Parameter& p : f.parameters()) {
    if (p.kind != NativeFunction::Kind::kValue && p.kind != NativeFunction::Kind::kMemory) continue;
    const auto& arg = *reinterpret_cast<const flhal_p_arg*>(reinterpret_cast<const char*>(l->args) + uint64_t{i} * l->arg_stride);
    const bool memory = arg.kind == FLHAL_ARG_MEMORY;
    if (memory != (p.kind == NativeFunction::Kind::kMemory) || (!memory && arg.size != p.bytes))
      return refuse(fmt::format("argument {} is {}; its signature says {}", i,
                                memory ? "memory" : fmt::format("a value of {} bytes", arg.size), p.type));
    ++i;
  }
  if (!f.takes_ranges() && l->groups[0] > 1)
    return refuse(fmt::format("{} groups are to run; a function that takes no first and count is called once", l->groups[0]));
  for_ranges(l->groups[0], [&](uint64_t first, uint64_t count) { f.call(argv, first, count); });
  return FLHAL_OK;
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
  if (__builtin_expect(run == nullptr, 0)) return launch_native(device, l, argv);
  const uint64_t groups = l->groups[0];
  if (groups <= 1) {                     // the small calls, without asking OpenMP anything
    if (groups == 1) run(argv, 0, 1);
    return FLHAL_OK;
  }
  for_ranges(groups, [&](uint64_t first, uint64_t count) { run(argv, first, count); });
  return FLHAL_OK;
}

}  // namespace flhal::host

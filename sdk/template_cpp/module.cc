// module.cc: code for the chip, and launching it. With these four slots core's portable kernels run on the chip.
//
// The dialect is "flhal-host-1", functions that are compiled already, since this chip is the process's own processor.
// driver: list your compiler's language in device_info. For "opencl-c-1.2" core writes its kernels as text, module_load
// compiles it, and launch passes groups, group_size and the arguments on.
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "chip.h"

struct flhal_p_function {                 // driver: its kernel object
  flhal_host_kernel run;
  std::string_view name;                  // core's text
};

struct flhal_p_module {                   // driver: its program object
  std::vector<flhal_p_function> functions;
};

namespace chip {

static void refuse_extension(const void* next, const char* slot) {
  if (flhal_needed_extension(next))
    throw flhal::Error(FLHAL_E_UNSUPPORTED, std::string(kName) + ": " + slot + " needs an extension that this plugin does not know; install a newer plugin");
}

// Slot 11. driver: compile, and on failure leave the compiler's words in source->build_log and answer FLHAL_E_BUILD.
flhal_status module_load(flhal_p_device*, const flhal_p_source_v1* source, flhal_p_module** out) {
  refuse_extension(source->next, "module_load");
  if (source->build_log != nullptr && source->build_log_capacity != 0) source->build_log[0] = 0;
  if (source->dialect == nullptr || std::strcmp(source->dialect, FLHAL_DIALECT_HOST) != 0)
    throw flhal::Error(FLHAL_E_UNSUPPORTED, std::string(kName) + ": module_load: this chip takes the dialect " FLHAL_DIALECT_HOST " only");
  auto* code = static_cast<const flhal_host_module*>(source->data);
  if (code == nullptr || code->struct_size < sizeof *code || (code->n_functions != 0 && code->functions == nullptr))
    throw flhal::Error(FLHAL_E_INVALID, std::string(kName) + ": module_load: `data` is no flhal_host_module");
  auto module = std::make_unique<flhal_p_module>();
  for (uint32_t i = 0; i < code->n_functions; ++i) module->functions.push_back({code->functions[i].run, code->functions[i].name});
  *out = module.release();
  return FLHAL_OK;
}

// Slot 12. No launch of its functions is unfinished.
void module_unload(flhal_p_module* module) { delete module; }

// Slot 13. The function belongs to the module, and is given up with it.
flhal_status function_get(flhal_p_module* module, const char* name, flhal_p_function** out) {
  for (flhal_p_function& function : module->functions)
    if (function.name == name) return *out = &function, FLHAL_OK;
  throw flhal::Error(FLHAL_E_NOT_FOUND, std::string(kName) + ": function_get: the module has no function \"" + name + "\"");
}

namespace {

// A launch, copied out of the call. Values lie in blocks of 16 bytes, so each is aligned for any scalar.
struct Launch {
  struct alignas(16) Block { char bytes[16]; };
  flhal_host_kernel run;
  uint64_t groups;
  std::vector<const void*> argv;
  std::vector<std::vector<Block>> values;
};

flhal_status run_launch(const Launch& launch) {
  if (launch.groups != 0) launch.run(launch.argv.data(), 0, launch.groups);   // driver: all of its cores share the groups
  return FLHAL_OK;
}

}  // namespace

// Slot 14.
#ifndef CHIP_ASYNC
flhal_status launch(flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1* given) {
#endif
#ifdef CHIP_ASYNC
flhal_status launch(flhal_p_device*, flhal_p_stream* stream, const flhal_p_launch_v1* given) {
#endif
  refuse_extension(given->next, "launch");
  if (given->groups[1] > 1 || given->groups[2] > 1)
    throw flhal::Error(FLHAL_E_INVALID, std::string(kName) + ": launch: the dialect " FLHAL_DIALECT_HOST " has groups in one dimension");
  auto launch = std::make_shared<Launch>();
  launch->run = given->function->run;
  launch->groups = given->groups[0];
  for (uint32_t i = 0; i < given->n_args; ++i) {
    auto& arg = *reinterpret_cast<const flhal_p_arg*>(reinterpret_cast<const char*>(given->args) + uint64_t{i} * given->arg_stride);
    if (arg.kind == FLHAL_ARG_MEMORY) {
      launch->argv.push_back(arg.memory != nullptr ? arg.memory->bytes.get() + arg.offset : nullptr);   // null: an absent operand
    } else if (arg.kind == FLHAL_ARG_VALUE) {
      auto& kept = launch->values.emplace_back((arg.size + 15) / 16);
      std::memcpy(kept.data(), arg.value, arg.size);
      launch->argv.push_back(kept.data());
    } else {
      throw flhal::Error(FLHAL_E_UNSUPPORTED, std::string(kName) + ": launch: this chip has no work-group memory");
    }
  }
#ifndef CHIP_ASYNC
  return run_launch(*launch);
#endif
#ifdef CHIP_ASYNC
  return submit(stream, [launch] { return run_launch(*launch); });
#endif
}

}  // namespace chip

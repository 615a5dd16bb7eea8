// conformance/mutants/module.cc: wrong in modules, functions and launches.
#include <cstring>
#include <vector>

#include "mutant.h"

namespace flhal::mutants {
namespace {

void nothing(const void* const*, uint64_t, uint64_t) {}
constexpr flhal_host_function kFunctions[] = {{"nothing", nothing}};
constexpr flhal_host_module kModule = {sizeof(flhal_host_module), 1, kFunctions};

// A launch as it is, with its description changed; `args` are a copy that may be changed, too.
void (*change)(flhal_p_launch_v1*, flhal_p_arg* args) = nullptr;
void launch_with(void (*c)(flhal_p_launch_v1*, flhal_p_arg*)) {
  change = c;
  table.launch = [](Device d, Stream s, const flhal_p_launch_v1* what) {
    flhal_p_launch_v1 changed = *what;
    std::vector<flhal_p_arg> args(what->n_args);
    for (uint32_t i = 0; i < what->n_args; ++i)
      std::memcpy(&args[i], reinterpret_cast<const char*>(what->args) + size_t{i} * what->arg_stride, sizeof(flhal_p_arg));
    change(&changed, args.data());
    return base.launch(d, s, &changed);
  };
}

}  // namespace

MUTATION(every_dialect_loads) {
  table.module_load = [](Device d, const flhal_p_source_v1* source, flhal_p_module** out) {
    if (std::strcmp(source->dialect, FLHAL_DIALECT_HOST) == 0) return base.module_load(d, source, out);
    flhal_p_source_v1 empty{sizeof empty, FLHAL_ST_SOURCE, nullptr, FLHAL_DIALECT_HOST, &kModule, sizeof kModule, "", nullptr, 0};
    return base.module_load(d, &empty, out);
  };
}
MUTATION(log_runs_past_its_room) {
  table.module_load = [](Device d, const flhal_p_source_v1* source, flhal_p_module** out) {
    if (source->build_log != nullptr) std::memcpy(source->build_log + source->build_log_capacity - 2, "ok!", 4);
    return base.module_load(d, source, out);
  };
}
MUTATION(modules_stay) {
  table.module_unload = [](flhal_p_module*) {};
}
MUTATION(every_name_is_a_function) {
  static const char* const kKnown = "count_group";
  table.function_get = [](flhal_p_module* module, const char* name, flhal_p_function** out) {
    flhal_status s = base.function_get(module, name, out);
    return s == FLHAL_E_NOT_FOUND ? base.function_get(module, kKnown, out) : s;
  };
}
MUTATION(last_group_is_missing) {
  launch_with([](flhal_p_launch_v1* l, flhal_p_arg*) { l->groups[0] -= l->groups[0] > 1; });
}
MUTATION(groups_run_twice) {
  table.launch = [](Device d, Stream s, const flhal_p_launch_v1* what) {
    flhal_status first = base.launch(d, s, what);
    return first == FLHAL_OK ? base.launch(d, s, what) : first;
  };
}
MUTATION(argument_stride_is_ignored) {
  launch_with([](flhal_p_launch_v1* l, flhal_p_arg*) { l->arg_stride = sizeof(flhal_p_arg); });
}
MUTATION(argument_offset_is_ignored) {
  launch_with([](flhal_p_launch_v1* l, flhal_p_arg* args) {
    for (uint32_t i = 0; i < l->n_args; ++i)
      if (args[i].kind == FLHAL_ARG_MEMORY) args[i].address -= args[i].address != 0 ? args[i].offset : 0, args[i].offset = 0;
    l->args = args;
    l->arg_stride = sizeof(flhal_p_arg);
  });
}
MUTATION(fill_waits_for_the_next_copy) {
  struct Held { bool any; flhal_p_place to; uint64_t bytes; char pattern[16]; uint32_t width; };
  static Held held{};
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) -> flhal_status {
    if (s != nullptr) return base.fill(d, s, to, n, pattern, width);
    held = {true, *to, n, {}, width};
    std::memcpy(held.pattern, pattern, width);
    return FLHAL_OK;
  };
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) {
    if (held.any) base.fill(d, nullptr, &held.to, held.bytes, held.pattern, held.width);
    held.any = false;
    return base.copy(d, s, what);
  };
}

}  // namespace flhal::mutants

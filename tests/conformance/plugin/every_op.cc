// tests/conformance/plugin/every_op.cc: a plugin whose native operations are core's portable kernels, on the template's memory.
#include <new>
#include <string>

extern "C" {
#include "chip.h"
}
#include "kernels/kernel_plan.h"

using namespace flhal::kernels;

struct flhal_p_plan {
  flhal_p_device* device;
  std::unique_ptr<KernelPlan> kernel;
};

extern "C" flhal_status chip_fail(const flhal_p_plugin* plugin, flhal_status status, const char* text) {
  plugin->host->set_error(status, 0, text);
  return status;
}

namespace {

flhal_status init(const flhal_host_v1* host, const flhal_init_v1*, flhal_p_plugin** out) {
  *out = new flhal_p_plugin{host};
  return FLHAL_OK;
}
void shutdown(flhal_p_plugin* plugin) { delete plugin; }

flhal_status plan_create(flhal_p_device* device, const flhal_op_call_v1* call, flhal_plan_info_v1* info, flhal_p_plan** out) {
  const char* reason = "";
  auto kernel = call->op != 0 ? make_kernel_plan(*call, Target{}, &reason) : nullptr;
  if (kernel == nullptr || kernel->host == nullptr) {
    info->reason = reason != nullptr && *reason != 0 ? reason : "there is no kernel for it";
    return FLHAL_DECLINED;
  }
  info->depends_on = kernel->depends_on;
  *out = new flhal_p_plan{device, std::move(kernel)};
  return FLHAL_OK;
}

flhal_status plan_run(flhal_p_plan* plan, flhal_p_stream*, const flhal_op_call_v1* call, const flhal_p_place*) {
  LaunchArgs args;
  KernelError error;
  args.error = plan->kernel->can_fail ? &error : nullptr;
  plan->kernel->arguments(*call, args);
  const void* argv[kMaxArgs];
  for (uint32_t i = 0; i < args.n_args; ++i) {
    const flhal_p_arg& a = args.args[i];
    argv[i] = args.operand[i] < 0 ? a.value : a.memory != nullptr ? a.memory->bytes + a.offset : nullptr;
  }
  plan->kernel->host(argv, 0, args.groups[0]);
  return error.code == 0 ? FLHAL_OK : chip_fail(plan->device->plugin, FLHAL_E_INVALID, kernel_error_text(error).c_str());
}
void plan_destroy(flhal_p_plan* plan) { delete plan; }
flhal_status op_describe(flhal_p_plugin*, uint32_t, const char**, const char**) { return FLHAL_DECLINED; }

constexpr flhal_ops_v1 kOps = {sizeof(flhal_ops_v1), FLHAL_ST_OPS, nullptr, 0, 0, plan_create, plan_run, plan_destroy, op_describe};
constexpr flhal_plugin_table_v1 kTable = {
    .struct_size = sizeof(flhal_plugin_table_v1), .struct_type = FLHAL_ST_TABLE, .next = nullptr,
    .init = init, .shutdown = shutdown, .device_count = chip_device_count, .device_info = chip_device_info,
    .device_open = chip_device_open, .device_close = chip_device_close, .memory_alloc = chip_memory_alloc,
    .memory_free = chip_memory_free, .copy = chip_copy, .fill = chip_fill,
};

}  // namespace

flhal_status flhal_plugin_v1(const flhal_host_v1*, flhal_plugin_info_v1* out) {
  out->abi_minor = FLHAL_PLUGIN_ABI_MINOR;
  out->id = FLHAL_PLUGIN_ID;
  out->version = FLHAL_PLUGIN_VERSION;
  out->build_id = FLHAL_PLUGIN_ID "-" FLHAL_PLUGIN_VERSION;
  out->vendor = "flhal";
  out->flags = FLHAL_PLUGIN_SERIALIZE_ALL | FLHAL_PLUGIN_FORK_SAFE_PROBE;
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = 1;
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = 2;
#endif
  out->table = &kTable;
  out->optional_table = [](const char* name, uint32_t) -> const void* { return std::string(name) == "ops" ? &kOps : nullptr; };
  return FLHAL_OK;
}

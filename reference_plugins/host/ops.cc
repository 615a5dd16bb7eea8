// reference_plugins/host/ops.cc: the optional table "ops": which native operators there are, and the plan slots.
//
// A row is op and maker; what a maker declines goes to the portable kernels, with the reason in core's reports.
#include <fmt/core.h>

#include <cstring>
#include <exception>

#include "onednn.h"
#include "ops_makers.h"
#include "plan.h"

namespace flhal::host {
namespace {

PlanMaker maker_of(uint32_t op) {
  switch (op) {
    case FLHAL_OP_MATMUL: return make_matmul;
    case FLHAL_OP_CONV2D: return make_conv2d;
    case FLHAL_OP_CONV2D_BACKWARD_INPUT: return make_conv2d_backward_input;
    case FLHAL_OP_CONV2D_BACKWARD_WEIGHT: return make_conv2d_backward_weight;
    case FLHAL_OP_SOFTMAX: return make_softmax;
    case FLHAL_OP_LOG_SOFTMAX: return make_log_softmax;
    case FLHAL_OP_SOFTMAX_BACKWARD: return make_softmax_backward;
    case FLHAL_OP_LOG_SOFTMAX_BACKWARD: return make_log_softmax_backward;
    case FLHAL_OP_LAYER_NORM: return make_layer_norm;
    case FLHAL_OP_LAYER_NORM_BACKWARD: return make_layer_norm_backward;
    case FLHAL_OP_BATCH_NORM: return make_batch_norm;
    case FLHAL_OP_BATCH_NORM_BACKWARD: return make_batch_norm_backward;
    case FLHAL_OP_MAX_POOL2D: return make_max_pool2d;
    case FLHAL_OP_MAX_POOL2D_BACKWARD: return make_max_pool2d_backward;
    case FLHAL_OP_AVG_POOL2D: return make_avg_pool2d;
    default: return nullptr;
  }
}

// A missing oneDNN makes everything slower, not wrong: one line in the log, and the reason in every report.
void warn_once(flhal_p_device* device, const char* reason) {
  static std::atomic<bool> done{false};
  constexpr int32_t kWarn = 1;
  if (!done.exchange(true) && device->plugin->host->log)
    device->plugin->host->log(kWarn, fmt::format("host: products and convolutions run on portable kernels, which are slower: {}",
                                                 reason).c_str());
}

flhal_status plan_create(flhal_p_device* device, const flhal_op_call_v1* proto, flhal_plan_info_v1* info, flhal_p_plan** out) {
  if (flhal_needed_extension(proto->next) || flhal_needed_extension(info->next)) {
    info->reason = "the call needs an extension that the host plugin does not know";
    return FLHAL_DECLINED;
  }
  PlanMaker make = maker_of(proto->op);
  if (!make) {
    info->reason = "the host plugin has no native version of this op";
    return FLHAL_DECLINED;
  }
  try {
    std::unique_ptr<flhal_p_plan> plan;
    if (const char* reason = make(*proto, *info, plan)) {
      info->reason = reason;
      if (std::strncmp(reason, "oneDNN ", 7) == 0 && reason == onednn().missing) warn_once(device, reason);
      return FLHAL_DECLINED;
    }
    plan->belong_to(device);
    *out = plan.release();
    return FLHAL_OK;
  } catch (const std::exception& e) {
    return fail(device->plugin, FLHAL_E_INTERNAL, fmt::format("host: planning {} failed: {}", proto->name, e.what()));
  }
}

flhal_status plan_run(flhal_p_plan* plan, flhal_p_stream*, const flhal_op_call_v1* call, const flhal_p_place* workspace) {
  try {
    return plan->run(*call, workspace ? pointer_to(*workspace) : nullptr);
  } catch (const std::exception& e) {
    return fail(plan->device->plugin, FLHAL_E_INTERNAL, fmt::format("host: {} failed: {}", call->name, e.what()));
  }
}

void plan_destroy(flhal_p_plan* plan) { delete plan; }

flhal_status op_describe(flhal_p_plugin*, uint32_t, const char**, const char**) { return FLHAL_DECLINED; }

const flhal_ops_v1 kOps = {sizeof(flhal_ops_v1), FLHAL_ST_OPS, nullptr, 0, 0, plan_create, plan_run, plan_destroy, op_describe};

}  // namespace

const flhal_ops_v1* ops_table() { return &kOps; }

}  // namespace flhal::host

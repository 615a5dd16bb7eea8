// src/kernels/make_plan.cc: from the operator to its family.
#include "kernels/families.h"
#include "kernels/opencl/compose.h"

namespace flhal::kernels {
namespace {

bool is_complex(flhal_dtype dtype) { return dtype == FLHAL_C64 || dtype == FLHAL_C128; }

// Half of a complex number would be left out without a word: an operand read by real arithmetic, a factor read as one number.
const char* halves_complex(const Call& proto) {
  if (proto.compute_dtype != 0 && !is_complex(proto.compute_dtype) && proto.op != FLHAL_OP_COPY) {
    for (uint32_t i = proto.n_outputs; i < tensor_count(proto); ++i)
      if (is_complex(tensor_of(proto, i).dtype)) return "real arithmetic over complex operands";
  }
  const bool reads_them = proto.op < FLHAL_OP_SUM;                     // the pointwise kernels
  const char* attr = reinterpret_cast<const char*>(proto.attrs);
  for (uint32_t i = 0; i < proto.n_attrs && !reads_them; ++i, attr += proto.attr_stride)
    if (reinterpret_cast<const flhal_attr_v1*>(attr)->kind == FLHAL_ATTR_COMPLEX) return "a complex factor";
  return nullptr;
}

std::unique_ptr<KernelPlan> host_plan(const Call& proto, const char** reason) {
  for (uint32_t i = 0; i < tensor_count(proto); ++i)
    if (tensor_of(proto, i).layout != 0) { *reason = "an operand is in a layout private to the chip"; return nullptr; }
  if (const char* halved = halves_complex(proto)) { *reason = halved; return nullptr; }
  switch (proto.op) {
    case FLHAL_OP_COPY: case FLHAL_OP_FILL: return plan_copy(proto, reason);
    case FLHAL_OP_SUM: case FLHAL_OP_MEAN: case FLHAL_OP_PROD: case FLHAL_OP_AMAX: case FLHAL_OP_AMIN: case FLHAL_OP_ANY:
    case FLHAL_OP_ALL: case FLHAL_OP_NORM2: case FLHAL_OP_ARGMAX: case FLHAL_OP_ARGMIN: case FLHAL_OP_VAR:
      return plan_reduce(proto, reason);
    case FLHAL_OP_SOFTMAX: case FLHAL_OP_LOG_SOFTMAX: case FLHAL_OP_SOFTMAX_BACKWARD: case FLHAL_OP_LOG_SOFTMAX_BACKWARD:
      return plan_softmax(proto, reason);
    case FLHAL_OP_MATMUL: return plan_matmul(proto, reason);
    case FLHAL_OP_LAYER_NORM: case FLHAL_OP_LAYER_NORM_BACKWARD: case FLHAL_OP_BATCH_NORM: case FLHAL_OP_BATCH_NORM_BACKWARD:
      return plan_norm(proto, reason);
    case FLHAL_OP_CONV2D: case FLHAL_OP_CONV2D_BACKWARD_INPUT: case FLHAL_OP_CONV2D_BACKWARD_WEIGHT: return plan_conv(proto, reason);
    case FLHAL_OP_MAX_POOL2D: case FLHAL_OP_MAX_POOL2D_BACKWARD: case FLHAL_OP_AVG_POOL2D: return plan_pool(proto, reason);
    case FLHAL_OP_INDEX_SELECT: case FLHAL_OP_GATHER: case FLHAL_OP_SCATTER: case FLHAL_OP_SCATTER_ADD: case FLHAL_OP_INDEX_ADD:
      return plan_index(proto, reason);
    case FLHAL_OP_CAT: case FLHAL_OP_TRIL: case FLHAL_OP_TRIU: case FLHAL_OP_CUMSUM: return plan_shape(proto, reason);
    case FLHAL_OP_ARANGE: case FLHAL_OP_UNIFORM: case FLHAL_OP_NORMAL: case FLHAL_OP_BERNOULLI: case FLHAL_OP_RANDINT:
      return plan_series(proto, reason);
    default: return plan_pointwise(proto, reason);
  }
}

}  // namespace

std::unique_ptr<KernelPlan> make_kernel_plan(const Call& proto, const Target& target, const char** reason) {
  const char* unused = nullptr;
  if (reason == nullptr) reason = &unused;
  *reason = "";
  auto plan = host_plan(proto, reason);
  if (!plan || target.dialect == Dialect::kHost) return plan;
  return make_text_plan(std::move(plan), proto, target, reason);
}

}  // namespace flhal::kernels

// src/kernels/families.h: one maker of plans per operator family. Each answers nullptr with a reason, or a plan.
#pragma once

#include <memory>

#include "kernels/call_reader.h"
#include "kernels/levels.h"

namespace flhal::kernels {

using PlanPtr = std::unique_ptr<KernelPlan>;

PlanPtr plan_pointwise(const Call& proto, const char** reason);
PlanPtr plan_copy(const Call& proto, const char** reason);        // copy, fill
PlanPtr plan_reduce(const Call& proto, const char** reason);
PlanPtr plan_softmax(const Call& proto, const char** reason);
PlanPtr plan_norm(const Call& proto, const char** reason);        // layer_norm, batch_norm, backwards
PlanPtr plan_matmul(const Call& proto, const char** reason);
PlanPtr plan_conv(const Call& proto, const char** reason);
PlanPtr plan_pool(const Call& proto, const char** reason);
PlanPtr plan_index(const Call& proto, const char** reason);       // index_select, gather, scatter, ...
PlanPtr plan_shape(const Call& proto, const char** reason);       // cat, tril, triu, cumsum
PlanPtr plan_series(const Call& proto, const char** reason);      // arange, uniform, normal, bernoulli, randint

// Name of a function, from its address, for KernelPlan::function.
const char* function_name(flhal_host_kernel run);

}  // namespace flhal::kernels

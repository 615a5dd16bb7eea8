// reference_plugins/host/ops_makers.h: the makers of native plans, by family file.
#pragma once

#include "plan.h"

namespace flhal::host {

const char* make_matmul(const flhal_op_call_v1&, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>&);   // ops_matmul.cc

}  // namespace flhal::host

// reference_plugins/host/ops_makers.h: the makers of native plans, by the file they live in.
#pragma once

#include "plan.h"

namespace flhal::host {

#define FLHAL_MAKER(name) const char* name(const flhal_op_call_v1&, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>&)

FLHAL_MAKER(make_matmul);                  // ops_matmul.cc

struct MatmulShape;
bool is_row_product(const MatmulShape&);   // ops_matmul_row.cc
std::unique_ptr<flhal_p_plan> make_row_product(const MatmulShape&);

FLHAL_MAKER(make_pointwise_conv2d);        // ops_conv_pointwise.cc; also the input's gradient
FLHAL_MAKER(make_conv2d);                  // ops_conv.cc
FLHAL_MAKER(make_conv2d_backward_input);
FLHAL_MAKER(make_conv2d_backward_weight);

FLHAL_MAKER(make_softmax);                 // ops_softmax.cc
FLHAL_MAKER(make_log_softmax);
FLHAL_MAKER(make_softmax_backward);
FLHAL_MAKER(make_log_softmax_backward);

FLHAL_MAKER(make_layer_norm);              // ops_layer_norm.cc
FLHAL_MAKER(make_layer_norm_backward);

FLHAL_MAKER(make_batch_norm);              // ops_batch_norm.cc
FLHAL_MAKER(make_batch_norm_backward);

FLHAL_MAKER(make_max_pool2d);              // ops_pool.cc
FLHAL_MAKER(make_max_pool2d_backward);
FLHAL_MAKER(make_avg_pool2d);

#undef FLHAL_MAKER

}  // namespace flhal::host

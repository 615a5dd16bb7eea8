// src/dispatch/opset/shape_rules.h: the shape rules that the rows name. Each is an infer and a check function.
#pragma once

#include "dispatch/opset/call_view.h"

namespace flhal::opset {

bool infer_broadcast(const CallView&, Inferred*, std::string* why);   // output = inputs broadcast together
bool check_broadcast(const CallView&, std::string* why);              // each input broadcasts to output 0
bool infer_free(const CallView&, Inferred*, std::string* why);        // the caller chooses
bool check_free(const CallView&, std::string* why);
bool infer_reduce(const CallView&, Inferred*, std::string* why);      // all dimensions to size 1
bool check_reduce(const CallView&, std::string* why);                 // each dimension is kept or 1
bool check_arg_reduce(const CallView&, std::string* why);             // one dimension or all
bool infer_along(const CallView&, Inferred*, std::string* why);       // as input 0; attribute 0 is a dimension of it
bool infer_matmul(const CallView&, Inferred*, std::string* why);
bool check_matmul(const CallView&, std::string* why);
bool infer_conv2d(const CallView&, Inferred*, std::string* why);
bool infer_conv2d_backward(const CallView&, Inferred*, std::string* why);
bool check_conv2d_backward_input(const CallView&, std::string* why);
bool check_conv2d_backward_weight(const CallView&, std::string* why);
bool infer_max_pool2d(const CallView&, Inferred*, std::string* why);
bool infer_avg_pool2d(const CallView&, Inferred*, std::string* why);
bool infer_caller(const CallView&, Inferred*, std::string* why);      // not inferable: says so
bool check_max_pool2d_backward(const CallView&, std::string* why);
bool infer_layer_norm(const CallView&, Inferred*, std::string* why);
bool infer_layer_norm_backward(const CallView&, Inferred*, std::string* why);
bool infer_batch_norm(const CallView&, Inferred*, std::string* why);
bool infer_batch_norm_backward(const CallView&, Inferred*, std::string* why);
bool infer_index_select(const CallView&, Inferred*, std::string* why);
bool infer_gather(const CallView&, Inferred*, std::string* why);
bool check_scatter(const CallView&, std::string* why);
bool check_index_add(const CallView&, std::string* why);
bool infer_cat(const CallView&, Inferred*, std::string* why);
bool infer_matrix(const CallView&, Inferred*, std::string* why);      // as input 0, of rank 2 or more

bool check_by_infer(const CallView&, std::string* why);               // infers and compares every given output

}  // namespace flhal::opset

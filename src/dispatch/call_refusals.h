// src/dispatch/call_refusals.h: what prepare() does off its fast path: refusals with their sentences, and rare forms.
#pragma once

#include "dispatch/prepared_call.h"
#include "memory/address_map.h"

namespace flhal {

[[gnu::cold]] Status no_call();
[[gnu::cold]] Status check_call_head(const flhal_op_call* call);              // other struct sizes, chained structs
// A copy of the call as this library knows it: what the caller's struct does not reach is zero.
[[gnu::cold]] flhal_op_call whole_call(const flhal_op_call& call);
[[gnu::cold]] Status find_unlisted_op(const flhal_op_call* call, Device* device, const opset::OpDef** def);
[[gnu::cold]] Status check_counts(const opset::OpDef& def, const flhal_op_call* call);
[[gnu::cold]] Status malformed_operand(const PreparedCall& p, uint32_t i, const flhal_tensor& t, const char* what);
[[gnu::cold]] Status output_overlaps_itself(const PreparedCall& p, uint32_t i, const flhal_tensor& t);
[[gnu::cold]] Status does_not_broadcast(const PreparedCall& p, uint32_t i, const flhal_tensor& t);
[[gnu::cold]] Status operand_out_of_place(const PreparedCall& p, uint32_t i, const flhal_tensor& t,
                                          uint64_t bytes);
[[gnu::cold]] Status malformed_dtype_or_address(const PreparedCall& p);

Status take_special_operand(const PreparedCall& p, uint32_t i, const flhal_tensor& t, flhal_tensor_v1* out);
Status make_room(PreparedCall& p);                       // for many operands, many attributes, long lists
Status take_attributes(PreparedCall& p);                 // copies them and continues the key
Status resolve_aliases(PreparedCall& p, uint64_t* alias);
Status check_shapes(const PreparedCall& p);              // the row's rule
flhal_dtype default_compute_dtype(const PreparedCall& p);

// "add: output out", "matmul: input b", "cat: input 3".
std::string operand_name(const PreparedCall& p, uint32_t i);
std::string dtype_name(flhal_dtype dtype);

// Attributes as the row wants them: required ones given, none twice, kinds right. When a plan is made.
Status check_attributes(const PreparedCall& p);

// What alignment is judged by: the chip's address, or the offset when it has none.
inline uint64_t device_bits(const flhal_tensor_v1& t) { return t.address ? t.address : t.offset; }

}  // namespace flhal

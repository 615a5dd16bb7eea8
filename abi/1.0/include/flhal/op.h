// flhal/op.h: running operators. The operators themselves (numbers, operands, attributes) are in ops.h.
#ifndef FLHAL_OP_H
#define FLHAL_OP_H

#include <flhal/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLHAL_TENSOR_ABSENT      (1u << 0)   // an optional operand that is not given; all other fields are zero
#define FLHAL_TENSOR_STABLE      (1u << 1)   // seen unchanged for several calls (weights): packing may pay
#define FLHAL_TENSOR_HOST_SCALAR (1u << 2)   // rank 0 input: `address` is a host pointer to one element of `dtype`,
                                             // read before the call returns

// One operand: a strided view of device memory. 48 bytes; arrays carry a stride, so it may grow.
typedef struct flhal_tensor {
  flhal_addr     address;          // of element [0, ..., 0]
  uint64_t       extent;           // unused for now, 0: core finds the bounds by itself
  const int64_t* sizes;            // rank values
  const int64_t* strides;          // rank values, in elements; 0 = broadcast; negative is not allowed
  flhal_dtype    dtype;
  uint16_t       rank, layout;     // layout 0 = strided
  uint32_t       flags, reserved;
} flhal_tensor;

#define FLHAL_ATTR_INT     1u      // v.i; bool is an int of 0 or 1
#define FLHAL_ATTR_FLOAT   2u      // v.f
#define FLHAL_ATTR_COMPLEX 3u      // v.f and imag
#define FLHAL_ATTR_INTS    4u      // v.p -> count int64_t
#define FLHAL_ATTR_FLOATS  5u      // v.p -> count double
#define FLHAL_ATTR_STRING  6u      // v.p -> count bytes of UTF-8
#define FLHAL_ATTR_PHILOX  7u      // v.p -> flhal_philox
#define FLHAL_ATTR_DYNAMIC (1u << 0)   // flags: may change in each call, not part of the call's identity

typedef struct flhal_attr {        // 32 bytes
  uint32_t key;                    // FLHAL_ATTR_<OP>_<NAME> of ops.h
  uint16_t kind, flags;
  uint32_t count, reserved;
  union { int64_t i; double f; const void* p; } v;
  double   imag;
} flhal_attr;

// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Element i of a call uses counter
// offset + i/4, word i%4. A call over n elements consumes (n + 3) / 4 counters.
typedef struct flhal_philox { uint64_t seed, offset; } flhal_philox;

#define FLHAL_ST_OP_CALL 10u   // struct_type of flhal_op_call; the same value as in plugin.h

#define FLHAL_CALL_NO_HOST_ROUTE (1u << 0)   // decline rather than run core's host kernel
#define FLHAL_CALL_NO_COMPOSITE  (1u << 1)

// One call of an operator, destination-passing: outputs are the caller's memory with final sizes, strides and dtype. A
// call never allocates a result and never promotes types. Inputs of pointwise ops may broadcast: lower rank, size 1 or
// stride 0. Partial overlap of an output with an input is resolved by core (a temporary); an output that overlaps
// itself is an error.
typedef struct flhal_op_call {
  uint32_t struct_size, struct_type;     // FLHAL_ST_OP_CALL
  const void* next;
  uint32_t op, op_version;               // FLHAL_OP_* of ops.h; 0 = known only by name
  const char* name;                      // may be NULL when op is set
  const flhal_tensor* tensors;           // outputs first, then inputs, in the op's order
  const uint32_t* groups;                // length of each operand group; NULL = every group is 1
  const flhal_attr* attrs;               // only attributes that differ from their default
  uint32_t tensor_stride, n_outputs, n_inputs, n_groups, attr_stride, n_attrs;
  flhal_dtype compute_dtype;             // arithmetic type; operands convert on load and store; 0 = the op's rule
  uint32_t flags;
} flhal_op_call;

#define FLHAL_ROUTE_NONE      0u
#define FLHAL_ROUTE_NATIVE    1u   // the plugin's own op
#define FLHAL_ROUTE_KERNEL    2u   // a portable kernel on the chip
#define FLHAL_ROUTE_COMPOSITE 3u   // several calls
#define FLHAL_ROUTE_HOST      4u   // core's own kernel over host_begin/end; counts as a fallback
#define FLHAL_ROUTE_DECLINED  5u

// Runs the op in stream order. FLHAL_OK = done or queued. FLHAL_DECLINED = no route, nothing was done or written;
// flhal_last_decline names the reason.
//
// Ownership: the call and all it points to are only read during the call.
// Errors: FLHAL_E_INVALID when an operand leaves its allocation, lies on another device, overlaps itself as an output, or
//         breaks the op's shape rule; FLHAL_E_DENIED when only the host route is left and the policy is strict; the
//         stream's first failure.
// Since:  1.0
FLHAL_API flhal_status flhal_op_run(flhal_stream* stream, const flhal_op_call* call);

// What flhal_op_run would do, without doing it: addresses are looked at for alignment only and may be 0. `out_reason`
// (static text, "" when none) says why better routes were not taken. Since: 1.0
FLHAL_API flhal_status flhal_op_route(flhal_device* device, const flhal_op_call* call, uint32_t* out_route,
                                      const char** out_reason);

// Fills sizes, contiguous strides and dtype of the outputs from the inputs, for callers without a framework. Each output's
// sizes and strides must point to arrays of 16 values that may be written; rank and dtype are set. Since: 1.0
FLHAL_API flhal_status flhal_op_infer(const flhal_op_call* call, flhal_tensor* outputs);

// The number of an op by name ("add", "layer_norm"), 0 when there is none. Since: 1.0
FLHAL_API uint32_t flhal_op_find(const char* name);

// Reason of this thread's last FLHAL_DECLINED: static text, "" when none. Since: 1.0
FLHAL_API const char* flhal_last_decline(void);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_OP_H

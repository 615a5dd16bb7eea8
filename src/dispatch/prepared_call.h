// src/dispatch/prepared_call.h: a call as plugins take it, checked, with its key. Lives on the caller's stack.
//
// Idea: one pass over the operands locates each, checks its bounds, classifies its layout and writes the plugin's tensor
// and the key's word. The plugin's call struct is the application's, byte for byte, up to compute_dtype.
#pragma once

#include <flhal/op.h>
#include <flhal/plugin.h>

#include <cstddef>
#include <memory>

#include "core/stream.h"
#include "dispatch/opset/opset.h"

namespace flhal {

// How an operand lies in memory, as far as plans may rely on it: part of every key.
enum class Layout : uint32_t {
  kAbsent,            // not given
  kHostScalar,        // one element in host memory
  kDense,             // row-major without gaps; of a pointwise op: also the output's sizes
  kDenseBroadcast,    // row-major without gaps, other sizes than the output (pointwise only)
  kOne,               // one element, output of more (pointwise only)
  kPermuted,          // without gaps in another order, sizes and strides as output 0 (channels_last)
  kStrided,           // anything else without stride 0
  kStridedBroadcast,  // with a stride 0, or other sizes than the output (pointwise only)
};

inline constexpr uint32_t kInlineTensors = 12;
inline constexpr uint32_t kMaxIntsInKey = 8;                  // longer lists put the key on the heap
inline constexpr uint32_t kInlineWords = 3 + kInlineTensors / 2 + opset::kMaxAttrs * (2 + kMaxIntsInKey);

// Set by composites in their parts when a route is forced: the force is meant for the whole, not for the parts.
inline constexpr uint32_t kCallInner = 1u << 7;

// Who asks. kPlaceholder: addresses are looked at for alignment only (flhal_op_route).
enum class Prepare : uint32_t { kRun, kPlaceholder };

struct PreparedCall {
  PreparedCall() {}   // NOLINT: next to nothing is initialised on purpose, prepare() writes what is used
  PreparedCall(const PreparedCall&) = delete;

  Stream* stream;
  Device* device;
  const opset::OpDef* def;
  const flhal_op_call* source;
  flhal_tensor_v1* tensors;        // == call.tensors
  uint32_t n_tensors;
  uint64_t partial_inputs;         // bit i: input i overlaps an output and must be copied first
  bool empty_output;               // no given output has an element: nothing to do
  bool empty_input;                // some given input has no element
  bool empty_handled = false;      // ... and empty_calls.cc has sent it the ordinary way
  bool rare() const { return empty_output | empty_input | (partial_inputs != 0); }

  uint64_t hash;
  uint64_t* words;                 // the class key
  uint32_t n_words;

  flhal_attr_v1* attr_copies;      // == call.attrs
  flhal_op_call_v1 call;
  flhal_tensor_v1 inline_tensors[kInlineTensors];
  flhal_attr_v1 attrs[opset::kMaxAttrs];
  uint64_t inline_words[kInlineWords];
  struct More {                    // what does not fit above
    std::unique_ptr<flhal_tensor_v1[]> tensors;
    std::unique_ptr<uint64_t[]> words;
    std::unique_ptr<flhal_attr_v1[]> attrs;
  };
  std::unique_ptr<More> more;
};

// The prefix both call structs share, and the tail both tensors share, are copied as bytes.
static_assert(offsetof(flhal_op_call, compute_dtype) == offsetof(flhal_op_call_v1, compute_dtype));
static_assert(offsetof(flhal_op_call, op) == offsetof(flhal_op_call_v1, op));
static_assert(offsetof(flhal_op_call, name) == offsetof(flhal_op_call_v1, name));
static_assert(offsetof(flhal_op_call, tensors) == offsetof(flhal_op_call_v1, tensors));
static_assert(offsetof(flhal_op_call, groups) == offsetof(flhal_op_call_v1, groups));
static_assert(offsetof(flhal_op_call, attrs) == offsetof(flhal_op_call_v1, attrs));
static_assert(offsetof(flhal_op_call, tensor_stride) == offsetof(flhal_op_call_v1, tensor_stride));
static_assert(offsetof(flhal_op_call, n_attrs) == offsetof(flhal_op_call_v1, n_attrs));
static_assert(sizeof(flhal_tensor) == 48 && sizeof(flhal_tensor_v1) == 64);
static_assert(sizeof(flhal_tensor) - offsetof(flhal_tensor, sizes) ==
              sizeof(flhal_tensor_v1) - offsetof(flhal_tensor_v1, sizes));
static_assert(sizeof(flhal_attr) == 32 && sizeof(flhal_attr_v1) == 32);
static_assert(offsetof(flhal_attr, v) == offsetof(flhal_attr_v1, v));

// Checks the call and fills `p`. FLHAL_E_INVALID with a sentence when an operand leaves its allocation, lies on another
// device, overlaps itself as an output or breaks the shape rule.
// (prepare_inline of prepare.h does it for flhal_op_run.)
Status prepare_for_planning(PreparedCall& p, Device* device, const flhal_op_call* call);

// Continues the key with what `depends_on` asks for. `words` must hold exact_words(p).
uint32_t exact_words(const PreparedCall& p);
uint32_t append_exact(const PreparedCall& p, uint64_t depends_on, uint64_t* words, uint64_t* hash);

// Every bit of the words reaches the upper bits of the hash, so those are used; equality is always of the whole key.
inline uint64_t mix(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x9E3779B97F4A7C15ull; }

// Copies the shared prefix of a call, in 16-byte steps: a memcpy of this size becomes `rep movs`, which costs more. The caller's
// struct lies at any multiple of 8. The pointers' types are written out: `auto` forgets the alignment of a typedef, and GCC then
// loads as if they were multiples of 16.
inline void take_prefix(flhal_op_call_v1& out, const flhal_op_call& call) {
  typedef uint64_t Pair __attribute__((vector_size(16), aligned(8), may_alias));
  static_assert(offsetof(flhal_op_call, compute_dtype) == 80);
  Pair* to = reinterpret_cast<Pair*>(&out);
  const Pair* from = reinterpret_cast<const Pair*>(&call);
  Pair a = from[0], b = from[1], c = from[2], d = from[3], e = from[4];
  to[0] = a;
  to[1] = b;
  to[2] = c;
  to[3] = d;
  to[4] = e;
  out.compute_dtype = call.compute_dtype;
}

inline constexpr uint64_t kHashSeed = 0x243f6a8885a308d3ull;

// The key's first two words. One word for alignment, width and alias of the whole call: a word per operand would cost more
// and split classes finer. Slabs begin at multiples of 256 on the chip too, so the application's addresses (here: or-ed)
// tell the chip's alignment.
inline uint64_t key_word0(uint32_t op, uint32_t n_outputs, flhal_dtype compute, uint32_t device) {
  return uint64_t(op) | uint64_t(n_outputs) << 16 | uint64_t(compute) << 24 | uint64_t(device) << 48;
}
inline uint64_t key_word1(uint64_t addresses, bool wide, uint64_t alias, uint32_t n_tensors, uint32_t flags) {
  uint64_t align = (addresses & 63) == 0 ? 2 : (addresses & 15) == 0 ? 1 : 0;
  return align | uint64_t(wide) << 2 | alias << 3 | uint64_t(n_tensors) << 36 | uint64_t(flags) << 56;
}

inline const flhal_tensor& tensor_of(const flhal_op_call& call, uint32_t i) {
  return *reinterpret_cast<const flhal_tensor*>(reinterpret_cast<const char*>(call.tensors) +
                                                uint64_t(i) * call.tensor_stride);
}

}  // namespace flhal

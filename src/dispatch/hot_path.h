// src/dispatch/hot_path.h: flhal_op_run for the calls that small models are made of: a pointwise op with one or two inputs
// that are laid out as the output is, row-major without gaps, without attributes, whose plan this thread knows.
//
// Idea: the number of operands is a constant here, so nothing is indexed, spilled or looped over. Whatever is not as
// expected, a fault too, goes to run_call (run.cc), which starts anew and has all the sentences; this file only ever says
// yes. It builds the same key as prepare.h does (tests/dispatch/plans_test.cc) and is inlined into the export.
// Cost up to the plugin call, three operands of rank 4: docs/why/dispatch.md, gated by bench/count_instructions.sh.
#pragma once

#include <cstring>

#include "dispatch/counters.h"
#include "dispatch/dispatch.h"
#include "dispatch/layout.h"
#include "dispatch/plan_cache.h"
#include "dispatch/prepare.h"
#include "dispatch/queued_call.h"

namespace flhal {

// The plan of the call, the places of its N operands and what else a route is told. nullptr: run_call must see it.
template <uint32_t N>
[[gnu::always_inline]] inline Plan* find_plan(const flhal_op_call* call, const opset::OpDef* def, Device* device,
                                              ThreadState& thread, flhal_tensor_v1* places, uint64_t* out_elements,
                                              uint32_t* out_alias) {
  const flhal_tensor* t = call->tensors;
  const flhal_tensor& first = t[0];
  const uint64_t kind = kind_of(first);
  const uint32_t rank = first.rank, element = element_bytes(first.dtype);
  uint32_t flags = first.flags | first.layout;
  uint64_t elements;
  if (rank > opset::kMaxRank || !dtype_fits(first.dtype) ||
      !dense_view(first.sizes, first.strides, rank, &elements))
    return nullptr;
  Pair different = {0, 0};            // one test for all views
#pragma GCC unroll 4
  for (uint32_t i = 1; i < N; ++i) {
    if (kind_of(t[i]) != kind) return nullptr;   // first of all: the rank says how far sizes may be read
    flags |= t[i].flags;
    // Callers that know their operands to be alike, the torch adapter for one, give the same arrays for all.
    if (t[i].sizes != first.sizes || t[i].strides != first.strides)
      different |= view_difference(t[i].sizes, t[i].strides, first.sizes, first.strides, rank);
  }
  const uint64_t bytes = elements * element, begin = first.address;
  if (flags || any_bit(different) || bytes >> 31) return nullptr;
  uint64_t addresses = begin, alias = 0;
#pragma GCC unroll 4
  for (uint32_t i = 0; i < N; ++i) {
    uint64_t address = t[i].address;
    if (!take_place(places[i], address, bytes, device)) return nullptr;
    addresses |= address;
    if (i == 0) continue;
    uint64_t distance = address - begin;         // overlapping ranges: nearer than `bytes` on either side
    if (__builtin_expect(distance < bytes || -distance < bytes, 0)) {
      if (distance != 0) return nullptr;
      alias |= 1ull << (i - 1);
    }
  }
  if (addresses & (element - 1ull)) return nullptr;

  const uint64_t code = operand_code(first.dtype, rank, Layout::kDense, 0);
  const uint64_t word0 = key_word0(def->number, 1, call->compute_dtype, device->index);
  const uint64_t word1 = key_word1(addresses, false, alias, N, 0);
  const uint64_t word2 = code | code << 32;
  constexpr uint32_t n_words = 2 + (N + 1) / 2;
  uint64_t hash = mix(mix(mix(kHashSeed, word0), word1), word2);
  if (n_words == 4) hash = mix(hash, code);
  const PlanSlot& slot = thread.slots[class_slot(hash)];
  Plan* plan = slot.plan;
  if (slot.hash != hash || !plan || !plan->plain || plan->n_words != n_words || plan->stamp != stamp_of(*device))
    return nullptr;
  const uint64_t* key = plan->words.get();
  uint64_t other_key = (key[0] ^ word0) | (key[1] ^ word1) | (key[2] ^ word2);
  if (n_words == 4) other_key |= key[3] ^ code;
  if (other_key) return nullptr;
  *out_elements = elements;
  *out_alias = alias ? FLHAL_ALIAS_EXACT : FLHAL_ALIAS_NONE;
  return plan;
}

// The call is a worker's to run, or its route withdrew and has written nothing: then the general way meets the refusal again
// and replaces the plan.
[[gnu::cold]] [[gnu::noinline]] inline Status not_run_hot(Stream* stream, Plan* plan, const flhal_op_call_v1& plain,
                                                          const flhal_op_call* call, Status why) {
  return why.code() == kQueueInstead ? queue_call(stream, plan, plain, *call) : run_call(stream, call);
}

template <uint32_t N>
[[gnu::always_inline]] inline Status run_hot(Stream* stream, const flhal_op_call* call, const opset::OpDef* def,
                                             ThreadState& thread) {
  flhal_tensor_v1 tensors[N];
  uint64_t elements;
  uint32_t alias;
  Plan* plan = find_plan<N>(call, def, stream->device, thread, tensors, &elements, &alias);
  if (__builtin_expect(plan == nullptr, 0)) return run_call(stream, call);
  if (plan->dense) {                   // the rest of the call would not be looked at
    Status done = plan->run_dense(stream, tensors, elements);
    if (__builtin_expect(done.ok(), 1)) {
      thread.count(plan->counter);
      return FLHAL_OK;
    }
    return done.code() > 0 ? run_call(stream, call) : done;   // a worker's to run, or withdrawn: nothing has been done yet
  }
  flhal_op_call_v1 out;
#pragma GCC unroll 4
  for (uint32_t i = 0; i < N; ++i) take_shape(tensors[i], call->tensors[i]);
  take_prefix(out, *call);
  out.struct_size = sizeof out;
  out.name = def->name;
  out.tensors = tensors;
  out.tensor_stride = sizeof(flhal_tensor_v1);
  out.alias = alias;
  out.flags = 0;                       // as the call's: run_call_hot saw to it
  out.reserved = 0;
  Status done = plan->run_plain(stream, out);
  if (__builtin_expect(done.ok(), 1)) {
    thread.count(plan->counter);
    return FLHAL_OK;
  }
  return done.code() > 0 ? not_run_hot(stream, plan, out, call, done) : done;
}

[[gnu::always_inline]] inline Status run_call_hot(Stream* stream, const flhal_op_call* call) {
  uint64_t head, counts;
  if (__builtin_expect(call == nullptr, 0)) return run_call(stream, call);
  std::memcpy(&head, call, sizeof head);
  std::memcpy(&counts, &call->n_outputs, sizeof counts);
  static_assert(offsetof(flhal_op_call, n_inputs) == offsetof(flhal_op_call, n_outputs) + 4);
  const opset::OpDef* def = opset::row_of(call->op);
  ThreadState* thread = t_dispatch;
  if (__builtin_expect(head != kCallHead || call->next || !def || def->fast_counts != counts || call->n_attrs ||
                       call->tensor_stride != sizeof(flhal_tensor) || !call->compute_dtype || call->flags || !thread, 0))
    return run_call(stream, call);
  return counts >> 32 == 2 ? run_hot<3>(stream, call, def, *thread) : run_hot<2>(stream, call, def, *thread);
}

}  // namespace flhal

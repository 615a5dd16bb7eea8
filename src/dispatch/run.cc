// src/dispatch/run.cc: flhal_op_run for every call: prepare, find the plan, run it. The plainest calls are done in
// hot_path.h and come here only when something is new.
#include <flhal/ops.h>

#include <array>
#include <vector>

#include "core/log.h"
#include "dispatch/counters.h"
#include "dispatch/dispatch.h"
#include "dispatch/empty_calls.h"
#include "dispatch/fallback_policy.h"
#include "dispatch/plan_cache.h"
#include "dispatch/prepare.h"
#include "dispatch/queued_call.h"
#include "memory/pool.h"

namespace flhal {
namespace {

// A plan whose route withdrew is replaced; each round takes one route away, so this ends.
Status run_other_plans(PreparedCall& p, ThreadState& thread, PlanRef plan) {
  for (;;) {
    if (plan->route == FLHAL_ROUTE_DECLINED) {
      thread.decline = plan->reason;
      thread.count(plan->counter);
      if (plan->logs) log(kLogDebug, "{} on {}: declined ({})", plan->def->name, plan->device->name, plan->reason);
      return FLHAL_DECLINED;
    }
    // The host route waits for the stream, so the worker takes all of it; composites are taken apart here, and their parts
    // are queued.
    if (plan->route == FLHAL_ROUTE_HOST && p.stream->queues_calls()) {
      FLHAL_TRY(allow_fallback(*plan->device, plan->def->name, "host route", plan->reason));
      return queue_call(p.stream, plan.get(), p.call, *p.source);
    }
    Status done = plan->run(p);
    if (done.code() == kQueueInstead) return queue_call(p.stream, plan.get(), p.call, *p.source);
    if (done.ok()) {
      thread.count(plan->counter);
      if (plan->route == FLHAL_ROUTE_HOST) watch_threshold();
      if (plan->logs)
        log(kLogDebug, "{} on {}: {}{}{}{}", plan->def->name, plan->device->name, route_name(plan->route),
            *plan->reason ? " (" : "", plan->reason, *plan->reason ? ")" : "");
      return done;
    }
    if (done.code() != FLHAL_DECLINED) return done;
    FLHAL_ASSIGN(Plan * next, replace_withdrawn(p, thread, plan.get()));
    plan = share(next);
  }
}

// Inputs that overlap an output without being it are copied to temporaries; then the call is an ordinary one.
Status run_with_copies(const PreparedCall& p) {
  std::vector<flhal_tensor> tensors(p.n_tensors);
  std::vector<std::array<int64_t, opset::kMaxRank>> strides(p.n_tensors);
  std::vector<Temporary> copies;
  uint32_t n_out = p.source->n_outputs;
  for (uint32_t i = 0; i < p.n_tensors; ++i) {
    const flhal_tensor& t = tensors[i] = tensor_of(*p.source, i);
    if (i < n_out || i - n_out >= 64 || !(p.partial_inputs >> (i - n_out) & 1)) continue;
    int64_t elements = 1;
    for (uint32_t d = t.rank; d-- > 0;) {
      strides[i][d] = elements;
      elements *= t.sizes[d];
    }
    FLHAL_ASSIGN(Temporary copy, Temporary::make(p.stream, static_cast<uint64_t>(elements) * FLHAL_DTYPE_BYTES(t.dtype)));
    flhal_tensor pair[2] = {t, t};
    pair[0].address = copy.address();
    pair[0].strides = strides[i].data();
    pair[0].flags = pair[1].flags = 0;
    flhal_op_call copy_call{};
    copy_call.struct_size = sizeof copy_call;
    copy_call.struct_type = FLHAL_ST_OP_CALL;
    copy_call.op = FLHAL_OP_COPY;
    copy_call.tensors = pair;
    copy_call.tensor_stride = sizeof(flhal_tensor);
    copy_call.n_outputs = copy_call.n_inputs = 1;
    FLHAL_TRY(run_call(p.stream, &copy_call));
    tensors[i] = pair[0];
    copies.push_back(std::move(copy));
  }
  flhal_op_call call = whole_call(*p.source);
  call.tensors = tensors.data();
  call.tensor_stride = sizeof(flhal_tensor);
  return run_call(p.stream, &call);
}

// Everything but a plain hit.
[[gnu::noinline]] Status run_slowly(PreparedCall& p, ThreadState& thread) {
  if (p.empty_output) return FLHAL_OK;
  if (p.partial_inputs) return run_with_copies(p);
  if (p.empty_input && !p.empty_handled) {
    p.empty_handled = true;
    return run_with_empty_input(p);
  }
  FLHAL_ASSIGN(Plan * plan, plan_for(p, thread));
  return run_other_plans(p, thread, share(plan));
}

[[gnu::noinline]] Status run_withdrawn(PreparedCall& p, ThreadState& thread, Plan* plan) {
  FLHAL_ASSIGN(Plan * next, replace_withdrawn(p, thread, plan));
  return run_other_plans(p, thread, share(next));
}

}  // namespace

Status run_prepared(PreparedCall& p) { return run_slowly(p, thread_state()); }

Status run_call(Stream* stream, const flhal_op_call* call) {
  PreparedCall p;
  FLHAL_TRY(prepare_inline(p, stream, stream->device, call, Prepare::kRun));
  ThreadState& thread = thread_state();
  const PlanSlot& slot = thread.slots[class_slot(p.hash)];
  Plan* plan = slot.plan;
  if (__builtin_expect(!in_table(slot, p.hash, p.words, p.n_words, stamp_of(*p.device)), 0))
    return run_slowly(p, thread);
  // `plain`: native or kernel. Routes that call back into dispatch may drive their plan out of the table; they, redirects
  // and logging take the slow way, which holds a reference.
  if (__builtin_expect(!plan->plain || p.rare(), 0)) return run_slowly(p, thread);
  Status done = plan->run(p);
  if (__builtin_expect(done.ok(), 1)) {
    thread.count(plan->counter);
    return FLHAL_OK;
  }
  if (done.code() == kQueueInstead) return queue_call(stream, plan, p.call, *call);
  return done.code() == FLHAL_DECLINED ? run_withdrawn(p, thread, plan) : done;
}

Status route_of_call(Device* device, const flhal_op_call* call, uint32_t* out_route, const char** out_reason) {
  PreparedCall p;
  FLHAL_TRY(prepare_for_planning(p, device, call));
  FLHAL_ASSIGN(Plan * plan, plan_for(p, thread_state()));
  *out_route = plan->route;
  *out_reason = plan->reason;
  return FLHAL_OK;
}

void dispatch_forget_device(Device* device) {
  device->generation.fetch_add(1, std::memory_order_acq_rel);   // first: nobody finds the plans any more
  drop_plans(device);
  destroy_native_plans(device);
  unload_kernel_modules(device);
  unload_application_modules(device);
}

}  // namespace flhal

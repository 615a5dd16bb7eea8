// src/dispatch/plan.h: the remembered answer to "how is a call of this class done". Immutable but for its reference count.
#pragma once

#include <atomic>
#include <memory>

#include "dispatch/prepared_call.h"
#include "dispatch/reasons.h"

namespace flhal {

struct Plan {
  Plan() = default;
  Plan(const Plan&) = delete;

  uint64_t hash = 0;
  uint64_t stamp = 0;                   // settings version and device generation it was made under
  uint32_t n_words = 0;
  uint32_t counter = 0;                 // row of counters.h; 0: not counted
  std::unique_ptr<uint64_t[]> words;    // the whole key: a hash alone could name a wrong plan
  uint32_t route = FLHAL_ROUTE_DECLINED;
  bool plain = false;                   // native or kernel route, without logging: run at once
  bool logs = false;                    // log_level was debug when it was made
  bool dense = false;                   // has run_dense
  bool redirect = false;                // a class entry that only says: ask again with the exact key of `depends_on`
  uint64_t depends_on = 0;              // FLHAL_DEPENDS_*
  const opset::OpDef* def = nullptr;
  Device* device = nullptr;
  const char* reason = "";              // static: why better routes were not taken
  std::atomic<uint32_t> references{1};
  std::atomic<uint8_t> used{1};         // second chance of the bounded list of exact plans

  // Does the call. FLHAL_DECLINED: the route withdrew and nothing was written.
  virtual Status run(PreparedCall& p) = 0;
  // The same for plain plans, which need no more than this.
  virtual Status run_plain(Stream* stream, const flhal_op_call_v1& call);
  // The same where all operands have one dtype and one dense shape, and there are no attributes: of the operands only the
  // places (address, memory, offset) are read.
  virtual Status run_dense(Stream* stream, const flhal_tensor_v1* places, uint64_t elements);

  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

 protected:
  virtual ~Plan() = default;
  virtual void dispose() { delete this; }   // native plans wait for work in flight
};

struct PlanRelease {
  void operator()(Plan* plan) const { plan->release(); }
};
using PlanRef = std::unique_ptr<Plan, PlanRelease>;
inline PlanRef share(Plan* plan) {
  plan->retain();
  return PlanRef(plan);
}

inline bool matches(const Plan& plan, const uint64_t* words, uint32_t n_words) {
  if (plan.n_words != n_words) return false;
  const uint64_t* mine = plan.words.get();
  uint64_t different = 0;
  for (uint32_t i = 0; i < n_words; ++i) different |= mine[i] ^ words[i];
  return different == 0;
}

[[gnu::always_inline]] inline uint64_t stamp_of(const Device& device) {
  return uint64_t(config().version.load(std::memory_order_acquire)) << 32 |
         device.generation.load(std::memory_order_acquire);
}

// One function per route, in its own file; nullptr and `why` when the route does not do the call.
Plan* make_native_plan(const PreparedCall& p, RouteRefusal& why);
Plan* make_kernel_route_plan(const PreparedCall& p, RouteRefusal& why);
Plan* make_composite_plan(const PreparedCall& p, bool host_parts, RouteRefusal& why);
Plan* make_host_plan(const PreparedCall& p, RouteRefusal& why);

// Chooses the route, best first. Never fails: a call without a route gets a plan that declines. `without`: bits of routes
// (1 << FLHAL_ROUTE_*) that withdrew, with the reason to show.
PlanRef choose_route(const PreparedCall& p, uint32_t without, const char* withdrawn_reason);

}  // namespace flhal

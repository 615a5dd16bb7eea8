// src/dispatch/route_composite.cc: an op as a sequence of others. The plan holds for exact sizes and strides: the parts'
// classes follow from them, so what was asked when planning is what runs.
#include "dispatch/composite/builder.h"
#include "dispatch/plan.h"
#include "dispatch/thread_state.h"

namespace flhal {
namespace {

constexpr uint32_t kDepthMax = 4;   // a composite of composites of ...: deeper is a cycle

struct Depth {
  ThreadState& thread = thread_state();
  Depth() { ++thread.depth; }
  ~Depth() { --thread.depth; }
};

struct CompositePlan final : Plan {
  CompositeFn fn;
  bool host_parts;

  Status run(PreparedCall& p) override {
    Builder b(p, Builder::Mode::kRun, host_parts);
    fn(b);
    return b.status();
  }
};

}  // namespace

Plan* make_composite_plan(const PreparedCall& p, bool host_parts, RouteRefusal& why) {
  FLHAL_DECLINE_UNLESS((p.call.flags & FLHAL_CALL_NO_COMPOSITE) == 0, CALL_FORBIDS, "no composite");
  CompositeFn fn = composite_for(p.def->number);
  FLHAL_DECLINE_UNLESS(fn, NO_COMPOSITE, "");
  FLHAL_DECLINE_UNLESS(!host_parts || (p.call.flags & FLHAL_CALL_NO_HOST_ROUTE) == 0, CALL_FORBIDS, "no host route");
  Depth depth;
  FLHAL_DECLINE_UNLESS(depth.thread.depth <= kDepthMax, COMPOSITE_PART, "nested too deeply");
  Builder b(p, Builder::Mode::kPlan, host_parts);
  fn(b);
  FLHAL_DECLINE_UNLESS(!b.refused(), COMPOSITE_PART, b.refusal());
  auto* plan = new CompositePlan;
  plan->fn = fn;
  plan->host_parts = host_parts;
  plan->depends_on = FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES;
  return plan;
}

}  // namespace flhal

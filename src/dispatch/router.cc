// src/dispatch/router.cc: which route does a call: a table, best first.
#include "core/log.h"
#include "dispatch/counters.h"
#include "dispatch/plan.h"
#include "dispatch/vendor_ops.h"

namespace flhal {
namespace {

struct RouteRow {
  uint32_t route;
  ForcedRoute forced_by;
  Plan* (*make)(const PreparedCall&, RouteRefusal&);
};

// A composite whose parts all run on the chip goes before the host; one with parts on the host goes behind it, since one
// trip to the host is cheaper than one for each part.
Plan* make_composite_on_chip(const PreparedCall& p, RouteRefusal& why) { return make_composite_plan(p, false, why); }
Plan* make_composite_anywhere(const PreparedCall& p, RouteRefusal& why) { return make_composite_plan(p, true, why); }

constexpr RouteRow kRoutes[] = {
    {FLHAL_ROUTE_NATIVE, ForcedRoute::kNative, make_native_plan},
    {FLHAL_ROUTE_KERNEL, ForcedRoute::kKernel, make_kernel_route_plan},
    {FLHAL_ROUTE_COMPOSITE, ForcedRoute::kComposite, make_composite_on_chip},
    {FLHAL_ROUTE_HOST, ForcedRoute::kHost, make_host_plan},
    {FLHAL_ROUTE_COMPOSITE, ForcedRoute::kComposite, make_composite_anywhere},
};

struct DeclinedPlan final : Plan {
  Status run(PreparedCall&) override { return FLHAL_DECLINED; }
};

}  // namespace

const char* route_name(uint32_t route) {
  static const char* const names[] = {"none", "native", "kernel", "composite", "host", "declined", "fallback"};
  return names[route];
}

Status Plan::run_dense(Stream*, const flhal_tensor_v1*, uint64_t) {
  return fail(FLHAL_E_INTERNAL, "flhal_op_run: a plan without dense calls was asked for one");
}

Status Plan::run_plain(Stream*, const flhal_op_call_v1&) {
  return fail(FLHAL_E_INTERNAL, "flhal_op_run: {}: route {} is not plain", def->name, route_name(route));
}

PlanRef choose_route(const PreparedCall& p, uint32_t without, const char* withdrawn_reason) {
  ForcedRoute forced = config().route.load(std::memory_order_relaxed);
  if (p.source->flags & kCallInner) forced = ForcedRoute::kAuto;
  Plan* plan = nullptr;
  uint64_t refused_for = 0;   // a better route that refused these sizes may take others: the answer holds for them only
  std::string reasons;
  auto add_reason = [&](uint32_t route, const std::string& text) {
    std::string words = std::string(route_name(route)) + ": " + text;
    if (reasons.find(words) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + words;
  };
  for (const RouteRow& row : kRoutes) {
    if (forced != ForcedRoute::kAuto && forced != row.forced_by) continue;
    if (without >> row.route & 1) {
      add_reason(row.route, withdrawn_reason);
      continue;
    }
    RouteRefusal why;
    if (row.route != FLHAL_ROUTE_NATIVE && is_vendor_op(*p.def)) why.reason = Reason::VENDOR_OP;
    else plan = row.make(p, why);
    if (plan) {
      plan->route = row.route;
      break;
    }
    refused_for |= why.depends_on;
    add_reason(row.route, why.text());
  }
  if (!plan) {
    plan = new DeclinedPlan;
    plan->route = FLHAL_ROUTE_DECLINED;
    if (forced != ForcedRoute::kAuto) reasons += (reasons.empty() ? "" : "; ") + RouteRefusal{Reason::NOT_FORCED, ""}.text();
  }
  plan->depends_on |= refused_for;
  plan->def = p.def;
  plan->device = p.device;
  plan->reason = interned(reasons);
  plan->logs = log_enabled(kLogDebug);
  plan->plain = !plan->logs && (plan->route == FLHAL_ROUTE_NATIVE || plan->route == FLHAL_ROUTE_KERNEL);
  plan->counter = counter_row(p.device->index, p.def->name, plan->route, plan->reason);
  return PlanRef(plan);
}

}  // namespace flhal

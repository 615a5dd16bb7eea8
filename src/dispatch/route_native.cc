// src/dispatch/route_native.cc: the plugin's own ops: plan_create once, plan_run per call, plan_destroy when the last use
// has ended.
#include <mutex>
#include <unordered_set>
#include <vector>

#include "core/exit.h"
#include "core/worker.h"
#include "dispatch/dispatch.h"
#include "dispatch/opset/opset.h"
#include "dispatch/plan.h"
#include "dispatch/vendor_ops.h"
#include "memory/pool.h"

namespace flhal {
namespace {

struct NativePlan;

// Every native plan that has a handle, wherever references to it lie: closing a device must give all of them back first.
struct LivePlans {
  std::mutex mutex;
  std::unordered_set<NativePlan*> plans;
};
LivePlans& live_plans() {
  static LivePlans& l = *new LivePlans;
  return l;
}

struct NativePlan final : Plan {
  flhal_p_plan* handle = nullptr;
  uint64_t workspace_bytes = 0;
  // Streams it ran on; most plans see one. Needed only where work outlives the call.
  std::atomic<Stream*> only_stream{nullptr};
  std::mutex more_mutex;
  std::vector<Stream*> more_streams;

  Status run(PreparedCall& p) override { return run_plain(p.stream, p.call); }

  Status run_plain(Stream* stream, const flhal_op_call_v1& call) override {
    if (__builtin_expect(stream->asynchronous && only_stream.load(std::memory_order_relaxed) != stream, 0))
      note_stream(stream);
    if (__builtin_expect(workspace_bytes != 0, 0)) return run_with_workspace(stream, call);
    return run_with(stream, call, nullptr);
  }

  [[gnu::noinline]] Status run_with_workspace(Stream* stream, const flhal_op_call_v1& call) {
    if (stream->queues_calls()) return kQueueInstead;   // the worker takes its own
    FLHAL_ASSIGN(Temporary workspace, Temporary::make(stream, workspace_bytes));
    const Slab* slab = AddressMap::find(workspace.address());
    flhal_p_place place = place_of(slab, workspace.address() - slab->base);
    return run_with(stream, call, &place);
  }

  [[gnu::always_inline]] inline Status run_with(Stream* stream, const flhal_op_call_v1& call, const flhal_p_place* workspace) {
    bool declined = false;
    Status done = stream->submit(def->name, [&](flhal_p_stream* queue) {
      flhal_status answer = plugin_call(device->plugin->ops.plan_run, handle, queue, &call, workspace);
      if (__builtin_expect(answer == FLHAL_DECLINED, 0)) {
        declined = true;
        return FLHAL_OK;
      }
      return answer;
    });
    return __builtin_expect(declined, 0) ? Status(FLHAL_DECLINED) : done;
  }

  void note_stream(Stream* stream) {
    Stream* none = nullptr;
    if (only_stream.compare_exchange_strong(none, stream, std::memory_order_relaxed)) return;
    std::lock_guard lock(more_mutex);
    for (Stream* s : more_streams)
      if (s == stream) return;
    more_streams.push_back(stream);
  }

  void destroy_handle() {
    flhal_p_plan* h = nullptr;
    {
      std::lock_guard lock(live_plans().mutex);
      live_plans().plans.erase(this);
      h = std::exchange(handle, nullptr);
    }
    if (!h) return;
    auto serial = device->plugin->lock();
    plugin_call(device->plugin->ops.plan_destroy, h);
  }

  void dispose() override {
    std::vector<Point> points;
    if (Stream* s = only_stream.load(std::memory_order_relaxed)) points.push_back(s->here());
    for (Stream* s : more_streams) points.push_back(s->here());
    retire(points.data(), static_cast<uint32_t>(points.size()), [](void* plan) { delete static_cast<NativePlan*>(plan); },
           this);
  }
  ~NativePlan() override { destroy_handle(); }
};

}  // namespace

Plan* make_native_plan(const PreparedCall& p, RouteRefusal& why) {
  Plugin& plugin = *p.device->plugin;
  FLHAL_DECLINE_UNLESS(plugin.has_ops, NO_OPS, "");
  FLHAL_DECLINE_UNLESS(is_vendor_op(*p.def) || opset::minor_needed(*p.def, p.call.attrs, p.call.n_attrs) <= plugin.ops.op_set_minor, NEWER_OP, "");
  Status open = p.device->open();
  FLHAL_DECLINE_UNLESS(open.ok(), PLUGIN_FAILED, last_error_text());
  flhal_plan_info_v1 info{};
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_PLAN_INFO;
  flhal_p_plan* handle = nullptr;
  flhal_status answer;
  {
    auto serial = plugin.lock();
    answer = plugin_call(plugin.ops.plan_create, p.device->handle, &p.call, &info, &handle);
  }
  why.depends_on = info.depends_on & (FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES | FLHAL_DEPENDS_ALIGN);
  FLHAL_DECLINE_UNLESS(answer != FLHAL_DECLINED, PLUGIN_DECLINED, info.reason ? info.reason : "");
  if (answer != FLHAL_OK || !handle) {
    Status failure = plugin_answer(plugin, "plan_create", answer);
    (void)failure;
    FLHAL_DECLINE_UNLESS(false, PLUGIN_FAILED, answer < 0 ? last_error_text() : "no plan was given");
  }
  workers_outlive_new_libraries();
  rest_before_exit();
  auto* plan = new NativePlan;
  plan->handle = handle;
  plan->workspace_bytes = info.workspace_bytes;
  plan->depends_on = info.depends_on & (FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES | FLHAL_DEPENDS_ALIGN);
  plan->device = p.device;
  std::lock_guard lock(live_plans().mutex);
  live_plans().plans.insert(plan);
  return plan;
}

void destroy_native_plans(Device* device) {
  std::vector<flhal_p_plan*> handles;
  {
    std::lock_guard lock(live_plans().mutex);
    for (auto at = live_plans().plans.begin(); at != live_plans().plans.end();) {
      NativePlan* plan = *at;
      if (plan->device != device) {
        ++at;
        continue;
      }
      handles.push_back(std::exchange(plan->handle, nullptr));
      at = live_plans().plans.erase(at);
    }
  }
  auto serial = device->plugin->lock();
  for (flhal_p_plan* h : handles) plugin_call(device->plugin->ops.plan_destroy, h);
}

}  // namespace flhal

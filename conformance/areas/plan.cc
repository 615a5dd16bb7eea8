// conformance/areas/plan.cc: the life of plans: honest answers, what a plan depends on, several threads, nothing left behind.
//
// Each case tries a few common calls; those that the plugin declines are left out, and a plugin that declines all of them is
// recorded as not supported.
#include <flhal/ops.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <set>
#include <thread>

#include "areas/op_cases.h"
#include "areas/surroundings.h"

namespace flhal::conformance {
namespace {

struct Sample { const char* op; std::function<void(Context&, OpCall&, int64_t n)> make; };   // n: size of the first dimension

void begin(OpCall& call, const char* op) {
  call.row = &op_row(op);
  call.what = op;
  call.compute = FLHAL_F32;
}
const std::vector<Sample>& samples() {
  auto same_sizes = [](Context& ctx, OpCall& call, int64_t n) {
    std::vector<Values> values;
    for (size_t i = 0; i < input_names(*call.row).size(); ++i) {
      call.inputs.push_back(filled(ctx, call.row->name, i, FLHAL_F32, {n, 24}));
      values.push_back(call.inputs.back().values());
    }
    call.outputs.emplace_back(FLHAL_F32, Sizes{n, 24});
    call.expected.push_back(pointwise(call.row->name, values, {n, 24}, call.attributes));
  };
  static const std::vector<Sample> all = {
      {"add", same_sizes},
      {"mul", same_sizes},
      {"relu", same_sizes},
      {"matmul", [](Context& ctx, OpCall& call, int64_t n) {
         call.inputs.push_back(filled(ctx, "matmul", 0, FLHAL_F32, {n, 40}));
         call.inputs.push_back(filled(ctx, "matmul", 1, FLHAL_F32, {40, n + 60}));
         call.inputs.emplace_back();
         call.outputs.emplace_back(FLHAL_F32, Sizes{n, n + 60});
         call.expected.push_back(matmul(call.inputs[0].values(), call.inputs[1].values(), {{}, {}, false}, {n, n + 60}, 1, 1));
       }},
      {"softmax", [](Context& ctx, OpCall& call, int64_t n) {
         call.inputs.push_back(filled(ctx, "softmax", 0, FLHAL_F32, {n, 24}));
         call.outputs.emplace_back(FLHAL_F32, Sizes{n, 24});
         call.expected.push_back(softmax(call.inputs[0].values(), -1, false));
       }},
      {"layer_norm", [](Context& ctx, OpCall& call, int64_t n) {
         call.inputs.push_back(filled(ctx, "layer_norm", 0, FLHAL_F32, {n, 24}));
         call.inputs.emplace_back(), call.inputs.emplace_back();
         call.outputs.emplace_back(FLHAL_F32, Sizes{n, 24});
         call.outputs.emplace_back(), call.outputs.emplace_back();
         call.expected.push_back(layer_norm(call.inputs[0].values(), {{}, {}, false}, {{}, {}, false}, 1, 1e-5));
       }},
  };
  return all;
}

OpCall made(Context& ctx, Device& device, const Sample& s, int64_t n) {
  OpCall call;
  begin(call, s.op);
  s.make(ctx, call, n);
  upload(device, call);
  return call;
}

// Runs `look` with each sample that the plugin plans.
void each_planned(Context& ctx, const std::function<void(Device&, const Sample&, OpCall&, Plan&)>& look) {
  ctx.need_ops();
  Device& device = ctx.device();
  bool any = false;
  for (const Sample& s : samples()) {
    OpCall call = made(ctx, device, s, 8);
    Plan plan(ctx, device, call);
    if (!plan.given()) continue;
    any = true;
    look(device, s, call, plan);
  }
  if (!any) not_supported("the plugin declines add, mul, relu, matmul, softmax and layer_norm");
}

}  // namespace

FLHAL_CASE("plan.create.declines_with_reason", Profile::kOps, "FLP-077") {
  ctx.need_ops();
  Device& device = ctx.device();
  OpRow nobodys = op_row("add");
  nobodys.number = 0;
  nobodys.name = "x.flhal.no_such_operation";
  OpCall call = made(ctx, device, samples()[0], 4);
  call.row = &nobodys;
  call.what = nobodys.name;
  Plan plan(ctx, device, call);             // looks at the reason
  FLHAL_EXPECT(!plan.given(), "plan_create gave a plan for the operation \"{}\", which nobody has", nobodys.name);
}

FLHAL_CASE("plan.create.reads_no_operand", Profile::kOps, "FLP-078") {
  // A plan that is only asked for gets addresses whose alignment is true and whose memory may not be touched.
  each_planned(ctx, [&](Device& device, const Sample&, OpCall& call, Plan&) { Plan blind(ctx, device, call, true); });
}

FLHAL_CASE("plan.create.same_answer", Profile::kOps, "FLP-078") {
  each_planned(ctx, [&](Device& device, const Sample& s, OpCall& call, Plan& plan) {
    for (int i = 0; i < 3; ++i) {
      Plan again(ctx, device, call);
      FLHAL_EXPECT(again.given() && again.info().depends_on == plan.info().depends_on, "{}: plan_create answers the same call in another way the second time", s.op);
    }
  });
}

FLHAL_CASE("plan.create.known_dependencies", Profile::kOps, "FLP-085") {
  each_planned(ctx, [&](Device&, const Sample& s, OpCall&, Plan& plan) {
    FLHAL_EXPECT((plan.info().depends_on & ~uint64_t{7}) == 0, "{}: depends_on 0x{:x} has bits that plugin.h does not define", s.op, plan.info().depends_on);
    uint64_t align = plan.info().workspace_align;
    FLHAL_EXPECT((align & (align - 1)) == 0, "{}: workspace_align {} is no power of two", s.op, align);
  });
}

FLHAL_CASE("plan.create.cycles_leave_nothing", Profile::kOps, "FLP-089") {
  each_planned(ctx, [&](Device& device, const Sample& s, OpCall& call, Plan&) {
    for (int i = 0; i < 20; ++i) Plan plan(ctx, device, call);
    uint64_t heap = heap_bytes(), blocks = host_live_blocks();
    constexpr int kRounds = 1000;             // so many that what the C library keeps for itself does not count
    for (int i = 0; i < kRounds; ++i) Plan plan(ctx, device, call);
    FLHAL_EXPECT(host_live_blocks() <= blocks, "{}: {} plans were made and destroyed, and {} blocks of host->alloc are left", s.op, kRounds, host_live_blocks() - blocks);
    int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(heap);
    FLHAL_EXPECT(grown < kRounds * 16, "{}: {} plans were made and destroyed, and {} bytes are left on the heap", s.op, kRounds, grown);
  });
}

FLHAL_CASE("plan.run.again_and_again", Profile::kOps, "FLP-079 FLP-080") {
  each_planned(ctx, [&](Device& device, const Sample&, OpCall& call, Plan& plan) {
    for (int i = 0; i < 5; ++i) plan.run(call);
    expect_results(device, call);
  });
}

FLHAL_CASE("plan.run.other_operands", Profile::kOps, "FLP-080 FLP-085") {
  each_planned(ctx, [&](Device& device, const Sample& s, OpCall& call, Plan& plan) {
    OpCall other = made(ctx, device, s, 8);
    other.what += " with other operands of the same class";
    plan.run(call);
    plan.run(other);
    expect_results(device, call);
    expect_results(device, other);
  });
}

FLHAL_CASE("plan.run.other_sizes", Profile::kOps, "FLP-085") {
  // A plan that does not name the sizes runs calls of every size of its class.
  each_planned(ctx, [&](Device& device, const Sample& s, OpCall& call, Plan& plan) {
    plan.run(call);
    expect_results(device, call);
    for (int64_t n : {1, 3, 19}) {
      OpCall other = made(ctx, device, s, n);
      other.what = fmt::format("{} with {} rows, by a plan made for 8 that does not depend on sizes", s.op, n);
      if (plan.info().depends_on & FLHAL_DEPENDS_SIZES) continue;
      plan.run(other);
      expect_results(device, other);
    }
  });
}

FLHAL_CASE_LIMITED("plan.run.on_threads", Profile::kOps, "FLP-086", 30000) {
  constexpr int kThreads = 4;
  each_planned(ctx, [&](Device& device, const Sample& s, OpCall&, Plan&) {
    OpCall first = made(ctx, device, s, 32);
    Plan plan(ctx, device, first);
    if (!plan.given()) return;
    std::deque<OpCall> calls;   // moving an OpCall may throw, so a vector would copy
    for (int t = 0; t < kThreads; ++t) {
      calls.push_back(made(ctx, device, s, 32));
      calls.back().what = fmt::format("{} on thread {} of {} that run one plan", s.op, t, kThreads);
    }
    std::vector<std::exception_ptr> faults(kThreads);
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        try {
          auto workspace = plan.workspace();
          ++ready;
          while (ready < kThreads) std::this_thread::yield();
          for (int round = 0; round < 40; ++round) {
            plan.run(calls[static_cast<size_t>(t)], workspace.get());
            expect_results(device, calls[static_cast<size_t>(t)]);
          }
        } catch (...) {
          ++ready;
          faults[static_cast<size_t>(t)] = std::current_exception();
        }
      });
    for (std::thread& t : threads) t.join();
    for (auto& f : faults)
      if (f) std::rethrow_exception(f);
  });
}

FLHAL_CASE("plan.run.dynamic_attributes", Profile::kOps, "FLP-087") {
  // alpha of add, and alpha and beta of matmul, may change from run to run of one plan.
  ctx.need_ops();
  Device& device = ctx.device();
  bool any = false;
  for (const char* op : {"add", "matmul"}) {
    auto with = [&](double alpha) {
      OpCall call;
      begin(call, op);
      call.what = fmt::format("{} with alpha {}, by a plan made for alpha 2", op, alpha);
      bool product = std::strcmp(op, "matmul") == 0;
      call.attributes.number(product ? FLHAL_ATTR_MATMUL_ALPHA : FLHAL_ATTR_ADD_ALPHA, alpha, true);
      Sizes a = {16, 24}, b = product ? Sizes{24, 20} : a, out = product ? Sizes{16, 20} : a;
      call.inputs.push_back(filled(ctx, op, 0, FLHAL_F32, a));
      call.inputs.push_back(filled(ctx, op, 1, FLHAL_F32, b));
      if (product) call.inputs.emplace_back();
      call.outputs.emplace_back(FLHAL_F32, out);
      Values left = call.inputs[0].values(), right = call.inputs[1].values();
      call.expected.push_back(product ? matmul(left, right, {{}, {}, false}, out, alpha, 1) : pointwise(op, {left, right}, out, call.attributes));
      upload(device, call);
      return call;
    };
    OpCall first = with(2);
    Plan plan(ctx, device, first);
    if (!plan.given()) continue;
    any = true;
    for (double alpha : {2.0, 0.5, -3.0}) {
      OpCall call = with(alpha);
      plan.run(call);
      expect_results(device, call);
    }
  }
  if (!any) not_supported("the plugin declines add and matmul with an alpha");
}

FLHAL_CASE("plan.describe.ends", Profile::kOps, "FLP-090") {
  ctx.need_ops();
  flhal_p_plugin* handle = ctx.handle();
  std::set<std::string> names;
  auto serial = ctx.plugin().lock();
  for (uint32_t i = 0;; ++i) {
    const char *name = nullptr, *schema = nullptr;
    flhal_status answer = ctx.plugin().ops()->op_describe(handle, i, &name, &schema);
    if (answer == FLHAL_DECLINED) break;
    expect_ok(answer, "op_describe");
    FLHAL_EXPECT(i < 100000, "op_describe still answers at number {}; past the end it is FLHAL_DECLINED", i);
    FLHAL_EXPECT(name != nullptr && *name != 0 && schema != nullptr, "op_describe of number {} gave no name or no schema", i);
    FLHAL_EXPECT(names.insert(name).second, "op_describe lists \"{}\" twice", name);
  }
}

}  // namespace flhal::conformance

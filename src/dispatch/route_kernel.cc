// src/dispatch/route_kernel.cc: a portable kernel on the chip: arguments from the kernel's plan, one launch.
#include "dispatch/chip_faults.h"
#include "dispatch/device_kernels.h"
#include "dispatch/plan.h"

namespace flhal {
namespace {

// Where the kernel of an asynchronous launch tells of bad data; looked at once the work has ended.
struct PendingError {
  kernels::KernelError error;
  Stream* stream;
  const char* op;
  uint64_t sequence;

  static void look(void* self) {
    auto* pending = static_cast<PendingError*>(self);
    if (pending->error.code)
      pending->stream->poison(FLHAL_E_OP_FAILED,
                              fmt::format("{}: {}", pending->op, kernels::kernel_error_text(pending->error)), pending->sequence);
    delete pending;
  }
};

struct KernelRoutePlan final : Plan {
  std::unique_ptr<kernels::KernelPlan> kernel;
  flhal_p_function* function = nullptr;
  // Of a text, until its code is on disk: many drivers compile the rest at the first launch, so the second one keeps it.
  static constexpr uint32_t kRunsUntilKept = 2;
  std::atomic<uint32_t> runs{0};
  const kernels::DenseForm* dense_form = nullptr;

  Status launch(Stream* stream, const flhal_op_call_v1& call, kernels::LaunchArgs& args) {
    kernel->arguments(call, args);
    flhal_p_launch_v1 launch;
    for (uint32_t d = 0; d < 3; ++d) {
      launch.groups[d] = args.groups[d];
      launch.group_size[d] = args.group_size[d];
    }
    launch.args = args.args;
    launch.n_args = args.n_args;
    return submit(stream, launch);
  }

  [[gnu::always_inline]] inline Status submit(Stream* stream, flhal_p_launch_v1& launch) {
    launch.struct_size = sizeof launch;
    launch.struct_type = FLHAL_ST_LAUNCH;
    launch.next = nullptr;
    launch.function = function;
    launch.local_bytes = 0;
    launch.arg_stride = sizeof(flhal_p_arg);
    return stream->submit(def->name, [&](flhal_p_stream* queue) {
      return plugin_call(device->plugin->table.launch, device->handle, queue, &launch);
    });
  }

  [[gnu::cold, gnu::noinline]] void count_run() {
    if (runs.fetch_add(1, std::memory_order_relaxed) == kRunsUntilKept - 1 && kernel->text) keep_kernel_code(device, *kernel->text);
  }

  Status run(PreparedCall& p) override { return run_plain(p.stream, p.call); }

  Status run_plain(Stream* stream, const flhal_op_call_v1& call) override {
    kernels::LaunchArgs args;
    if (__builtin_expect(runs.load(std::memory_order_relaxed) < kRunsUntilKept, 0)) count_run();
    if (__builtin_expect(kernel->can_fail, 0)) return run_checked(stream, call, args);
    return launch(stream, call, args);
  }

  Status run_dense(Stream* stream, const flhal_tensor_v1* places, uint64_t elements) override {
    if (__builtin_expect(runs.load(std::memory_order_relaxed) < kRunsUntilKept, 0)) count_run();
    const kernels::DenseForm& form = *dense_form;
    alignas(16) kernels::DenseParams params;
    flhal_p_arg args[1 + kernels::kMaxPointwise];
    flhal_p_launch_v1 launch;
    form.set_elements(elements, params, &launch.groups[0]);
    args[0] = {FLHAL_ARG_VALUE, sizeof params, &params, nullptr, 0, 0};
    const uint32_t n = form.params.n_operands;
    for (uint32_t k = 0; k < n; ++k) {
      const flhal_tensor_v1& t = places[form.operand[k]];
      args[1 + k] = {FLHAL_ARG_MEMORY, 0, nullptr, t.memory, t.offset, t.address};
    }
    launch.groups[1] = launch.groups[2] = 1;
    launch.group_size[0] = launch.group_size[1] = launch.group_size[2] = 1;
    launch.args = args;
    launch.n_args = 1 + n;
    return submit(stream, launch);
  }

  Status run_checked(Stream* stream, const flhal_op_call_v1& call, kernels::LaunchArgs& args) {
    if (kernel->text) {
      FLHAL_ASSIGN(ChipFaults * faults, chip_faults(stream));
      args.call_number = faults->begin(&args);
      FLHAL_TRY(launch(stream, call, args));
      return faults->end(args.call_number, def->name);
    }
    if (!stream->asynchronous) {
      kernels::KernelError error;
      args.error = &error;
      FLHAL_TRY(launch(stream, call, args));
      if (error.code == 0) return FLHAL_OK;
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: {}", def->name, kernels::kernel_error_text(error));
    }
    auto pending = std::make_unique<PendingError>();
    pending->stream = stream;
    pending->op = def->name;
    args.error = &pending->error;
    Status done = launch(stream, call, args);
    const uint64_t sequence = pending->sequence = stream->here().sequence;
    Status heard = stream->look_after(sequence, PendingError::look, pending.release());   // also of a launch that failed: it may run
    return done.ok() ? heard : done;
  }
};

bool uses(const PreparedCall& p, flhal_dtype a, flhal_dtype b) {
  if (p.call.compute_dtype == a || p.call.compute_dtype == b) return true;
  for (uint32_t i = 0; i < p.n_tensors; ++i) {
    const flhal_tensor_v1& t = p.tensors[i];
    bool given = (t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR)) == 0;
    if (given && (t.dtype == a || t.dtype == b)) return true;
  }
  return false;
}

}  // namespace

Plan* make_kernel_route_plan(const PreparedCall& p, RouteRefusal& why) {
  kernels::Target target;
  if (!device_target(*p.device, &target, &why)) return nullptr;
  FLHAL_DECLINE_UNLESS(p.device->has(FLHAL_CAP_FP64) || !uses(p, FLHAL_F64, FLHAL_C128), NO_FP64, "");
  FLHAL_DECLINE_UNLESS(p.device->has(FLHAL_CAP_INT64) || !uses(p, FLHAL_I64, FLHAL_U64), NO_INT64, "");
  const char* reason = "";
  auto kernel = kernels::make_kernel_plan(p.call, target, &reason);
  FLHAL_DECLINE_UNLESS(kernel, NO_KERNEL, reason ? reason : "");
  flhal_p_function* function = device_function(p.device, *kernel, &why);
  if (!function) return nullptr;
  auto* plan = new KernelRoutePlan;
  plan->kernel = std::move(kernel);
  plan->function = function;
  plan->depends_on = plan->kernel->depends_on;
  plan->dense_form = plan->kernel->text ? nullptr : plan->kernel->dense();   // texts tell of faults and keep their code: run_plain
  plan->dense = plan->dense_form != nullptr;
  return plan;
}

}  // namespace flhal

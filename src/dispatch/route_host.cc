// src/dispatch/route_host.cc: core's own ahead-of-time kernel over host_begin/end. Makes a memory-only chip complete; it
// leaves the chip, so it counts as a fallback and obeys the policy.
//
// Operands whose byte ranges meet share one host view: two staged copies of one range would write back over each other.
#include <flhal/memory.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "dispatch/counters.h"
#include "dispatch/fallback_policy.h"
#include "dispatch/layout.h"
#include "dispatch/plan.h"
#include "kernels/kernel_plan.h"
#include "memory/host_access.h"

namespace flhal {
namespace {

struct Range {
  uint64_t begin, end;            // addresses
  uint32_t access;                // FLHAL_READ | FLHAL_WRITE | FLHAL_DISCARD
  HostView view;
  bool open = false;
};

class HostRanges {
 public:
  explicit HostRanges(Stream* stream) : stream_(stream) {}
  HostRanges(const HostRanges&) = delete;
  ~HostRanges() {
    for (Range& r : ranges_)
      if (r.open) (void)host_end(stream_, r.view.ticket).ok();   // already failing: the first text stays
  }

  void add(uint64_t begin, uint64_t bytes, uint32_t access) { ranges_.push_back({begin, begin + bytes, access, {}}); }

  Status begin() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& r : ranges_) {
      if (!merged.empty() && r.begin < merged.back().end) {
        merged.back().end = std::max(merged.back().end, r.end);
        // What only one of them writes must keep its old bytes.
        merged.back().access = (merged.back().access | r.access | FLHAL_READ) & ~FLHAL_DISCARD;
      } else {
        merged.push_back(r);
      }
    }
    ranges_ = std::move(merged);
    for (Range& r : ranges_) {
      FLHAL_ASSIGN(r.view, host_begin(stream_, r.begin, r.end - r.begin, r.access));
      r.open = true;
      if (r.access & FLHAL_READ) bytes_to_host += r.end - r.begin;
      if (r.access & FLHAL_WRITE) bytes_to_device += r.end - r.begin;
    }
    return FLHAL_OK;
  }

  Status end() {
    Status first;
    for (Range& r : ranges_) {
      r.open = false;
      Status s = host_end(stream_, r.view.ticket);
      if (first.ok()) first = s;
    }
    return first;
  }

  char* host(uint64_t address) const {
    for (const Range& r : ranges_)
      if (address >= r.begin && address < r.end) return static_cast<char*>(r.view.host) + (address - r.begin);
    return nullptr;
  }

  uint64_t bytes_to_host = 0, bytes_to_device = 0;

 private:
  Stream* stream_;
  std::vector<Range> ranges_;
};

struct HostPlan final : Plan {
  std::unique_ptr<kernels::KernelPlan> kernel;

  Status run(PreparedCall& p) override {
    FLHAL_TRY(allow_fallback(*device, def->name, "host route", reason));
    auto started = std::chrono::steady_clock::now();
    HostRanges ranges(p.stream);
    for (uint32_t i = 0; i < p.n_tensors; ++i) {
      const flhal_tensor_v1& t = p.tensors[i];
      if ((t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR)) || t.extent == 0) continue;
      ranges.add(tensor_of(*p.source, i).address, t.extent, access_of(p, i));
    }
    FLHAL_TRY(ranges.begin());
    kernels::LaunchArgs args;
    kernels::KernelError error;
    args.error = kernel->can_fail ? &error : nullptr;
    kernel->arguments(p.call, args);
    const void* argv[kernels::kMaxArgs];
    for (uint32_t i = 0; i < args.n_args; ++i) {
      const flhal_p_arg& a = args.args[i];
      if (args.operand[i] < 0) {
        argv[i] = a.value;
        continue;
      }
      uint32_t operand = static_cast<uint32_t>(args.operand[i]);
      const flhal_tensor_v1& t = p.tensors[operand];
      char* host = ranges.host(tensor_of(*p.source, operand).address);
      argv[i] = host && t.extent ? host + (a.offset - t.offset) : nullptr;
    }
    kernel->host(argv, 0, args.groups[0]);
    FLHAL_TRY(ranges.end());
    auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - started).count();
    count_off_chip(counter, static_cast<uint64_t>(ns), ranges.bytes_to_host, ranges.bytes_to_device, nullptr);
    if (error.code)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: {}", def->name, kernels::kernel_error_text(error));
    return FLHAL_OK;
  }

  uint32_t access_of(const PreparedCall& p, uint32_t i) const {
    uint32_t n_out = p.source->n_outputs;
    if (i >= n_out) {
      uint32_t slot = def->n_outputs + (i - n_out);
      bool written = slot < opset::kMaxOperands && def->operands[slot].written;
      return written ? FLHAL_READ | FLHAL_WRITE : FLHAL_READ;
    }
    // An output with gaps must bring the bytes between its elements along.
    const flhal_tensor_v1& t = p.tensors[i];
    uint64_t elements = 1;
    for (uint32_t d = 0; d < t.rank; ++d) elements *= static_cast<uint64_t>(t.sizes[d]);
    bool gaps = elements * FLHAL_DTYPE_BYTES(t.dtype) != t.extent;
    bool read = gaps || def->operands[i].role == opset::Role::kInOut;
    return read ? FLHAL_READ | FLHAL_WRITE : FLHAL_WRITE | FLHAL_DISCARD;
  }
};

}  // namespace

Plan* make_host_plan(const PreparedCall& p, RouteRefusal& why) {
  FLHAL_DECLINE_UNLESS((p.call.flags & FLHAL_CALL_NO_HOST_ROUTE) == 0, CALL_FORBIDS, "no host route");
  const char* reason = "";
  auto kernel = kernels::make_kernel_plan(p.call, kernels::Target{}, &reason);
  FLHAL_DECLINE_UNLESS(kernel && kernel->host, NO_HOST_KERNEL, reason ? reason : "");
  auto* plan = new HostPlan;
  plan->kernel = std::move(kernel);
  plan->depends_on = plan->kernel->depends_on;
  return plan;
}

}  // namespace flhal

// conformance/mutants/ops.cc: wrong in native operations.
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mutant.h"

namespace flhal::mutants {
namespace {

using Plan = flhal_p_plan*;

// A call with operands and attributes of its own, which may be changed.
struct Changed {
  std::vector<flhal_tensor_v1> tensors;
  std::vector<flhal_attr_v1> attrs;
  flhal_op_call_v1 call;
  explicit Changed(const flhal_op_call_v1& c) : call(c) {
    for (uint32_t i = 0; i < c.n_outputs + c.n_inputs; ++i)
      tensors.push_back(*reinterpret_cast<const flhal_tensor_v1*>(reinterpret_cast<const char*>(c.tensors) + size_t{i} * c.tensor_stride));
    for (uint32_t i = 0; i < c.n_attrs; ++i)
      attrs.push_back(*reinterpret_cast<const flhal_attr_v1*>(reinterpret_cast<const char*>(c.attrs) + size_t{i} * c.attr_stride));
    call.tensors = tensors.data();
    call.tensor_stride = sizeof(flhal_tensor_v1);
    call.attrs = attrs.data();
    call.attr_stride = sizeof(flhal_attr_v1);
  }
  bool empty() const {
    for (const flhal_tensor_v1& t : tensors)
      for (uint32_t d = 0; d < t.rank; ++d)
        if (t.sizes[d] == 0) return true;
    return false;
  }
};

// plan_run as it is, with the call changed.
void (*change)(Changed*) = nullptr;
void run_with(void (*c)(Changed*)) {
  change = c;
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    Changed changed(*call);
    change(&changed);
    return base_ops.plan_run(plan, s, &changed.call, workspace);
  };
}

}  // namespace

MUTATION(declines_without_a_reason) {
  ops.plan_create = [](Device d, const flhal_op_call_v1* call, flhal_plan_info_v1* out, Plan* plan) {
    flhal_status s = base_ops.plan_create(d, call, out, plan);
    out->reason = nullptr;
    return s;
  };
}
MUTATION(planning_reads_operands) {
  ops.plan_create = [](Device d, const flhal_op_call_v1* call, flhal_plan_info_v1* out, Plan* plan) {
    Changed c(*call);
    for (const flhal_tensor_v1& t : c.tensors)
      if (t.address != 0 && t.memory == nullptr && !(t.flags & FLHAL_TENSOR_ABSENT)) {
        volatile char first = *reinterpret_cast<const char*>(t.address);
        (void)first;
      }
    return base_ops.plan_create(d, call, out, plan);
  };
}
MUTATION(yes_and_then_no) {
  ops.plan_run = [](Plan, Stream, const flhal_op_call_v1*, Place) { return refuse(FLHAL_E_UNSUPPORTED, "mutant: plan_run: not on this chip after all"); };
}
MUTATION(wrong_in_one_dtype) {
  run_with([](Changed* c) { if (c->call.compute_dtype == FLHAL_I32 && c->call.n_inputs > 1) c->tensors[2] = c->tensors[1]; });
}
MUTATION(strides_are_ignored) {
  static int64_t dense[3][16];
  run_with([](Changed* c) {
    for (size_t i = 0; i < c->tensors.size() && i < 3; ++i) {
      flhal_tensor_v1& t = c->tensors[i];
      int64_t step = 1;
      for (uint32_t d = t.rank; d-- > 0;) dense[i][d] = step, step *= t.sizes[d];
      t.strides = dense[i];
    }
  });
}
MUTATION(offsets_are_ignored) {
  run_with([](Changed* c) {
    for (flhal_tensor_v1& t : c->tensors)
      if (t.memory != nullptr && t.offset % 64 != 0) t.address -= t.offset % 64, t.offset -= t.offset % 64;
  });
}
MUTATION(writes_one_element_more) {
  static std::map<Plan, Device> devices;
  ops.plan_create = [](Device d, const flhal_op_call_v1* call, flhal_plan_info_v1* out, Plan* plan) {
    flhal_status s = base_ops.plan_create(d, call, out, plan);
    if (s == FLHAL_OK) devices[*plan] = d;
    return s;
  };
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    flhal_status done = base_ops.plan_run(plan, s, call, workspace);
    const flhal_tensor_v1& out = call->tensors[0];
    flhal_p_place behind = {out.memory, out.offset + out.extent, nullptr};
    char zero = 0;
    return done == FLHAL_OK ? base.fill(devices[plan], s, &behind, FLHAL_DTYPE_BYTES(out.dtype), &zero, 1) : done;
  };
}
MUTATION(in_place_runs_twice) {
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    flhal_status done = base_ops.plan_run(plan, s, call, workspace);
    return done == FLHAL_OK && call->alias == FLHAL_ALIAS_EXACT ? base_ops.plan_run(plan, s, call, workspace) : done;
  };
}
MUTATION(plan_of_the_first_size) {
  struct Made { int64_t sizes[3][16]; };
  static std::map<Plan, Made> made;
  ops.plan_create = [](Device d, const flhal_op_call_v1* call, flhal_plan_info_v1* out, Plan* plan) {
    flhal_status s = base_ops.plan_create(d, call, out, plan);
    if (s != FLHAL_OK) return s;
    out->depends_on = 0;
    Changed c(*call);
    for (size_t i = 0; i < c.tensors.size() && i < 3; ++i)
      if (c.tensors[i].rank != 0) std::memcpy(made[*plan].sizes[i], c.tensors[i].sizes, c.tensors[i].rank * sizeof(int64_t));
    return s;
  };
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    Changed c(*call);
    for (size_t i = 0; i < c.tensors.size() && i < 3; ++i) c.tensors[i].sizes = made[plan].sizes[i];
    return base_ops.plan_run(plan, s, &c.call, workspace);
  };
}
MUTATION(workspace_is_shared) {
  struct Kept { Device device; Memory memory; };
  static std::map<Plan, Kept> kept;
  static std::mutex mutex;
  ops.plan_create = [](Device d, const flhal_op_call_v1* call, flhal_plan_info_v1* out, Plan* plan) {
    flhal_status s = base_ops.plan_create(d, call, out, plan);
    if (s != FLHAL_OK || out->workspace_bytes == 0) return s;
    flhal_p_slab_v1 slab{sizeof slab, FLHAL_ST_SLAB, nullptr, out->workspace_bytes, 256, FLHAL_MEM_DEVICE, 0, nullptr, 0, nullptr};
    if (base.memory_alloc(d, &slab) != FLHAL_OK) return refuse(FLHAL_E_INTERNAL, "mutant: no workspace");
    std::lock_guard lock(mutex);
    kept[*plan] = {d, slab.memory};
    out->workspace_bytes = 0;
    return s;
  };
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    flhal_p_place own{};
    {
      std::lock_guard lock(mutex);
      auto at = kept.find(plan);
      if (at != kept.end()) own.memory = at->second.memory;
    }
    // Runs of two threads meet here, so that they overlap also on a busy machine.
    static std::atomic<int> inside{0};
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    ++inside;
    while (inside < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    const flhal_status status = base_ops.plan_run(plan, s, call, own.memory != nullptr ? &own : workspace);
    --inside;
    return status;
  };
  ops.plan_destroy = [](Plan plan) {
    {
      std::lock_guard lock(mutex);
      auto at = kept.find(plan);
      if (at != kept.end()) base.memory_free(at->second.device, at->second.memory), kept.erase(at);
    }
    base_ops.plan_destroy(plan);
  };
}
MUTATION(first_alpha_stays) {
  static std::map<Plan, std::vector<flhal_attr_v1>> first;
  ops.plan_create = [](Device d, const flhal_op_call_v1* call, flhal_plan_info_v1* out, Plan* plan) {
    flhal_status s = base_ops.plan_create(d, call, out, plan);
    if (s == FLHAL_OK) first[*plan] = Changed(*call).attrs;
    return s;
  };
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    Changed c(*call);
    if (first[plan].size() == c.attrs.size()) c.call.attrs = first[plan].data();
    return base_ops.plan_run(plan, s, &c.call, workspace);
  };
}
MUTATION(empty_operands_are_refused) {
  ops.plan_run = [](Plan plan, Stream s, const flhal_op_call_v1* call, Place workspace) {
    return Changed(*call).empty() ? refuse(FLHAL_E_INVALID, "mutant: plan_run: an operand is empty") : base_ops.plan_run(plan, s, call, workspace);
  };
}
MUTATION(plans_stay) {
  ops.plan_destroy = [](Plan) {};
}
MUTATION(list_of_operations_has_no_end) {
  ops.op_describe = [](flhal_p_plugin*, uint32_t i, const char** name, const char** schema) -> flhal_status {
    static std::vector<std::string> names;
    while (names.size() <= i) names.push_back("vendor.op_" + std::to_string(names.size()));
    *name = names[i].c_str();
    *schema = "(out; x)";
    return FLHAL_OK;
  };
}
MUTATION(fill_is_slow) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    uint64_t until = host->now_ns() + 3000000;
    while (host->now_ns() < until) continue;
    return base.fill(d, s, to, n, pattern, width);
  };
}

}  // namespace flhal::mutants

// src/dispatch/queued_call.cc: copying a call and running the copy; see queued_call.h.
#include "dispatch/queued_call.h"

#include <cstring>
#include <new>

#include "core/worker.h"
#include "dispatch/dispatch.h"
#include "dispatch/fallback_policy.h"
#include "dispatch/layout.h"
#include "dispatch/thread_state.h"
#include "memory/kept_ranges.h"

namespace flhal {
namespace {

uint64_t bytes_behind(const flhal_attr_v1& a) {
  switch (a.kind) {
    case FLHAL_ATTR_INTS:
    case FLHAL_ATTR_FLOATS: return uint64_t(a.count) * 8;
    case FLHAL_ATTR_STRING: return (uint64_t(a.count) + 7) / 8 * 8;
    case FLHAL_ATTR_PHILOX: return sizeof(flhal_philox);
    default: return 0;
  }
}

constexpr uint64_t kScalarBytes = 16;           // the widest element

class QueuedCall final : public Work {
 public:
  static std::unique_ptr<QueuedCall> make(Plan* plan, const flhal_op_call_v1& call, const flhal_op_call& source) {
    const uint32_t n = call.n_outputs + call.n_inputs;
    const auto* attrs = call.attrs;             // core's own copies, without gaps
    uint64_t bytes = n * (sizeof(flhal_tensor_v1) + sizeof(KeptRange)) + call.n_attrs * sizeof(flhal_attr_v1);
    for (uint32_t i = 0; i < n; ++i) bytes += 16ull * call.tensors[i].rank + scalar_bytes(call.tensors[i]);
    for (uint32_t i = 0; i < call.n_attrs; ++i) bytes += bytes_behind(attrs[i]);
    if (call.groups) bytes += (call.n_groups * 4ull + 7) / 8 * 8;
    void* memory = ::operator new(sizeof(QueuedCall) + bytes);
    return std::unique_ptr<QueuedCall>(new (memory) QueuedCall(plan, call, source));
  }
  // One piece of memory, larger than the object: the size is not the type's.
  static void operator delete(void* memory) { ::operator delete(memory); }
  static void operator delete(void* memory, void*) { ::operator delete(memory); }
  static void* operator new(size_t, void* memory) { return memory; }

  Status run(Stream* stream) override {
    if (plain_) {
      Status done = plan_->run_plain(stream, call_);
      if (__builtin_expect(done.ok(), 1)) {
        thread_state().count(plan_->counter);
        return FLHAL_OK;
      }
      if (done.code() != FLHAL_DECLINED) return done;   // kQueueInstead too
    }
    return run_generally(stream, Worker::current() != nullptr);
  }

 private:
  QueuedCall(Plan* plan, const flhal_op_call_v1& call, const flhal_op_call& source)
      : Work(plan->def->name), plan_(share(plan)), plain_(plan->plain), policy_(policy_for(plan->def->name)),
        flags_(source.flags), call_(call) {
    char* at = reinterpret_cast<char*>(this + 1);
    auto take = [&](const void* from, uint64_t bytes) {
      char* to = at;
      at += bytes;
      if (from) std::memcpy(to, from, bytes);
      return to;
    };
    const uint32_t n = call.n_outputs + call.n_inputs;
    auto* tensors = reinterpret_cast<flhal_tensor_v1*>(take(call.tensors, n * sizeof(flhal_tensor_v1)));
    ranges_ = reinterpret_cast<KeptRange*>(take(nullptr, n * sizeof(KeptRange)));
    call_.tensors = tensors;
    for (uint32_t i = 0; i < n; ++i) {
      flhal_tensor_v1& t = tensors[i];
      ranges_[i] = {};
      const uint64_t axes = 8ull * t.rank;
      t.sizes = reinterpret_cast<const int64_t*>(take(t.sizes, axes));
      t.strides = reinterpret_cast<const int64_t*>(take(t.strides, axes));
      if (t.flags & FLHAL_TENSOR_ABSENT) continue;
      if (t.flags & FLHAL_TENSOR_HOST_SCALAR) {
        char* value = take(nullptr, kScalarBytes);
        std::memcpy(value, reinterpret_cast<const void*>(t.address), FLHAL_DTYPE_BYTES(t.dtype));
        t.address = reinterpret_cast<uint64_t>(value);
      } else if (t.extent) {
        uint64_t address = tensor_of(source, i).address;
        ranges_[i] = {address, t.extent, AddressMap::find(address)};
      }
    }
    if (call.n_attrs) {
      auto* attrs = reinterpret_cast<flhal_attr_v1*>(take(call.attrs, call.n_attrs * sizeof(flhal_attr_v1)));
      call_.attrs = attrs;
      for (uint32_t i = 0; i < call.n_attrs; ++i) {
        uint64_t bytes = bytes_behind(attrs[i]);
        if (bytes == 0) continue;
        uint64_t given = attrs[i].kind == FLHAL_ATTR_STRING ? attrs[i].count : bytes;
        char* to = take(nullptr, bytes);
        std::memcpy(to, attrs[i].v.p, given);
        attrs[i].v.p = to;
      }
    }
    if (call.groups) call_.groups = reinterpret_cast<const uint32_t*>(take(call.groups, call.n_groups * 4ull));
  }

  static uint64_t scalar_bytes(const flhal_tensor_v1& t) {
    return (t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR)) == FLHAL_TENSOR_HOST_SCALAR ? kScalarBytes : 0;
  }

  // `on_worker`: the caller is gone, and with it perhaps its operands. Otherwise it waits for this very call.
  [[gnu::noinline]] Status run_generally(Stream* stream, bool on_worker) {
    const uint32_t n = call_.n_outputs + call_.n_inputs;
    std::vector<flhal_tensor> tensors(n);
    for (uint32_t i = 0; i < n; ++i) {
      const flhal_tensor_v1& from = call_.tensors[i];
      flhal_tensor& to = tensors[i];
      std::memcpy(&to.sizes, &from.sizes, sizeof to - offsetof(flhal_tensor, sizes));
      to.address = from.flags & FLHAL_TENSOR_HOST_SCALAR ? from.address : ranges_[i].begin;
      to.extent = 0;
    }
    flhal_op_call call{};
    std::memcpy(&call, &call_, offsetof(flhal_op_call, compute_dtype));
    call.struct_size = sizeof call;
    call.tensors = tensors.data();
    call.tensor_stride = sizeof(flhal_tensor);
    call.compute_dtype = call_.compute_dtype;
    call.flags = flags_;
    if (!on_worker) return run_call(stream, &call);
    KeptRanges kept(ranges_, n);
    // Policies are the calling thread's; what it had in force decides here, too.
    auto& scopes = thread_state().scopes;
    scopes.push_back({policy_, ""});
    stream->kept = &kept;
    struct End {
      Stream* stream;
      std::vector<PolicyScope>& scopes;
      ~End() {
        stream->kept = nullptr;
        scopes.pop_back();
      }
    } end{stream, scopes};
    Status done = run_call(stream, &call);
    if (done.code() != FLHAL_DECLINED) return done;
    return fail(FLHAL_E_OP_FAILED, "no route is left: {}", thread_state().decline);
  }

  PlanRef plan_;
  const bool plain_;
  const FallbackPolicy policy_;
  const uint32_t flags_;                        // the application's, with core's own bits
  flhal_op_call_v1 call_;
  KeptRange* ranges_;
};

}  // namespace

Status queue_call(Stream* stream, Plan* plan, const flhal_op_call_v1& call, const flhal_op_call& source) {
  if (!stream->usable()) return stream->unusable_failure(plan->def->name);
  return stream->queue(QueuedCall::make(plan, call, source));
}

}  // namespace flhal

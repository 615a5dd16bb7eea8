// csrc/fallback.cc: running PyTorch's CPU operator on device tensors.
//
// Idea: each storage that the arguments touch is mapped once (flhal_host_begin: the memory itself on unified memory, a staged
// copy elsewhere) over the union of the touched bytes, and each tensor becomes a CPU view into that mapping. So overlap,
// aliasing and writes through views mean on the CPU what they mean on the device; written ranges go back by flhal_host_end.
// New results are moved to the device; results that are arguments are those arguments again.
// Not torch's own cpu_fallback: it copies each argument alone, lets mixed devices through and cannot be asked what it did.
#include "fallback.h"

#include <c10/util/SmallVector.h>
#include <flhal/flhal.h>
#include <torch/library.h>

#include "call.h"
#include "copy.h"
#include "device.h"
#include "errors.h"
#include "factories.h"
#include "fallback_call.h"
#include "fallback_dry.h"
#include "fallback_random.h"
#include "fallback_schema.h"
#include "host_view.h"

namespace torch_fl {

namespace {

thread_local const char* t_reason = nullptr;

// One storage of the device, as the host sees it during the call.
struct Mapping {
  Mapping(c10::StorageImpl* of, size_t from, size_t to, bool writes) : storage(of), begin(from), end(to), written(writes) {}
  c10::StorageImpl* storage;
  size_t begin, end;                       // union of the touched bytes
  bool written;
  void* host = nullptr;
  std::optional<HostView> view;
  c10::Storage cpu;
};

struct Twin {
  at::Tensor device, cpu;
  bool written;
};

class Call : public FallbackCall {
 public:
  using FallbackCall::FallbackCall;

  void map() {
    each_tensor([&](const at::Tensor& t, size_t i) {
      if (on_device(t)) touch(t, written(i));
    });
    stream_ = current_stream(device_);
    visible_ = host_visible(device_);
    for (Mapping& m : mappings_) {
      if (m.end > m.begin) {
        if (visible_) m.begin = 0, m.end = m.storage->nbytes();          // costs nothing, and keeps offsets as they are
        const auto base = reinterpret_cast<flhal_addr>(m.storage->data());
        m.view.emplace(stream_, base + m.begin, m.end - m.begin, m.written ? FLHAL_READ | FLHAL_WRITE : FLHAL_READ);
        m.host = m.view->host();
        if (!visible_) bytes_to_host += m.end - m.begin;
      }
      m.cpu = borrow_host(m.host, m.end - m.begin);
    }
  }

  void replace_arguments() {
    FallbackCall::replace_arguments([&](const at::Tensor& t, bool written) { return twin_of(t, written); });
  }

  void unmap() {
    for (Mapping& m : mappings_) {
      if (!m.view) continue;
      if (m.written && !visible_) bytes_to_device += m.end - m.begin;
      m.view->end();
    }
  }

  // An out= tensor that the CPU operator resized: give the device tensor the same sizes, and the values if they moved.
  void follow_resizes() {
    for (const Twin& twin : twins_) {
      if (!twin.written) continue;
      if (twin.cpu.is_conj() != twin.device.is_conj()) twin.device._set_conj(twin.cpu.is_conj());   // lu_solve conjugates its out= lazily
      if (twin.cpu.is_neg() != twin.device.is_neg()) twin.device._set_neg(twin.cpu.is_neg());
      const bool moved = twin.cpu.storage().data() != mapping_of(twin.device)->host;
      if (!moved && twin.cpu.sizes() == twin.device.sizes() && twin.cpu.strides() == twin.device.strides()) continue;
      grow_like(twin.device, twin.cpu);
      if (moved) {
        copy_into(twin.device, twin.cpu, false);
        bytes_to_device += twin.cpu.nbytes();
      }
    }
  }

  void finish_results() {
    replace_results([&](const at::Tensor& t) { return to_device(t); });
  }

 private:
  Mapping* mapping_of(const at::Tensor& t) {
    c10::StorageImpl* storage = t.storage().unsafeGetStorageImpl();
    for (Mapping& m : mappings_) {
      if (m.storage == storage) return &m;
    }
    return nullptr;
  }

  void touch(const at::Tensor& t, bool written) {
    const ByteRange range = touched_bytes(t);
    const size_t begin = range.begin & ~size_t{63};                      // the mapping stays as aligned as the device memory
    if (Mapping* m = mapping_of(t)) {
      if (range.end > range.begin) {
        if (m->end == m->begin) {
          m->begin = begin, m->end = range.end;
        } else {
          m->begin = std::min(m->begin, begin), m->end = std::max(m->end, range.end);
        }
      }
      m->written = m->written || written;
      return;
    }
    mappings_.emplace_back(t.storage().unsafeGetStorageImpl(), range.end > range.begin ? begin : 0, range.end, written);
  }

  at::Tensor twin_of(const at::Tensor& t, bool written) {
    for (Twin& twin : twins_) {                                          // the same tensor twice stays the same tensor
      if (twin.device.is_same(t)) {
        twin.written = twin.written || written;
        return twin.cpu;
      }
    }
    const Mapping* m = mapping_of(t);
    twins_.push_back({t, cpu_twin(t, m->cpu, m->begin), written});
    return twins_.back().cpu;
  }

  static void grow_like(const at::Tensor& device, const at::Tensor& cpu) {
    // Strides of the CPU's own choice may reach further than dense ones would (a part of a larger result of LAPACK).
    reshape_tensor(device.unsafeGetTensorImpl(), cpu.sizes(), at::OptionalIntArrayRef(cpu.strides()));
  }

  at::Tensor to_device(const at::Tensor& cpu) {
    if (!cpu.device().is_cpu()) return cpu;
    if (cpu.layout() == at::kMkldnn) return cpu;
    if (cpu.layout() != at::kStrided) return cpu.to(c10::Device(kDeviceType, device_));   // to_sparse(): its parts move (sparse.cc)
    for (const Twin& twin : twins_) {
      if (twin.cpu.is_same(cpu)) return twin.device;
    }
    for (const Mapping& m : mappings_) {                                 // an undeclared view of an argument stays one
      if (m.cpu.is_alias_of(cpu.storage()) && cpu.storage().nbytes() != 0) return view_on(m, cpu);
    }
    at::Tensor out = cpu.is_non_overlapping_and_dense() ? empty_like_strided(cpu.sizes(), cpu.strides(), cpu.scalar_type(), device_)
                                                        : empty_contiguous(cpu.sizes(), cpu.scalar_type(), device_);
    if (cpu.is_conj()) out._set_conj(true);
    if (cpu.is_neg()) out._set_neg(true);
    copy_into(out, cpu, false);
    bytes_to_device += cpu.nbytes();
    return out;
  }

  at::Tensor view_on(const Mapping& m, const at::Tensor& cpu) {
    c10::Storage storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(m.storage));
    at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), cpu.dtype());
    const auto offset = cpu.storage_offset() + static_cast<int64_t>(m.begin / cpu.itemsize());
    out.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), offset);
    return out;
  }

  flhal_stream* stream_ = nullptr;
  bool visible_ = false;
  c10::SmallVector<Mapping, 6> mappings_;
  c10::SmallVector<Twin, 6> twins_;
};

}  // namespace

void raise_two_devices(c10::Device a, c10::Device b) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", a, " and ", b, "!");
}

ReasonScope::ReasonScope(const char* reason) : before_(std::exchange(t_reason, reason)) {}
ReasonScope::~ReasonScope() { t_reason = before_; }

void run_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* reason) {
  const OpInfo& info = op_info(op);
  if (info.refusal != Refusal::kNone) raise_refusal(info, reason);
  Call call(op, info, stack);
  const c10::DeviceIndex device = call.find_device();
  if (device < 0) raise_refusal(info, "no argument lies on the device");
  call.check_mixed();
  if (C10_UNLIKELY(in_dry_run())) {
    dry_fallback(op, info, stack, device, reason);
    return;
  }

  FallbackAccount account{0, &call, info};
  check(flhal_fallback_enter(device_handle(device), info.name.c_str(), reason, &account.ticket), info.name.c_str());
  call.map();
  call.replace_arguments();
  if (info.generator_arg >= 0) give_cpu_generator(info, stack, device);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  call.unmap();
  call.follow_resizes();
  call.finish_results();
}

void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const char* reason = std::exchange(t_reason, nullptr);
  run_fallback(op, stack, reason != nullptr ? reason : "no kernel in the adapter");
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>()); }
// Torch's kernel for all backends goes to a table that only torch's own backends are in.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"_conj_physical", "conj_physical_"}) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}
// Without it every operator under autocast fails for this device; autocast.cc adds the cast lists.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

}  // namespace torch_fl

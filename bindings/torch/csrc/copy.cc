// csrc/copy.cc: moving values between tensors of any layout, dtype and place.
//
// Idea: dense copies of equal dtype and strides are bytes (flhal_copy); on one device everything else is the op "copy"; with
// the CPU the odd half of the work is done where it is cheapest: on the CPU side, by torch's own copy_, over mapped or staged
// memory. Only copies between dense tensors and pinned memory may return early.
#include "copy.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_strided.h>
#include <flhal/flhal.h>
#include <torch/library.h>

#include "call.h"
#include "device.h"
#include "errors.h"
#include "factories.h"
#include "host_allocator.h"
#include "host_view.h"

namespace torch_fl {
namespace {

bool ours(const at::Tensor& t) { return t.device().type() == kDeviceType; }
flhal_addr address_of(const at::Tensor& t) { return reinterpret_cast<flhal_addr>(t.const_data_ptr()); }
bool same_bits(const at::Tensor& a, const at::Tensor& b) { return a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg(); }

// Strides of dimensions of size 1 mean nothing; do the others agree?
bool same_strides(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

bool plain_bytes(const at::Tensor& dst, const at::Tensor& src) {
  return dst.scalar_type() == src.scalar_type() && same_bits(dst, src) && dst.is_non_overlapping_and_dense() &&
         src.is_non_overlapping_and_dense() && same_strides(dst, src);
}

// The op "copy" on one device. False: no route for it.
bool run_copy_op(const at::Tensor& dst, const at::Tensor& src) {
  OpCall call(FLHAL_OP_COPY);
  call.out(dst);
  call.in(src);
  return submit(call, dst.device().index());
}

// Last resort on one device: torch's CPU copy over both, mapped or staged. Counted as a fallback.
void copy_on_host(c10::DeviceIndex index, const at::Tensor& dst, const at::Tensor& src) {
  uint64_t ticket = 0;
  check(flhal_fallback_enter(device_handle(index), "aten::copy_", decline_reason(), &ticket), "copy_");
  flhal_stream* stream = current_stream(index);
  const ByteRange d = touched_bytes(dst), s = touched_bytes(src);
  const auto base = [](const at::Tensor& t) { return reinterpret_cast<flhal_addr>(t.storage().data()); };
  HostView from(stream, base(src) + s.begin, s.end - s.begin, FLHAL_READ);
  at::Tensor source = cpu_twin(src, borrow_host(from.host(), s.end - s.begin), s.begin).clone();   // dst may stage the same bytes
  from.end();
  HostView to(stream, base(dst) + d.begin, d.end - d.begin, FLHAL_READ | FLHAL_WRITE);
  cpu_twin(dst, borrow_host(to.host(), d.end - d.begin), d.begin).copy_(source);
  to.end();
  const bool visible = host_visible(index);
  flhal_fallback_leave(ticket, visible ? 0 : s.end - s.begin, visible ? 0 : d.end - d.begin, nullptr);
}

void copy_on_device(const at::Tensor& dst, const at::Tensor& src) {
  const c10::DeviceIndex index = dst.device().index();
  at::assert_no_internal_overlap(dst);
  at::assert_no_partial_overlap(dst, src);
  flhal_stream* stream = current_stream(index);
  if (plain_bytes(dst, src)) {
    if (address_of(dst) != address_of(src)) check(flhal_copy(stream, address_of(dst), address_of(src), dst.nbytes(), 0), "copy_");
    return;
  }
  if (same_bits(dst, src) && run_copy_op(dst, src)) return;
  copy_on_host(index, dst, src);
}

void device_to_cpu(const at::Tensor& dst, const at::Tensor& src, bool non_blocking) {
  const c10::DeviceIndex index = src.device().index();
  flhal_stream* stream = current_stream(index);
  if (plain_bytes(dst, src)) {
    void* host = dst.mutable_data_ptr();
    const bool early = non_blocking && is_pinned(host);
    check(flhal_copy(stream, reinterpret_cast<flhal_addr>(host), address_of(src), src.nbytes(), early ? FLHAL_COPY_MAY_RETURN_EARLY : 0),
          "copy_");
    if (early) flhal_host_used_on(host, stream);
    return;
  }
  const ByteRange range = touched_bytes(src);
  const size_t span = range.end - range.begin;
  if (!host_visible(index) && span > 2 * src.nbytes() + 4096) {   // mostly gaps: pack on the device, move the packed bytes
    at::Tensor packed = empty_contiguous(src.sizes(), src.scalar_type(), index);
    packed._set_conj(src.is_conj());
    packed._set_neg(src.is_neg());
    copy_on_device(packed, src);
    device_to_cpu(dst, packed, false);
    return;
  }
  HostView view(stream, reinterpret_cast<flhal_addr>(src.storage().data()) + range.begin, span, FLHAL_READ);
  dst.copy_(cpu_twin(src, borrow_host(view.host(), span), range.begin));
  view.end();
}

void cpu_to_device(const at::Tensor& dst, const at::Tensor& src, bool non_blocking) {
  const c10::DeviceIndex index = dst.device().index();
  at::assert_no_internal_overlap(dst);
  flhal_stream* stream = current_stream(index);
  if (plain_bytes(dst, src)) {
    const void* host = src.const_data_ptr();
    const bool early = non_blocking && is_pinned(host);
    check(flhal_copy(stream, address_of(dst), reinterpret_cast<flhal_addr>(host), dst.nbytes(), early ? FLHAL_COPY_MAY_RETURN_EARLY : 0),
          "copy_");
    if (early) flhal_host_used_on(host, stream);
    return;
  }
  if (dst.is_non_overlapping_and_dense()) {
    at::Tensor staged = at::empty_strided(dst.sizes(), dst.strides(), dst.options().device(c10::kCPU));
    staged._set_conj(dst.is_conj());
    staged._set_neg(dst.is_neg());
    staged.copy_(src);
    check(flhal_copy(stream, address_of(dst), reinterpret_cast<flhal_addr>(staged.const_data_ptr()), dst.nbytes(), 0), "copy_");
    return;
  }
  if (host_visible(index)) {                          // only the addressed elements are written: the gaps are others' (VIEW-06)
    const ByteRange range = touched_bytes(dst);
    const size_t span = range.end - range.begin;
    HostView view(stream, reinterpret_cast<flhal_addr>(dst.storage().data()) + range.begin, span, FLHAL_READ | FLHAL_WRITE);
    cpu_twin(dst, borrow_host(view.host(), span), range.begin).copy_(src);
    view.end();
    return;
  }
  at::Tensor packed = empty_contiguous(dst.sizes(), dst.scalar_type(), index);
  packed._set_conj(dst.is_conj());
  packed._set_neg(dst.is_neg());
  cpu_to_device(packed, src, false);
  copy_on_device(dst, packed);
}

void device_to_device(const at::Tensor& dst, const at::Tensor& src) {
  const c10::DeviceIndex to = dst.device().index(), from = src.device().index();
  at::assert_no_internal_overlap(dst);
  if (plain_bytes(dst, src)) {
    flhal_stream* stream = current_stream(to);
    if (current_stream_id(from) != 0) {               // flhal_copy itself waits for the other device's default stream only
      flhal_event* event = nullptr;
      check(flhal_event_create(0, &event), "copy_");
      flhal_status status = flhal_event_record(event, current_stream(from));
      if (status == FLHAL_OK) status = flhal_event_wait(event, stream);
      flhal_event_release(event);
      check(status, "copy_");
    }
    check(flhal_copy(stream, address_of(dst), address_of(src), dst.nbytes(), 0), "copy_");
    flhal_memory_used_on(address_of(src), stream);
    return;
  }
  // Pack on the source device in the source's dtype, move, then convert and lay out on the target.
  at::Tensor packed = src;
  if (!src.is_contiguous()) {
    packed = empty_contiguous(src.sizes(), src.scalar_type(), from);
    packed._set_conj(src.is_conj());
    packed._set_neg(src.is_neg());
    copy_on_device(packed, src);
  }
  at::Tensor arrived = empty_contiguous(src.sizes(), src.scalar_type(), to);
  arrived._set_conj(src.is_conj());
  arrived._set_neg(src.is_neg());
  device_to_device(arrived, packed);
  copy_on_device(dst, arrived);
}

}  // namespace

void copy_into(const at::Tensor& dst, const at::Tensor& given, bool non_blocking) {
  if (dst.is_same(given)) return;
  const at::Tensor src = given.sizes() == dst.sizes() ? given : given.expand(dst.sizes());
  if (dst.numel() == 0) return;
  if (C10_UNLIKELY(in_dry_run())) {                   // only what would be an operator has a route to tell
    if (ours(dst) && ours(src) && dst.device() == src.device() && !plain_bytes(dst, src)) run_copy_op(dst, src);
    return;
  }
  if (ours(dst) && ours(src)) {
    if (dst.device() == src.device()) {
      copy_on_device(dst, src);
    } else {
      device_to_device(dst, src);
    }
  } else if (ours(src)) {
    if (dst.device().is_cpu()) {
      device_to_cpu(dst, src, non_blocking);
    } else {                                          // another accelerator: through the host
      dst.copy_(src.to(c10::Device(c10::kCPU)));
    }
  } else if (src.device().is_cpu()) {
    cpu_to_device(dst, src, non_blocking);
  } else {
    cpu_to_device(dst, src.to(c10::Device(c10::kCPU)), false);
  }
}

namespace {

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  copy_into(dst, self, non_blocking);
  return dst;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_copy_from", TORCH_FN(copy_from)); }
// copy_into handles both bits; without these, x.conj().cpu() resolves by clone, which copies, which resolves, for ever.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace
}  // namespace torch_fl

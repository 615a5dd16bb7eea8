// csrc/sparse.cc: sparse tensors (COO, CSR, CSC, BSR, BSC) whose indices and values are dense tensors of the device.
//
// Idea: what makes, moves, copies and takes apart a sparse tensor works on its dense parts alone, so torch's own functions serve
// every backend; the rows below only say so to the dispatcher. Everything that computes goes to the CPU as a whole, is counted as
// a fallback and obeys its policy. Quantized and nested tensors have no parts to move by: they are refused with what to do.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/select_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>
#include <flhal/flhal.h>
#include <torch/library.h>

#include "device.h"
#include "errors.h"
#include "fallback.h"
#include "fallback_call.h"
#include "fallback_random.h"
#include "fallback_schema.h"

namespace torch_fl {
namespace {

constexpr const char* kReason = "sparse tensors are computed by the CPU";

bool is_sparse_layout(const at::Tensor& t) { return t.layout() != at::kStrided; }

uint64_t bytes_of(const at::Tensor& t) {
  if (t.layout() == at::kSparse) return t._indices().nbytes() + t._values().nbytes();
  return is_sparse_layout(t) ? t.values().nbytes() : t.nbytes();
}

// One operator, moved to the CPU and back.
class Moved : public FallbackCall {
 public:
  using FallbackCall::FallbackCall;

  void to_cpu() {
    replace_arguments([&](const at::Tensor& t, bool written) { return twin_of(t, written); });
  }

  // The kernel that the moved arguments ask for, below autograd.
  c10::DispatchKeySet cpu_keys() {
    c10::DispatchKeySet keys(c10::DispatchKey::CPU);
    each_tensor([&](const at::Tensor& t, size_t) {
      if (t.layout() == at::kSparse) keys = keys.add(c10::DispatchKey::SparseCPU);
      else if (is_sparse_layout(t)) keys = keys.add(c10::DispatchKey::SparseCsrCPU);
    });
    return keys;
  }

  void write_back() {
    for (Twin& twin : twins_) {
      if (!twin.written) continue;
      if (!is_sparse_layout(twin.device) && twin.device.sizes() != twin.cpu.sizes()) twin.device.resize_(twin.cpu.sizes());
      const bool compressed = is_sparse_layout(twin.device) && twin.device.layout() != at::kSparse;
      if (compressed && twin.device._nnz() != twin.cpu._nnz()) twin.device.resize_as_sparse_(twin.cpu.to(c10::Device(kDeviceType, device_)));
      if (!twin.device.is_same(twin.cpu)) twin.device.copy_(twin.cpu);
      bytes_to_device += bytes_of(twin.cpu);
    }
  }

  void finish_results() {
    replace_results([&](const at::Tensor& t) {
      if (!t.device().is_cpu()) return t;
      bytes_to_device += bytes_of(t);
      return t.to(c10::Device(kDeviceType, device_));
    });
  }

 private:
  struct Twin {
    at::Tensor device, cpu;
    bool written;
  };

  at::Tensor twin_of(const at::Tensor& t, bool written) {
    for (Twin& twin : twins_) {              // the same tensor twice stays the same tensor
      if (!twin.device.is_same(t)) continue;
      twin.written = twin.written || written;
      return twin.cpu;
    }
    twins_.push_back({t, t.to(c10::Device(c10::kCPU)), written});
    bytes_to_host += bytes_of(twins_.back().cpu);
    return twins_.back().cpu;
  }

  c10::SmallVector<Twin, 4> twins_;
};

// Ops of sparse tensors have their CPU kernel under a key of their own.
bool cpu_has(const c10::OperatorHandle& op) {
  for (c10::DispatchKey key : {c10::DispatchKey::SparseCPU, c10::DispatchKey::SparseCsrCPU})
    if (op.hasComputedKernelForDispatchKey(key)) return true;
  return false;
}

void boxed_sparse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const OpInfo& info = op_info(op);
  if (info.refusal != Refusal::kNone && !(info.refusal == Refusal::kNoCpuKernel && cpu_has(op))) raise_refusal(info, kReason);
  Moved call(op, info, stack);
  const c10::DeviceIndex device = call.find_device();
  if (device < 0) raise_refusal(info, "no argument lies on the device");
  call.check_mixed();
  FallbackAccount account{0, &call, info};
  check(flhal_fallback_enter(device_handle(device), info.name.c_str(), kReason, &account.ticket), info.name.c_str());
  call.to_cpu();
  if (info.generator_arg >= 0) give_cpu_generator(info, stack, device);
  // Gradients were recorded above. Not callBoxed(), which reads torch's thread-local keys: from a library that is loaded late
  // that takes space in the static TLS block that may not be there.
  op.redispatchBoxed(call.cpu_keys(), stack);
  call.write_back();
  call.finish_results();
}

void boxed_quantized(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op_info(op).name, ": ", kDeviceName, " has no quantized tensors; move tensor.dequantize() "
                              "instead, or leave the quantized part of the model on the CPU");
}
void boxed_nested(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op_info(op).name, ": ", kDeviceName, " has no nested tensors of layout torch.strided; make them "
                              "with layout=torch.jagged, or move tensor.to_padded_tensor(0) instead");
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_sparse>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_sparse>()); }
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_quantized>()); }
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_nested>()); }

namespace of = at::native;
using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Format = std::optional<at::MemoryFormat>;

// torch makes the parts of a new COO tensor on the current device of the type, not on the one that is asked for.
at::Tensor empty_coo(c10::SymIntArrayRef size, Dtype dtype, Layout layout, Device device, std::optional<bool> pin, Format format) {
  const c10::OptionalDeviceGuard there(device);
  return of::empty_sparse_symint(size, dtype, layout, device, pin, format);
}
at::Tensor coo_with_dims(int64_t sparse, int64_t dense, at::IntArrayRef size, Dtype dtype, Layout layout, Device device, std::optional<bool> pin) {
  const c10::OptionalDeviceGuard there(device);
  return of::new_with_dims_sparse(sparse, dense, size, dtype, layout, device, pin);
}
at::Tensor coo_of(int64_t sparse, int64_t dense, c10::SymIntArrayRef size, const at::Tensor& indices, const at::Tensor& values, Dtype dtype,
                  Layout layout, Device device, std::optional<bool> pin, std::optional<bool> coalesced) {
  const c10::DeviceGuard there(values.device());
  return of::new_with_dims_and_tensor_sparse_symint(sparse, dense, size, indices, values, dtype, layout, device, pin, coalesced);
}
at::Tensor clone_coo(const at::Tensor& self, Format format) {
  const c10::DeviceGuard there(self.device());
  return of::clone_sparse(self, format);
}
at::Tensor& copy_coo(at::Tensor& self, const at::Tensor& from, bool non_blocking) {
  const c10::DeviceGuard there(self.device());
  return of::copy_sparse_wrapper_(self, from, non_blocking);
}
at::Tensor& copy_coo_to_coo(at::Tensor& self, const at::Tensor& from, bool non_blocking) {
  const c10::DeviceGuard there(self.device());
  return of::copy_sparse_(self, from, non_blocking);
}

// Operators of which torch has a kernel for sparse tensors of the CPU. Many have another one for all backends, written for dense
// tensors, that would be taken before the fallback.
void compute_on_cpu(torch::Library& m, c10::DispatchKey cpu, c10::DispatchKey ours_key) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    constexpr std::string_view kAten = "aten::";
    if (name.name.rfind(kAten, 0) != 0) continue;
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasKernelForDispatchKey(cpu) || op->hasKernelForDispatchKey(ours_key)) continue;
    const std::string bare = name.name.substr(kAten.size()) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    m.impl(bare.c_str(), torch::CppFunction::makeFromBoxedFunction<&boxed_sparse>());
  }
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_coo));
  m.impl("empty_like", TORCH_FN(of::empty_like_sparse_coo));
  m.impl("_sparse_coo_tensor_with_dims", TORCH_FN(coo_with_dims));
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", TORCH_FN(coo_of));
  m.impl("clone", TORCH_FN(clone_coo));
  m.impl("copy_", TORCH_FN(copy_coo));
  m.impl("copy_sparse_to_sparse_", TORCH_FN(copy_coo_to_coo));
  m.impl("resize_as_sparse_", TORCH_FN(of::resize_as_sparse_));
  m.impl("sparse_resize_", TORCH_FN(of::sparse_resize_));
  m.impl("sparse_resize_and_clear_", TORCH_FN(of::sparse_resize_and_clear_));
  m.impl("zero_", TORCH_FN(of::zero_sparse_));
  m.impl("sparse_dim", TORCH_FN(of::sparse_dim_sparse));
  m.impl("_dimI", TORCH_FN(of::sparse_dim_sparse));
  m.impl("dense_dim", TORCH_FN(of::dense_dim_sparse));
  m.impl("_dimV", TORCH_FN(of::dense_dim_sparse));
  m.impl("_nnz", TORCH_FN(of::_nnz_sparse));
  m.impl("is_coalesced", TORCH_FN(of::is_coalesced_sparse));
  m.impl("_coalesced_", TORCH_FN(of::_coalesced_sparse_));
  m.impl("_indices", TORCH_FN(of::_indices_sparse));
  m.impl("_values", TORCH_FN(of::_values_sparse));
  m.impl("indices", TORCH_FN(of::indices_sparse));
  m.impl("values", TORCH_FN(of::values_sparse));
  m.impl("unsqueeze", TORCH_FN(of::unsqueeze_sparse));
  m.impl("permute", TORCH_FN(of::permute_sparse_coo));
  compute_on_cpu(m, c10::DispatchKey::SparseCPU, c10::DispatchKey::SparsePrivateUse1);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(of::empty_sparse_compressed_symint));
  m.impl("empty_like", TORCH_FN(of::empty_like_sparse_csr));
  m.impl("clone", TORCH_FN(of::clone_sparse_compressed));
  m.impl("copy_", TORCH_FN(of::copy_sparse_compressed_));
  m.impl("resize_", TORCH_FN(of::resize_sparse_csr_));
  m.impl("resize_as_sparse_", TORCH_FN(of::resize_as_sparse_compressed_));
  m.impl("zero_", TORCH_FN(of::zero_sparse_csr_));
  m.impl("sparse_dim", TORCH_FN(of::sparse_dim_sparse_csr));
  m.impl("dense_dim", TORCH_FN(of::dense_dim_sparse_csr));
  m.impl("_nnz", TORCH_FN(of::_nnz_sparse_csr));
  m.impl("values", TORCH_FN(of::values_sparse_csr));
  m.impl("crow_indices", TORCH_FN(of::crow_indices_sparse_csr));
  m.impl("col_indices", TORCH_FN(of::col_indices_sparse_csr));
  m.impl("ccol_indices", TORCH_FN(of::ccol_indices_sparse_csr));
  m.impl("row_indices", TORCH_FN(of::row_indices_sparse_csr));
  m.impl("select.int", TORCH_FN(of::select_sparse_csr));
  compute_on_cpu(m, c10::DispatchKey::SparseCsrCPU, c10::DispatchKey::SparseCsrPrivateUse1);
}

}  // namespace
}  // namespace torch_fl

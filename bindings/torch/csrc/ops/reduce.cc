// csrc/ops/reduce.cc: reductions. flhal takes the output in keepdim form, so the result's memory is shown to it with the
// reduced dimensions put back as size 1.
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/Tensor.h>

#include <bitset>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

using Dims = std::bitset<at::dim_bitset_size>;

Dims dims_from(c10::IntArrayRef dims, int64_t rank, bool empty_means_all) {
  if (dims.empty()) return empty_means_all ? Dims().set() : Dims();
  if (rank == 0) return Dims().set();
  return at::dim_list_to_bitset(dims, static_cast<size_t>(rank));
}

// The result's memory with the rank of the input.
struct KeepDims {
  c10::SmallVector<int64_t, 8> sizes, strides;
  KeepDims(const at::Tensor& out, const at::Tensor& x, const Dims& reduced) {
    const bool kept = out.dim() == x.dim();
    int64_t j = 0;
    for (int64_t i = 0; i < x.dim(); ++i) {
      if (reduced[i]) {
        sizes.push_back(1);
        strides.push_back(1);
        j += kept;
      } else {
        sizes.push_back(x.size(i));
        strides.push_back(out.stride(j++));
      }
    }
  }
};

// any and all give bool, and uint8 of uint8. With another out= the CPU refuses, or converts to uint8 first, where 0.5 is nothing.
bool other_truth(const Frame& f) {
  if (f.op() != FLHAL_OP_ANY && f.op() != FLHAL_OP_ALL) return false;
  const c10::ScalarType type = f.result().scalar_type();
  return type != at::kBool && !(type == at::kByte && f.tensor(0).scalar_type() == at::kByte);
}

bool run_reduce(Frame& f, uint32_t op, const at::Tensor& out, const at::Tensor& x, const Dims& dims, c10::ScalarType compute,
                const double* correction = nullptr) {
  if (out.numel() == 0) return true;
  KeepDims shape(out, x, dims);
  // Infinity is a number of that type as int32, and another one as the int64 that the kernels sum in.
  const bool cut = c10::isIntegralType(compute, false) && computed_wider(compute) && c10::isFloatingType(x.scalar_type());
  at::Tensor whole;
  if (cut && x.numel() != 0) {
    whole = f.temporary(x.sizes(), compute);
    OpCall copy(FLHAL_OP_COPY, compute);
    copy.out(whole);
    copy.in(x);
    if (!f.submit(copy)) return false;
  }
  OpCall call(op, compute);
  call.out_as(out, shape.sizes, shape.strides);
  call.in(whole.defined() ? whole : x);
  if (correction != nullptr) call.attr(FLHAL_ATTR_VAR_CORRECTION, *correction);
  return f.submit(call);
}

// The CPU's refusals of dtypes: integers, and a complex out= of real numbers.
bool spreads(const Frame& f) {
  return c10::isFloatingType(f.tensor(0).scalar_type()) && c10::isFloatingType(f.result().scalar_type());
}

}  // namespace

// (self, dim list or None or int, keepdim, ...): sum, mean, amax, any.dims, prod.dim_int, ...
bool reduce(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (other_truth(f)) return f.decline("a truth as another type than bool");
  return run_reduce(f, f.op(), f.result(), x, dims_from(dims_of(f.args[1]), x.dim(), true), f.compute);
}

// (self, ...): everything is reduced.
bool reduce_all(Frame& f) {
  if (other_truth(f)) return f.decline("a truth as another type than bool");
  return run_reduce(f, f.op(), f.result(), f.tensor(0), Dims().set(), f.compute);
}

bool arg_reduce(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  return run_reduce(f, f.op(), f.result(), x, dims_from(dims_of(f.args[1]), x.dim(), true), x.scalar_type());
}

// max.dim, min.dim: values and the first index of them. With NaN both ops name the first NaN.
bool extremum_with_index(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (!f.fresh_results()) return f.decline("max and min with out= and indices");
  Dims dims = dims_from(dims_of(f.args[1]), x.dim(), true);
  const bool largest = f.op() == FLHAL_OP_AMAX;
  return run_reduce(f, f.op(), f.result(0), x, dims, x.scalar_type()) &&
         run_reduce(f, largest ? FLHAL_OP_ARGMAX : FLHAL_OP_ARGMIN, f.result(1), x, dims, x.scalar_type());
}

// var.correction(self, dim?, correction, keepdim)
bool variance(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (!spreads(f)) return f.decline("variance of other than real numbers");
  double correction = f.args[2].isNone() ? 1.0 : f.args[2].toScalar().toDouble();
  return run_reduce(f, FLHAL_OP_VAR, f.result(), x, dims_from(dims_of(f.args[1]), x.dim(), true), f.compute, &correction);
}

bool deviation(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (!spreads(f)) return f.decline("deviation of other than real numbers");
  double correction = f.args[2].isNone() ? 1.0 : f.args[2].toScalar().toDouble();
  at::Tensor squared = f.temporary(f.result().sizes(), c10::isReducedFloatingType(f.compute) ? at::kFloat : f.compute);
  if (!run_reduce(f, FLHAL_OP_VAR, squared, x, dims_from(dims_of(f.args[1]), x.dim(), true), squared.scalar_type(), &correction))
    return false;
  if (f.result().numel() == 0) return true;
  OpCall root(FLHAL_OP_SQRT, squared.scalar_type());
  root.out(f.result());
  root.in(squared);
  return f.submit(root);
}

// linalg_vector_norm(self, ord, dim?, keepdim, dtype?), norm.ScalarOpt_dim(self, p?, dim, keepdim). ord 2 is flhal's norm2,
// infinity the largest magnitude, 1 the sum of magnitudes.
bool vector_norm(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (c10::isComplexType(x.scalar_type())) return f.decline("norm of complex numbers");
  double ord = f.args[1].isNone() ? 2.0 : f.args[1].toScalar().toDouble();
  Dims dims = dims_from(dims_of(f.args[2]), x.dim(), true);
  if (ord == 2.0) return run_reduce(f, FLHAL_OP_NORM2, f.result(), x, dims, f.compute);
  if (ord != 1.0 && !std::isinf(ord)) return f.decline("norm of an order other than 1, 2 and infinity");
  if (x.numel() == 0) return f.decline("norm of nothing");
  at::Tensor magnitude = f.temporary(x.sizes(), f.compute);
  OpCall abs(FLHAL_OP_ABS, f.compute);
  abs.out(magnitude);
  abs.in(x);
  if (!f.submit(abs)) return false;
  uint32_t op = ord == 1.0 ? FLHAL_OP_SUM : ord > 0 ? FLHAL_OP_AMAX : FLHAL_OP_AMIN;
  return run_reduce(f, op, f.result(), magnitude, dims, f.compute);
}

// cumsum(self, dim, dtype?)
bool cumsum(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (f.result().numel() == 0) return true;
  OpCall call(x.dim() == 0 ? FLHAL_OP_COPY : FLHAL_OP_CUMSUM, f.result().scalar_type());
  call.out(f.result());
  call.in(x);
  if (x.dim() != 0) call.attr(FLHAL_ATTR_CUMSUM_DIM, at::maybe_wrap_dim(f.args[1].toInt(), x.dim()));
  return f.submit(call);
}

}  // namespace torch_fl

// csrc/ops/advanced_index.cc: x[i, j] and x[i, j] = y with integer index tensors.
//
// Idea: the indexed dimensions become one (a view), the index tensors become one index into it, counted on the device; then it is
// index_select, index_add or scatter, whose kernels check. Masks (bool indices) need a count of their elements first and stay
// with the CPU.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "csrc/copy.h"
#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

using c10::DimVector;

struct Indexed {
  DimVector dims;                       // indexed dimensions, ascending
  std::vector<at::Tensor> index;        // their index tensors, on the device
  DimVector shape;                      // what they broadcast to
  bool adjacent = true;
};

// nullptr, or why not.
const char* read(Frame& f, const at::Tensor& self, Indexed* to) {
  std::vector<std::optional<at::Tensor>> list = f.args[1].toOptionalTensorVector();
  // PyTorch's Meta kernel of index_put_ checks none of this.
  TORCH_CHECK_INDEX(list.size() <= static_cast<size_t>(self.dim()), "too many indices for tensor of dimension ", self.dim(), " (got ",
                    list.size(), ")");
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].has_value() || !list[i]->defined()) continue;
    const at::Tensor& t = *list[i];
    if (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte) return "a mask as index";
    TORCH_CHECK_INDEX(t.scalar_type() == at::kLong || t.scalar_type() == at::kInt,
                      "tensors used as indices must be long, int, byte or bool tensors");
    if (!to->dims.empty() && to->dims.back() + 1 != static_cast<int64_t>(i)) to->adjacent = false;
    to->dims.push_back(static_cast<int64_t>(i));
    at::Tensor on_device = t;
    if (t.device() != self.device()) {
      TORCH_CHECK_INDEX(t.is_cpu(), "indices should be either on cpu or on the same device as the indexed tensor (", self.device(), ")");
      on_device = empty_contiguous(t.sizes(), t.scalar_type(), f.device);
      if (!in_dry_run()) copy_into(on_device, t, false);
    }
    to->index.push_back(on_device);
    if (to->dims.size() == 1) {
      to->shape.assign(t.sizes().begin(), t.sizes().end());
    } else {
      TORCH_CHECK_INDEX(at::are_expandable(to->shape, t.sizes()), "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                        c10::IntArrayRef(to->shape), ", ", t.sizes());
      to->shape = at::infer_size_dimvector(to->shape, t.sizes());
    }
  }
  const bool nowhere = std::any_of(to->dims.begin(), to->dims.end(), [&](int64_t d) { return self.size(d) == 0; });
  TORCH_CHECK_INDEX(!nowhere || c10::multiply_integers(to->shape) == 0, "index is out of bounds for dimension with size 0");
  return to->dims.empty() ? "no index tensor" : nullptr;
}

bool run1(Frame& f, uint32_t op, const at::Tensor& out, const at::Tensor& a, const at::Tensor* b, int64_t number, uint32_t key,
          int64_t factor) {
  OpCall call(op, at::kLong);
  call.out(out);
  call.in(a);
  if (b != nullptr) call.in(*b);
  else call.in_scalar(c10::Scalar(number), at::kLong);
  if (key != 0) call.attr(key, factor, true);
  return f.submit(call);
}

// One index dimension: negative ones that fit are counted from the end, the others stay what the user gave, so that the
// kernel that checks names the number that the user knows.
bool wrap(Frame& f, const at::Tensor& index, int64_t n, at::Tensor* out) {
  at::Tensor fitting = f.temporary(index.sizes(), at::kLong), negative = f.temporary(index.sizes(), at::kBool);
  *out = f.temporary(index.sizes(), at::kLong);
  OpCall clamp(FLHAL_OP_CLAMP, at::kLong);
  clamp.out(fitting);
  clamp.in(index);
  clamp.in_scalar(c10::Scalar(-n), at::kLong);
  clamp.in_scalar(c10::Scalar(int64_t{-1}), at::kLong);
  return f.submit(clamp) && run1(f, FLHAL_OP_EQ, negative, index, &fitting, 0, 0, 0) &&
         run1(f, FLHAL_OP_ADD, *out, index, &negative, 0, FLHAL_ATTR_ADD_ALPHA, n);
}

// Of several index tensors the joined number says nothing about each one: every index picks one byte of a tensor that has only
// this dimension, by the kernel that checks.
bool check_bounds(Frame& f, const at::Tensor& index, int64_t dim, int64_t n) {
  if (index.numel() == 0) return true;
  const at::Tensor byte = f.temporary({1}, at::kByte);
  DimVector sizes(dim + 1, 1), strides(dim + 1, 0), picked(dim, 1);
  sizes[dim] = n;
  picked.insert(picked.end(), index.sizes().begin(), index.sizes().end());
  OpCall call(FLHAL_OP_INDEX_SELECT, at::kByte);
  const at::Tensor out = f.temporary(picked, at::kByte);
  call.out(out);
  call.in_as(byte, sizes, strides);
  call.in(index);
  call.attr(FLHAL_ATTR_INDEX_SELECT_DIM, dim);
  return f.submit(call);
}

// The index into the joined dimension.
bool join(Frame& f, const at::Tensor& self, const Indexed& x, at::Tensor* out) {
  for (size_t i = 0; i < x.dims.size(); ++i) {
    at::Tensor one;
    const int64_t n = self.size(x.dims[i]);
    if (!wrap(f, x.index[i], n, &one)) return false;
    if (x.dims.size() > 1 && !check_bounds(f, one, x.dims[i], n)) return false;
    if (i == 0) {
      *out = one;
      continue;
    }
    at::Tensor next = f.temporary(at::infer_size_dimvector(out->sizes(), one.sizes()), at::kLong);
    if (!run1(f, FLHAL_OP_ADD, next, one, out, 0, FLHAL_ATTR_ADD_ALPHA, n)) return false;
    *out = next;
  }
  if (out->sizes() == c10::IntArrayRef(x.shape)) return true;
  at::Tensor whole = f.temporary(x.shape, at::kLong);
  OpCall copy(FLHAL_OP_COPY, at::kLong);
  copy.out(whole);
  copy.in(*out);
  *out = whole;
  return f.submit(copy);
}

// `self` with the indexed dimensions together, and then as one dimension `at`: sizes and strides over self's memory.
struct Joined {
  DimVector together, together_strides;   // permuted, not yet joined
  DimVector sizes, strides;
  int64_t at = 0, n = 0;

  Joined(const at::Tensor& self, const Indexed& x) : at(x.adjacent ? x.dims[0] : 0), n(static_cast<int64_t>(x.dims.size())) {
    DimVector order;
    if (x.adjacent) {
      for (int64_t d = 0; d < self.dim(); ++d) order.push_back(d);
    } else {
      for (int64_t d : x.dims) order.push_back(d);
      for (int64_t d = 0; d < self.dim(); ++d)
        if (std::find(x.dims.begin(), x.dims.end(), d) == x.dims.end()) order.push_back(d);
    }
    for (int64_t d : order) {
      together.push_back(self.size(d));
      together_strides.push_back(self.stride(d));
    }
  }
  // False when the indexed dimensions cannot be walked in one stride.
  bool join() {
    sizes.clear();
    strides.clear();
    const int64_t last = at + n - 1;
    int64_t size = 1;
    for (int64_t i = 0; i < static_cast<int64_t>(together.size()); ++i) {
      if (i >= at && i < last) {
        if (together[i] != 1 && together_strides[i] != together_strides[i + 1] * together[i + 1]) return false;
        size *= together[i];
        continue;
      }
      sizes.push_back(i == last ? size * together[i] : together[i]);
      strides.push_back(together_strides[i]);
    }
    return true;
  }
  // Copies to dense memory, where they can.
  bool copy(Frame& f, at::Tensor* self) {
    at::Tensor dense = f.temporary(together, self->scalar_type());
    OpCall call(FLHAL_OP_COPY, self->scalar_type());
    call.out(dense);
    call.in_as(*self, together, together_strides);
    if (!f.submit(call)) return false;
    together_strides.assign(dense.strides().begin(), dense.strides().end());
    *self = dense;
    return join();
  }
};

}  // namespace

// index.Tensor(self, indices)
bool index_get(Frame& f) {
  at::Tensor self = f.tensor(0);
  Indexed x;
  const char* why = read(f, self, &x);
  if (why != nullptr) return f.decline(why);
  if (!infer_results(f)) return false;
  const at::Tensor& out = f.result();
  if (out.numel() == 0) return true;
  at::Tensor index;
  if (!join(f, self, x, &index)) return false;
  Joined view(self, x);
  if (!view.join() && !view.copy(f, &self)) return false;
  OpCall call(FLHAL_OP_INDEX_SELECT, self.scalar_type());
  call.out(out);
  call.in_as(self, view.sizes, view.strides);
  call.in(index);
  call.attr(FLHAL_ATTR_INDEX_SELECT_DIM, view.at);
  return f.submit(call);
}

// _index_put_impl_(self, indices, values, accumulate, unsafe)
bool index_put(Frame& f) {
  const at::Tensor& self = f.tensor(0);
  const at::Tensor& values = f.tensor(2);
  // As the CPU does, before it looks at anything else.
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) return f.decline("the tensor overlaps itself");
  at::assert_no_overlap(self, values);
  for (const std::optional<at::Tensor>& t : f.args[1].toOptionalTensorVector())
    if (t.has_value() && t->defined()) at::assert_no_overlap(self, *t);
  Indexed x;
  const char* why = read(f, self, &x);
  if (why != nullptr) return f.decline(why);
  if (!infer_results(f)) return false;
  // The values with the index's dimensions as one, in the order of the view.
  Joined view(self, x);
  DimVector wanted(view.together.begin(), view.together.begin() + view.at);
  wanted.insert(wanted.end(), x.shape.begin(), x.shape.end());
  wanted.insert(wanted.end(), view.together.begin() + view.at + view.n, view.together.end());
  TORCH_CHECK(values.dim() <= static_cast<int64_t>(wanted.size()) && at::is_expandable_to(values.sizes(), wanted),
              "shape mismatch: value tensor of shape ", values.sizes(), " cannot be broadcast to indexing result of shape ",
              c10::IntArrayRef(wanted));
  TORCH_CHECK(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", values.scalar_type(), " for the source.");
  if (self.numel() == 0 || values.numel() == 0 || c10::multiply_integers(x.shape) == 0) return true;
  if (!view.join()) return f.decline("indexed dimensions that no view joins");
  at::Tensor index;
  if (!join(f, self, x, &index)) return false;
  const int64_t n = index.numel(), rank = static_cast<int64_t>(view.sizes.size());
  DimVector source(view.sizes.begin(), view.sizes.begin() + view.at);
  source.push_back(n);
  source.insert(source.end(), view.sizes.begin() + view.at + 1, view.sizes.end());
  at::Tensor spread = f.temporary(wanted, values.scalar_type());
  OpCall copy(FLHAL_OP_COPY, values.scalar_type());
  copy.out(spread);
  if (values.is_cpu()) copy.in_host(values.unsafeGetTensorImpl());
  else copy.in(values);
  if (!f.submit(copy)) return false;
  DimVector source_strides(rank), index_strides(rank, 0);
  int64_t step = 1;
  for (int64_t d = rank; d-- > 0; step *= source[d]) source_strides[d] = step;
  index_strides[view.at] = 1;
  const bool accumulate = f.args[3].toBool();
  const int64_t flat[1] = {n}, one[1] = {1};
  OpCall call(accumulate ? FLHAL_OP_INDEX_ADD : FLHAL_OP_SCATTER, self.scalar_type());
  call.out_as(self, view.sizes, view.strides);
  if (accumulate) call.in_as(index, flat, one);
  else call.in_as(index, source, index_strides);
  call.in_as(spread, source, source_strides);
  call.attr(accumulate ? FLHAL_ATTR_INDEX_ADD_DIM : FLHAL_ATTR_SCATTER_DIM, view.at);
  try {
    return f.submit(call);
  } catch (const c10::Error& error) {   // scatter itself raises a RuntimeError, as on the CPU; an index is an IndexError
    const std::string text = error.what_without_backtrace();
    TORCH_CHECK_INDEX(text.find("out of range") == std::string::npos, text);
    throw;
  }
}

}  // namespace torch_fl

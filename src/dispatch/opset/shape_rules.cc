// src/dispatch/opset/shape_rules.cc: rules of pointwise ops, reductions, matmul, softmax and the norms.
//
// Cost: check_broadcast is not on the hot path (core checks pointwise sizes while it classifies); the others run in every
// call and allocate nothing unless they refuse.
#include "dispatch/opset/shape_rules.h"

#include <fmt/core.h>

#include "dispatch/opset/rule_text.h"

namespace flhal::opset {

bool infer_broadcast(const CallView& v, Inferred* r, std::string* why) {
  auto& o = r->outs[0];
  o.rank = 0;
  for (uint32_t i = 0; i < v.n_in(); ++i)
    if (CallView::given(v.in(i)) && v.in(i).rank > o.rank) o.rank = v.in(i).rank;
  for (uint32_t d = 0; d < o.rank; ++d) o.sizes[d] = 1;
  for (uint32_t i = 0; i < v.n_in(); ++i) {
    const flhal_tensor& t = v.in(i);
    if (!CallView::given(t)) continue;
    for (uint32_t d = 0; d < t.rank; ++d) {
      int64_t& s = o.sizes[o.rank - t.rank + d];
      if (t.sizes[d] == s || t.sizes[d] == 1) continue;
      if (s != 1) return refuse(why, "{} {} does not broadcast with size {} in dimension {}", v.def.input(i).name,
                                sizes_text(t), s, o.rank - t.rank + d);
      s = t.sizes[d];
    }
  }
  return true;
}

bool check_broadcast(const CallView& v, std::string* why) {
  const flhal_tensor& o = v.out(0);
  for (uint32_t i = 0; i < v.n_in(); ++i) {
    const flhal_tensor& t = v.in(i);
    if (!CallView::given(t)) continue;
    bool fits = t.rank <= o.rank;
    for (uint32_t d = 0; fits && d < t.rank; ++d) {
      int64_t have = t.sizes[d], want = o.sizes[o.rank - t.rank + d];
      fits = have == want || have == 1;
    }
    if (!fits) return refuse(why, "{} {} does not broadcast to the output {}", v.def.input(i).name, sizes_text(t),
                             sizes_text(o));
  }
  return true;
}

bool infer_free(const CallView&, Inferred* r, std::string*) {
  r->outs[0].free = true;
  return true;
}
bool check_free(const CallView&, std::string*) { return true; }

bool infer_caller(const CallView& v, Inferred*, std::string* why) {
  return refuse(why, "the sizes of {}'s output do not follow from its inputs; the caller chooses them", v.def.name);
}

bool infer_reduce(const CallView& v, Inferred* r, std::string*) {
  auto& o = r->outs[0];
  o.rank = v.in(0).rank;
  for (uint32_t d = 0; d < o.rank; ++d) o.sizes[d] = 1;
  return true;
}

bool check_reduce(const CallView& v, std::string* why) {
  const flhal_tensor &o = v.out(0), &x = v.in(0);
  bool fits = o.rank == x.rank;
  for (uint32_t d = 0; fits && d < x.rank; ++d) fits = o.sizes[d] == x.sizes[d] || o.sizes[d] == 1;
  if (!fits) return refuse(why, "output {} is not the input {} with reduced dimensions of size 1", sizes_text(o),
                           sizes_text(x));
  if (v.def.fills_empty) return true;
  for (uint32_t d = 0; d < x.rank; ++d)
    if (x.sizes[d] == 0 && o.sizes[d] == 1) return refuse(why, "{} has no value over an empty dimension (input {})",
                                                          v.def.name, sizes_text(x));
  return true;
}

bool check_arg_reduce(const CallView& v, std::string* why) {
  if (!check_reduce(v, why)) return false;
  const flhal_tensor &o = v.out(0), &x = v.in(0);
  uint32_t reduced = 0, kept = 0;
  for (uint32_t d = 0; d < x.rank; ++d) {
    if (x.sizes[d] != o.sizes[d]) ++reduced;
    else if (x.sizes[d] != 1) ++kept;
  }
  if (reduced > 1 && kept > 0) return refuse(why, "{} reduces one dimension or all; input {}, output {}", v.def.name,
                                             sizes_text(x), sizes_text(o));
  return true;
}

bool infer_along(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor& x = v.in(v.n_in() - 1);   // softmax: x; the backward ops: y
  if (v.n_in() == 2 && !same_sizes(v.in(0), x))
    return refuse(why, "{} {} and {} {} differ", v.def.input(0).name, sizes_text(v.in(0)), v.def.input(1).name,
                  sizes_text(x));
  return dimension_fits(v, x.rank, why) && take_sizes(x, &r->outs[0]);
}

bool infer_matmul(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor &a = v.in(0), &b = v.in(1);
  if (a.rank < 2 || b.rank < 2) return refuse(why, "a {} and b {} need rank 2 or more", sizes_text(a), sizes_text(b));
  if (a.sizes[a.rank - 1] != b.sizes[b.rank - 2])
    return refuse(why, "a {} and b {} do not meet: {} columns, {} rows", sizes_text(a), sizes_text(b),
                  a.sizes[a.rank - 1], b.sizes[b.rank - 2]);
  auto& o = r->outs[0];
  o.rank = a.rank > b.rank ? a.rank : b.rank;
  for (uint32_t d = 0; d + 2 < o.rank; ++d) {
    uint32_t from_end = o.rank - d;
    int64_t sa = from_end <= a.rank ? a.sizes[a.rank - from_end] : 1;
    int64_t sb = from_end <= b.rank ? b.sizes[b.rank - from_end] : 1;
    if (sa != sb && sa != 1 && sb != 1)
      return refuse(why, "the batches of a {} and b {} do not broadcast", sizes_text(a), sizes_text(b));
    o.sizes[d] = sa == 1 ? sb : sa;
  }
  o.sizes[o.rank - 2] = a.sizes[a.rank - 2];
  o.sizes[o.rank - 1] = b.sizes[b.rank - 1];
  return true;
}

bool check_matmul(const CallView& v, std::string* why) {
  if (!check_by_infer(v, why)) return false;
  const flhal_tensor &o = v.out(0), &c = v.in(2);
  if (!CallView::given(c)) return true;
  bool fits = c.rank <= o.rank;
  for (uint32_t d = 0; fits && d < c.rank; ++d)
    fits = c.sizes[d] == 1 || c.sizes[d] == o.sizes[o.rank - c.rank + d];
  if (!fits) return refuse(why, "c {} does not broadcast to the output {}", sizes_text(c), sizes_text(o));
  return true;
}

bool infer_layer_norm(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor& x = v.in(0);
  int64_t n = v.integer(0);
  if (n < 1 || n > x.rank) return refuse(why, "n_dims {} is not in 1 .. {} (x {})", n, x.rank, sizes_text(x));
  for (uint32_t i = 1; i < 3; ++i)
    if (CallView::given(v.in(i)) && !is_tail_of(v.in(i), x, static_cast<uint32_t>(n)))
      return refuse(why, "{} {} is not the last {} sizes of x {}", v.def.input(i).name, sizes_text(v.in(i)), n,
                    sizes_text(x));
  for (uint32_t i = 0; i < 3; ++i) {
    take_sizes(x, &r->outs[i]);
    if (i) for (uint32_t d = x.rank - static_cast<uint32_t>(n); d < x.rank; ++d) r->outs[i].sizes[d] = 1;
  }
  return true;
}

bool infer_layer_norm_backward(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor &grad = v.in(0), &x = v.in(1);
  int64_t n = v.integer(0);
  if (n < 1 || n > x.rank) return refuse(why, "n_dims {} is not in 1 .. {} (x {})", n, x.rank, sizes_text(x));
  if (!same_sizes(grad, x)) return refuse(why, "grad {} and x {} differ", sizes_text(grad), sizes_text(x));
  for (uint32_t i = 2; i < 4; ++i) {
    bool fits = v.in(i).rank == x.rank;
    for (uint32_t d = 0; fits && d < x.rank; ++d)
      fits = v.in(i).sizes[d] == (d < x.rank - n ? x.sizes[d] : 1);
    if (!fits) return refuse(why, "{} {} is not x {} with the last {} sizes 1", v.def.input(i).name,
                             sizes_text(v.in(i)), sizes_text(x), n);
  }
  if (CallView::given(v.in(4)) && !is_tail_of(v.in(4), x, static_cast<uint32_t>(n)))
    return refuse(why, "weight {} is not the last {} sizes of x {}", sizes_text(v.in(4)), n, sizes_text(x));
  take_sizes(x, &r->outs[0]);
  for (uint32_t i = 1; i < 3; ++i) {
    r->outs[i].rank = static_cast<uint32_t>(n);
    for (uint32_t d = 0; d < n; ++d) r->outs[i].sizes[d] = x.sizes[x.rank - n + d];
  }
  return true;
}

namespace {

bool batch_norm_outputs(const CallView& v, const flhal_tensor& x, uint32_t first_vector, Inferred* r,
                        std::string* why) {
  if (x.rank < 2) return refuse(why, "x {} needs rank 2 or more", sizes_text(x));
  for (uint32_t i = first_vector; i < v.n_in(); ++i) {
    const flhal_tensor& t = v.in(i);
    if (CallView::given(t) && (t.rank != 1 || t.sizes[0] != x.sizes[1]))
      return refuse(why, "{} {} is not one value for each of the {} channels", v.def.input(i).name, sizes_text(t),
                    x.sizes[1]);
  }
  take_sizes(x, &r->outs[0]);
  for (uint32_t i = 1; i < 3; ++i) {
    r->outs[i].rank = 1;
    r->outs[i].sizes[0] = x.sizes[1];
  }
  return true;
}

}  // namespace

bool infer_batch_norm(const CallView& v, Inferred* r, std::string* why) {
  if (v.integer(0) == 0 && !(CallView::given(v.in(3)) && CallView::given(v.in(4))))
    return refuse(why, "without training, running_mean and running_var are needed");
  return batch_norm_outputs(v, v.in(0), 1, r, why);
}

bool infer_batch_norm_backward(const CallView& v, Inferred* r, std::string* why) {
  if (!same_sizes(v.in(0), v.in(1)))
    return refuse(why, "grad {} and x {} differ", sizes_text(v.in(0)), sizes_text(v.in(1)));
  return batch_norm_outputs(v, v.in(1), 2, r, why);
}

bool check_by_infer(const CallView& v, std::string* why) {
  Inferred r;
  if (!v.def.infer(v, &r, why)) return false;
  for (uint32_t i = 0; i < v.call.n_outputs; ++i) {
    const flhal_tensor& o = v.out(i);
    if (!CallView::given(o)) continue;
    const auto& want = r.outs[i];
    bool fits = o.rank == want.rank;
    for (uint32_t d = 0; fits && d < want.rank; ++d) fits = o.sizes[d] == want.sizes[d];
    if (!fits) return refuse(why, "output {} is {}, the inputs give {}", v.def.operands[i].name, sizes_text(o),
                             sizes_text(want.sizes, want.rank));
  }
  return true;
}

}  // namespace flhal::opset

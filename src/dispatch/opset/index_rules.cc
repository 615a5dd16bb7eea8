// src/dispatch/opset/index_rules.cc: shape rules of indexing, cat and triangles.
#include "dispatch/opset/rule_text.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

bool index_type_fits(const flhal_tensor& index, std::string* why) {
  if (index.dtype == FLHAL_I64 || index.dtype == FLHAL_I32) return true;
  return refuse(why, "index has dtype code {:#x}; int64 or int32 is needed", index.dtype);
}

}  // namespace

bool infer_index_select(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor &x = v.in(0), &index = v.in(1);
  if (!index_type_fits(index, why) || !dimension_fits(v, x.rank, why)) return false;
  if (x.rank == 0) return refuse(why, "x needs rank 1 or more");
  uint32_t dim = wrapped_dimension(v, x.rank);
  auto& o = r->outs[0];
  o.rank = x.rank - 1 + index.rank;
  if (o.rank > kMaxRank) return refuse(why, "the output's rank {} is above {}", o.rank, kMaxRank);
  uint32_t k = 0;
  for (uint32_t d = 0; d < dim; ++d) o.sizes[k++] = x.sizes[d];
  for (uint32_t d = 0; d < index.rank; ++d) o.sizes[k++] = index.sizes[d];
  for (uint32_t d = dim + 1; d < x.rank; ++d) o.sizes[k++] = x.sizes[d];
  return true;
}

bool infer_gather(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor &x = v.in(0), &index = v.in(1);
  if (!index_type_fits(index, why) || !dimension_fits(v, x.rank, why)) return false;
  if (x.rank != index.rank) return refuse(why, "x {} and index {} differ in rank", sizes_text(x), sizes_text(index));
  uint32_t dim = wrapped_dimension(v, x.rank);
  for (uint32_t d = 0; d < x.rank; ++d)
    if (d != dim && index.sizes[d] > x.sizes[d])
      return refuse(why, "index {} is larger than x {} in dimension {}", sizes_text(index), sizes_text(x), d);
  return take_sizes(index, &r->outs[0]);
}

bool check_scatter(const CallView& v, std::string* why) {
  const flhal_tensor &o = v.out(0), &index = v.in(0), &src = v.in(1);
  if (!index_type_fits(index, why) || !dimension_fits(v, o.rank, why)) return false;
  if (index.rank != o.rank || (src.rank != index.rank && src.rank != 0))
    return refuse(why, "out {}, index {} and src {} differ in rank", sizes_text(o), sizes_text(index), sizes_text(src));
  uint32_t dim = wrapped_dimension(v, o.rank);
  for (uint32_t d = 0; d < o.rank; ++d)
    if ((src.rank && index.sizes[d] > src.sizes[d]) || (d != dim && index.sizes[d] > o.sizes[d]))
      return refuse(why, "index {} is larger than src {} or out {} in dimension {}", sizes_text(index),
                    sizes_text(src), sizes_text(o), d);
  return true;
}

bool check_index_add(const CallView& v, std::string* why) {
  const flhal_tensor &o = v.out(0), &index = v.in(0), &src = v.in(1);
  if (!index_type_fits(index, why) || !dimension_fits(v, o.rank, why)) return false;
  uint32_t dim = wrapped_dimension(v, o.rank);
  bool fits = index.rank == 1 && src.rank == o.rank && o.rank > 0;
  for (uint32_t d = 0; fits && d < o.rank; ++d) fits = src.sizes[d] == (d == dim ? index.sizes[0] : o.sizes[d]);
  return fits || refuse(why, "src {} is not out {} with {} entries in dimension {}", sizes_text(src), sizes_text(o),
                        sizes_text(index), dim);
}

bool infer_cat(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor& first = v.in(0);
  if (first.rank == 0) return refuse(why, "inputs need rank 1 or more");
  if (!dimension_fits(v, first.rank, why)) return false;
  uint32_t dim = wrapped_dimension(v, first.rank);
  auto& o = r->outs[0];
  take_sizes(first, &o);
  for (uint32_t i = 1; i < v.n_in(); ++i) {
    const flhal_tensor& t = v.in(i);
    bool fits = t.rank == first.rank;
    for (uint32_t d = 0; fits && d < t.rank; ++d) fits = d == dim || t.sizes[d] == first.sizes[d];
    if (!fits) return refuse(why, "input {} is {}, input 0 is {}: only dimension {} may differ", i, sizes_text(t),
                             sizes_text(first), dim);
    o.sizes[dim] += t.sizes[dim];
  }
  return true;
}

bool infer_matrix(const CallView& v, Inferred* r, std::string* why) {
  const flhal_tensor& x = v.in(0);
  if (x.rank < 2) return refuse(why, "x {} needs rank 2 or more", sizes_text(x));
  return take_sizes(x, &r->outs[0]);
}

}  // namespace flhal::opset

// src/dispatch/composite/shape.cc: cat as one copy per input.
#include <flhal/ops.h>

#include "dispatch/composite/composites.h"

namespace flhal::composite {

void cat(Builder& b) {
  const Part out = b.out(0);
  int64_t dim = b.view().integer(0), start = 0;
  if (dim < 0) dim += out.rank;
  for (uint32_t i = 0; i < b.view().n_in(); ++i) {
    const Part x = b.in(i);
    bool empty = x.rank != out.rank;                    // an empty vector may stand for nothing, whatever the rank
    for (uint32_t d = 0; d < x.rank; ++d) empty |= x.sizes[d] == 0;
    if (empty) continue;
    Part slice = out;
    slice.sizes[dim] = x.sizes[dim];
    slice.address += static_cast<uint64_t>(start * out.strides[dim]) * FLHAL_DTYPE_BYTES(out.dtype);
    b.call(FLHAL_OP_COPY, {&slice}, {&x}, 0);
    start += x.sizes[dim];
  }
}

}  // namespace flhal::composite

// src/kernels/host/index.cc: reading and writing at places that another tensor names.
//
// Arguments: IndexParams, dense side, indexed side, index (gather: out, x, index; scatter: src, out, index).
// Gather: every element of out reads x at its own index; any chunk may run anywhere.
// Scatter, scatter_add, index_add: elements that may meet in one place of out differ only along the indexed dimension, so
// a group takes a chunk of the other dimensions and goes along the indexed one in order: deterministic, and no atomics.
// An index outside [0, size) is a fault; it is read as 0 (gather) or left out (scatter).
#include "kernels/host/rows.h"
#include "kernels/kernel_fault.h"

LEVEL_BEGIN
namespace {

struct Raw16 { uint64_t a, b; };

FN int64_t index_at(const char* from, Kind kind) {
  if (kind == kI64) { int64_t v; __builtin_memcpy(&v, from, 8); return v; }
  if (kind == kI32) { int32_t v; __builtin_memcpy(&v, from, 4); return v; }
  return get_one<int64_t>(from, kind);
}

struct Place {
  const IndexParams* p;
  int64_t at[kMaxRank];
  int64_t offset[3];

  Place(const IndexParams* params, uint64_t element) : p(params), offset{} {
    for (uint32_t d = 0; d < p->n_dims; ++d) {
      at[d] = (int64_t)(element % (uint64_t)p->dims[d].size);
      element /= (uint64_t)p->dims[d].size;
      for (int k = 0; k < 3; ++k) offset[k] += at[d] * p->dims[d].stride[k];
    }
  }
  void advance(int64_t n) {        // not past the end of the row
    at[0] += n;
    for (int k = 0; k < 3; ++k) offset[k] += n * p->dims[0].stride[k];
    for (uint32_t d = 0; at[d] == p->dims[d].size && d + 1 < p->n_dims;) {
      for (int k = 0; k < 3; ++k) offset[k] += p->dims[d + 1].stride[k] - at[d] * p->dims[d].stride[k];
      at[d] = 0;
      ++at[++d];
    }
  }
};

template <class T> FN void gather(const void* const* argv, uint64_t first, uint64_t count) {
  const IndexParams* p = (const IndexParams*)argv[0];
  uint64_t begin = first * p->chunk, end = (first + count) * p->chunk;
  if (end > p->n) end = p->n;
  if (begin >= end) return;
  char* out = (char*)const_cast<void*>(argv[1]);
  const char* x = (const char*)argv[2];
  const char* index = (const char*)argv[3];
  const IndexDim& inner = p->dims[0];
  auto place = [&](int64_t i) {
    if (__builtin_expect((uint64_t)i >= (uint64_t)p->indexed_size, 0)) {
      fault(p->error, kFaultIndex, p->dim, i, p->indexed_size);
      i = 0;
    }
    return i * p->indexed_stride;
  };
  Place at(p, begin);
  for (uint64_t done = begin; done < end;) {
    int64_t n = min_of(inner.size - at.at[0], (int64_t)(end - done));
    char* to = out + at.offset[0];
    const char* from = x + at.offset[1];
    if (p->indexed_size == 0) {
      fault(p->error, kFaultIndex, p->dim, index_at(index + at.offset[2], p->index_kind), 0);
      return;
    }
    if (inner.stride[2] == 0) {              // one index for the whole run: a row of an embedding
      from += place(index_at(index + at.offset[2], p->index_kind));
      if (inner.stride[0] == (int64_t)sizeof(T) && inner.stride[1] == (int64_t)sizeof(T)) {
        __builtin_memcpy(to, from, (uint64_t)n * sizeof(T));
      } else {
        for (int64_t j = 0; j < n; ++j) __builtin_memcpy(to + j * inner.stride[0], from + j * inner.stride[1], sizeof(T));
      }
    } else {
      const char* ix = index + at.offset[2];
      for (int64_t j = 0; j < n; ++j)
        __builtin_memcpy(to + j * inner.stride[0], from + j * inner.stride[1] + place(index_at(ix + j * inner.stride[2], p->index_kind)), sizeof(T));
    }
    done += (uint64_t)n;
    at.advance(n);
  }
}

// How one element goes in.
template <class T> struct Put {
  static FN_MEMBER void at(char* to, const char* from, const IndexParams*) { __builtin_memcpy(to, from, sizeof(T)); }
};
template <class T> struct Add {
  static FN_MEMBER void at(char* to, const char* from, const IndexParams*) {
    T a, b;
    __builtin_memcpy(&a, to, sizeof(T));
    __builtin_memcpy(&b, from, sizeof(T));
    a = add(a, b);
    __builtin_memcpy(to, &a, sizeof(T));
  }
};
template <class T> struct AddConverted {   // f16, int8, ...: one rounding per element added, as PyTorch does
  static FN_MEMBER void at(char* to, const char* from, const IndexParams* p) {
    put_one<T>(to, p->kind, add(get_one<T>(to, p->kind), get_one<T>(from, p->dense_kind)));
  }
};

template <class How> FN void scatter(const void* const* argv, uint64_t first, uint64_t count) {
  const IndexParams* p = (const IndexParams*)argv[0];
  uint64_t begin = first * p->chunk, end = (first + count) * p->chunk;
  if (end > p->n) end = p->n;
  if (begin >= end) return;
  const char* src = (const char*)argv[1];
  char* out = (char*)const_cast<void*>(argv[2]);
  const char* index = (const char*)argv[3];
  const IndexDim& inner = p->dims[0];
  Place at(p, begin);
  for (uint64_t done = begin; done < end;) {
    int64_t n = min_of(inner.size - at.at[0], (int64_t)(end - done));
    for (int64_t i = 0; i < p->length; ++i) {
      const char* from = src + at.offset[0] + i * p->dense_step;
      const char* ix = index + at.offset[2] + i * p->index_step;
      char* to = out + at.offset[1];
      if (inner.stride[2] == 0) {
        int64_t k = index_at(ix, p->index_kind);
        if ((uint64_t)k >= (uint64_t)p->indexed_size) { fault(p->error, kFaultIndex, p->dim, k, p->indexed_size); continue; }
        to += k * p->indexed_stride;
        for (int64_t j = 0; j < n; ++j) How::at(to + j * inner.stride[1], from + j * inner.stride[0], p);
      } else {
        for (int64_t j = 0; j < n; ++j) {
          int64_t k = index_at(ix + j * inner.stride[2], p->index_kind);
          if ((uint64_t)k >= (uint64_t)p->indexed_size) { fault(p->error, kFaultIndex, p->dim, k, p->indexed_size); continue; }
          How::at(to + j * inner.stride[1] + k * p->indexed_stride, from + j * inner.stride[0], p);
        }
      }
    }
    done += (uint64_t)n;
    at.advance(n);
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
KERNEL(gather_1, gather<uint8_t>)
KERNEL(gather_2, gather<uint16_t>)
KERNEL(gather_4, gather<uint32_t>)
KERNEL(gather_8, gather<uint64_t>)
KERNEL(gather_16, gather<Raw16>)
KERNEL(scatter_1, scatter<Put<uint8_t>>)
KERNEL(scatter_2, scatter<Put<uint16_t>>)
KERNEL(scatter_4, scatter<Put<uint32_t>>)
KERNEL(scatter_8, scatter<Put<uint64_t>>)
KERNEL(scatter_16, scatter<Put<Raw16>>)
KERNEL(scatter_add_f32, scatter<Add<float>>)
KERNEL(scatter_add_f64, scatter<Add<double>>)
KERNEL(scatter_add_i64, scatter<Add<int64_t>>)
KERNEL(scatter_add_any_f32, scatter<AddConverted<float>>)
KERNEL(scatter_add_any_i64, scatter<AddConverted<int64_t>>)
KERNEL(scatter_add_any_c128, scatter<AddConverted<complex128>>)

LEVEL_END

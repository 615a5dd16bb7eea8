// src/kernels/params.h: the VALUE arguments of the kernels: what a plan writes and a kernel reads.
//
// Plain structs without pointers (but for `error`, which only the host dialect has), so that another dialect can declare
// them too. Strides are in BYTES here; sizes and strides stand innermost dimension first.
#pragma once

#include <cstdint>

namespace flhal::kernels {

struct KernelError;

// Element types as kernels know them. The order is that of the conversion tables in host/convert.cc.
enum Kind : uint8_t { kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64, kC64, kC128, kBool, kKinds };
inline constexpr uint8_t kKindBytes[kKinds + 1] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};

// Types arithmetic is done in. Narrower types are converted on load and on store.
enum Compute : uint8_t { kCF32, kCF64, kCI64, kCI32, kCBool, kCC128, kComputes };
inline constexpr Kind kComputeKind[kComputes] = {kF32, kF64, kI64, kI32, kBool, kC128};

inline constexpr uint32_t kMaxRank = 16;
inline constexpr uint32_t kMaxPointwise = 4;   // one output, three inputs

struct PointwiseDim {
  int64_t size;
  int64_t stride[kMaxPointwise];
};

template <uint32_t Dims> struct PointwiseParamsOf {
  uint64_t n, chunk;                     // elements in all, elements per group
  uint32_t n_dims, n_operands;
  Kind kind[kMaxPointwise];              // of the memory behind each operand
  uint8_t direct;                        // 1: one dimension, every operand native and dense or a scalar
  uint8_t linear;                        // bit k: operand k is dense in iteration order
  uint8_t scalar;                        // bit k: operand k is one element
  uint8_t pad;
  KernelError* error;
  double pf[4];                          // attributes as numbers
  int64_t pi[4];                         // the same, for integer types
  PointwiseDim dims[Dims];               // n_dims are there
};
using PointwiseParams = PointwiseParamsOf<kMaxRank>;
using DenseParams = PointwiseParamsOf<1>;   // the beginning of it: enough for operands of one dense shape

// Kernels that go row by row: reductions, softmax, norms. A row is all `inner` dimensions; `outer` ones number the rows.
inline constexpr uint32_t kMaxRowOperands = 8;
struct RowDim {
  int64_t size;
  int64_t stride[kMaxRowOperands];       // 0 where the operand has no such dimension
};
struct RowsParams {
  uint64_t n_rows, rows_per_group, length;
  uint32_t n_outer, n_inner, n_operands, flags;
  Kind kind[kMaxRowOperands];
  uint8_t dense;                         // bit k: rows of operand k are one dense run
  uint8_t columns;                       // 1: walk outer[0] as the vector (reductions over outer dimensions)
  uint8_t pad[6];
  double f[4];
  int64_t i[4];
  KernelError* error;
  RowDim dims[kMaxRank + 1];             // outer dimensions, innermost first, then inner ones, innermost first
};

// out[b][m][n] = alpha * sum_k a[b][m][k] * b[b][k][n] + beta * c[b][m][n]. Operands: out, a, b, c.
inline constexpr uint32_t kMatOut = 0, kMatA = 1, kMatB = 2, kMatC = 3;
struct MatmulBatch { int64_t size; int64_t stride[4]; };
struct MatmulParams {
  int64_t m, n, k, batches;
  int64_t tile_m, tile_n, tiles_m, tiles_n;   // a group is one tile of one batch
  int64_t row[4], col[4];                     // byte strides: a row is m (a: m, b: k), a column n (a: k, b: n)
  double alpha, beta;
  int64_t alpha_int, beta_int;
  Kind kind[4];
  uint32_t n_batch_dims, has_c;
  MatmulBatch batch[kMaxRank];
};

// Convolutions and pooling: sizes and byte strides by name. [0] is h, [1] is w.
struct ConvParams {
  int64_t images, groups, in_channels, out_channels;   // channels per group
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t x_image, x_channel, x_at[2];                 // x, or gx
  int64_t y_image, y_channel, y_at[2];                 // out, or grad
  int64_t w_out, w_in, w_at[2];                        // weight or gw: per output channel, per input channel, per tap
  int64_t bias_stride;
  int64_t tile_m, tile_n, tiles_m, tiles_n;
  Kind x_kind, y_kind, w_kind, bias_kind;
  uint32_t has_bias;
};
struct PoolParams {
  int64_t images, channels;
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t x_image, x_channel, x_at[2];                 // x, or gx
  int64_t y_image, y_channel, y_at[2];                 // out, or grad
  int64_t i_image, i_channel, i_at[2];                 // index
  int64_t divisor;
  uint32_t has_index, count_include_pad;
  Kind x_kind, y_kind, i_kind;
  KernelError* error;
};

// Index operators. `at` dimensions exclude the indexed one where elements are scattered; see host/index.cc.
struct IndexDim { int64_t size; int64_t stride[3]; };   // [0] the dense side (out of a gather, src of a scatter),
                                                        // [1] the indexed side, [2] the index
struct IndexParams {
  uint64_t n, chunk;
  uint32_t n_dims, element_bytes;
  int64_t indexed_size, indexed_stride;                 // of the dimension the index goes into
  int64_t length, dense_step, index_step;               // scatter: the loop over the indexed dimension
  int32_t dim;
  Kind kind, index_kind, dense_kind;
  uint8_t pad;
  KernelError* error;
  IndexDim dims[kMaxRank];
};

// cat: one strided copy per input. groups_before[i]: units of the inputs before i.
struct CatParams {
  uint64_t converts;                                    // bit i: input i is of another dtype
  uint32_t n_inputs;
  uint32_t offset[60];                                  // of input i's PointwiseParams in these bytes
  uint64_t groups_before[61];
};

// Series and random numbers: element i of the output in logical order.
struct SeriesParams {
  double f[4];
  int64_t i[4];
  uint64_t seed, offset;
  PointwiseParams walk;                                 // dims in logical order, unmerged order kept
};

}  // namespace flhal::kernels

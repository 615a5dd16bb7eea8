// src/kernels/host/drive.cc: the one loop nest of all pointwise kernels.
//
// Idea: block functions see dense runs of their compute type only. An operand that is dense and of that type is passed as
// it lies in memory; any other one goes through a buffer of 4 KiB, gathered and converted on the way in, or out.
// Three walks: direct (one dense dimension), rows (the inner dimension is long), and mixed (blocks that cross many short
// rows, so that a transposed 2x3x4x5 costs one block call and not 24).
#include "kernels/host/drive.h"

#include "kernels/host/convert.h"
#include "kernels/host/walk.h"

LEVEL_BEGIN
namespace {

constexpr int64_t kBufferBytes = 4096, kShortRow = 96;

// Apart from drive(), which needs no buffers and so no frame.
[[gnu::noinline]] void drive_range(const Signature& g, const void* const* argv, uint64_t begin, uint64_t end) {
  const PointwiseParams* p = (const PointwiseParams*)argv[0];
  char* out = (char*)const_cast<void*>(argv[1]);
  const uint32_t n_in = p->n_operands - 1;
  const uint32_t out_bytes = kKindBytes[kComputeKind[g.out]];
  const void* in[3];

  if (p->direct && p->scalar == 0) {
    for (uint32_t k = 0; k < n_in; ++k) in[k] = (const char*)argv[k + 2] + begin * kKindBytes[kComputeKind[g.in[k]]];
    g.block(out + begin * out_bytes, in, (int64_t)(end - begin), p);
    return;
  }

  alignas(64) char buffer[kMaxPointwise][kBufferBytes];
  int64_t block_n = kBufferBytes / out_bytes;
  Load load[3];
  uint32_t in_bytes[3];
  bool native[3];
  for (uint32_t k = 0; k < n_in; ++k) {
    in_bytes[k] = kKindBytes[kComputeKind[g.in[k]]];
    block_n = smaller(block_n, kBufferBytes / in_bytes[k]);
    load[k] = load_table[p->kind[k + 1]][g.in[k]];
    native[k] = p->kind[k + 1] == kComputeKind[g.in[k]];
  }
  const bool out_native = p->kind[0] == kComputeKind[g.out];
  const Store store = store_table[p->kind[0]][g.out];
  const uint32_t memory_bytes = kKindBytes[p->kind[0]];
  for (uint32_t k = 0; k < n_in; ++k)
    if (p->scalar >> (k + 1) & 1) {
      load[k](buffer[k + 1], (const char*)argv[k + 2], smaller(block_n, (int64_t)(end - begin)), 0, 1, 0);
      in[k] = buffer[k + 1];
    }

  if (p->direct) {   // with scalars
    for (uint64_t at = begin; at < end; at += (uint64_t)block_n) {
      for (uint32_t k = 0; k < n_in; ++k)
        if (!(p->scalar >> (k + 1) & 1)) in[k] = (const char*)argv[k + 2] + at * in_bytes[k];
      g.block(out + at * out_bytes, in, smaller(block_n, (int64_t)(end - at)), p);
    }
    return;
  }

  Walk walk{p, {}};
  walk.seek(begin);
  if (p->n_dims > 1 && p->dims[0].size < kShortRow) {   // mixed
    for (uint64_t at = begin; at < end;) {
      int64_t n = smaller(block_n, (int64_t)(end - at));
      Walk next = walk;
      next.seek(at);
      for (uint32_t k = 0; k < n_in; ++k) {
        if (p->scalar >> (k + 1) & 1) continue;
        const char* base = (const char*)argv[k + 2];
        if ((p->linear >> (k + 1) & 1) && native[k]) { in[k] = base + at * in_bytes[k]; continue; }
        Walk w = next;
        char* to = buffer[k + 1];
        rectangles(w, k + 1, n, [&](int64_t i, int64_t offset, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
          load[k](to + i * in_bytes[k], base + offset, n0, s0, n1, s1);
        });
        in[k] = to;
      }
      if ((p->linear & 1) && out_native) {
        g.block(out + at * out_bytes, in, n, p);
      } else {
        g.block(buffer[0], in, n, p);
        rectangles(next, 0, n, [&](int64_t i, int64_t offset, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
          store(out + offset, buffer[0] + i * out_bytes, n0, s0, n1, s1);
        });
      }
      at += (uint64_t)n;
    }
    return;
  }

  const bool out_dense = out_native && p->dims[0].stride[0] == memory_bytes;
  for (uint64_t at = begin; at < end;) {   // rows
    int64_t run = smaller(p->dims[0].size - walk.at[0], (int64_t)(end - at));
    char* row_out = out + walk.offset(0);
    const char* row[3];
    bool buffered = !out_dense;
    for (uint32_t k = 0; k < n_in; ++k) {
      row[k] = (const char*)argv[k + 2] + walk.offset(k + 1);
      int64_t s = p->dims[0].stride[k + 1];
      buffered |= !(native[k] && s == in_bytes[k]);
      if (s == 0 && !(p->scalar >> (k + 1) & 1)) {
        load[k](buffer[k + 1], row[k], smaller(block_n, run), 0, 1, 0);
        in[k] = buffer[k + 1];
      }
    }
    for (int64_t i = 0; i < run;) {
      int64_t n = buffered ? smaller(block_n, run - i) : run;
      for (uint32_t k = 0; k < n_in; ++k) {
        int64_t s = p->dims[0].stride[k + 1];
        if (s == 0) continue;
        if (native[k] && s == in_bytes[k]) { in[k] = row[k] + i * s; continue; }
        load[k](buffer[k + 1], row[k] + i * s, n, s, 1, 0);
        in[k] = buffer[k + 1];
      }
      if (out_dense) {
        g.block(row_out + i * out_bytes, in, n, p);
      } else {
        g.block(buffer[0], in, n, p);
        store(row_out + i * p->dims[0].stride[0], buffer[0], n, p->dims[0].stride[0], 1, 0);
      }
      i += n;
    }
    at += (uint64_t)run;
    walk.advance(run);
  }
}

}  // namespace

void drive(const Signature& g, const void* const* argv, uint64_t first, uint64_t count) {
  const PointwiseParams* p = (const PointwiseParams*)argv[0];
  uint64_t begin = first * p->chunk, end = (first + count) * p->chunk;
  if (end > p->n) end = p->n;
  if (begin >= end) return;
  if (begin == 0 && p->direct && p->scalar == 0) return g.block(const_cast<void*>(argv[1]), argv + 2, (int64_t)end, p);
  drive_range(g, argv, begin, end);
}

LEVEL_END

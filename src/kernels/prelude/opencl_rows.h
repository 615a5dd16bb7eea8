// src/kernels/prelude/opencl_rows.h: RowsParams and what the row texts need: rows as dense blocks of T, registers of lanes.
typedef struct { long size; long stride[8]; } ROW_DIM;
typedef struct {
  ulong n_rows, rows_per_group, length;
  uint n_outer, n_inner, n_operands, flags;
  uchar kind[8];
  uchar dense, columns, pad[6];
  ulong f[4];
  long i[4];
  ulong error;
  ROW_DIM dims[11];
} ROWS;
#define F(k) NUMBER(p.f[k])

#define LINED __attribute__((aligned(64)))   // blocks in private memory begin a line of the cache: long stores cross none
#if FAT
#define BLOCK 512
#define SMALL_BLOCKS 0
#else
#define BLOCK 32
#define SMALL_BLOCKS 1
#endif

FN long row_offset(const ROWS* p, ulong row, int k) {
  long o = 0;
  for (uint d = 0; d < p->n_outer; ++d) {
    if (d + 1 == p->n_outer) { o += (long)row * p->dims[d].stride[k]; break; }
    o += (long)(row % (ulong)p->dims[d].size) * p->dims[d].stride[k];
    row /= (ulong)p->dims[d].size;
  }
  return o;
}
#define ROW(k) row_offset(&p, row, k)

// From element `first` on: how far the innermost dimension goes, and where that is. Advances *done behind it.
FN long next_run(const ROWS* p, int k, long first, long n, long* done, long* step) {
  const uint in = p->n_outer;
  long rest = first + *done, at = rest % p->dims[in].size, o = at * p->dims[in].stride[k];
  const long run = min_of(p->dims[in].size - at, n - *done);
  rest /= p->dims[in].size;
  for (uint d = 1; d < p->n_inner; ++d) {
    o += rest % p->dims[in + d].size * p->dims[in + d].stride[k];
    rest /= p->dims[in + d].size;
  }
  *step = p->dims[in].stride[k];
  *done += run;
  return o;
}
// Elements [first, first + n) of the row at `row` of operand k to, or from, a dense block.
#define READ(k, block, row, first, n)                                                                      \
  {                                                                                                        \
    const long r_ = (row), f_ = (first), n_ = (n);                                                         \
    if (p.dense >> k & 1) {                                                                                \
      IVDEP for (long j = 0; j < n_; ++j) block[j] = LOAD##k(r_ + (f_ + j) * BYTES##k);                    \
    } else {                                                                                               \
      for (long done_ = 0, step_; done_ < n_;) {                                                           \
        const long b_ = done_, o_ = r_ + next_run(&p, k, f_, n_, &done_, &step_), u_ = done_ - b_;         \
        if (step_ == BYTES##k) for (long j = 0; j < u_; ++j) block[b_ + j] = LOAD##k(o_ + j * BYTES##k);   \
        else for (long j = 0; j < u_; ++j) block[b_ + j] = LOAD##k(o_ + j * step_);                        \
      }                                                                                                    \
    }                                                                                                      \
  }
#define WRITE(k, block, row, first, n)                                                                     \
  {                                                                                                        \
    const long r_ = (row), f_ = (first), n_ = (n);                                                         \
    if (p.dense >> k & 1) {                                                                                \
      IVDEP for (long j = 0; j < n_; ++j) STORE##k(r_ + (f_ + j) * BYTES##k, block[j]);                    \
    } else {                                                                                               \
      for (long done_ = 0, step_; done_ < n_;) {                                                           \
        const long b_ = done_, o_ = r_ + next_run(&p, k, f_, n_, &done_, &step_), u_ = done_ - b_;         \
        if (step_ == BYTES##k) for (long j = 0; j < u_; ++j) STORE##k(o_ + j * BYTES##k, block[b_ + j]);   \
        else for (long j = 0; j < u_; ++j) STORE##k(o_ + j * step_, block[b_ + j]);                        \
      }                                                                                                    \
    }                                                                                                      \
  }
// The same for what f(j) makes of element j of a whole row: no block in between.
#define WRITE_EACH(k, f, row)                                                                              \
  {                                                                                                        \
    const long r_ = (row);                                                                                 \
    if (p.dense >> k & 1) {                                                                                \
      IVDEP for (long j = 0; j < length; ++j) STORE##k(r_ + j * BYTES##k, f(j));                           \
    } else {                                                                                               \
      for (long done_ = 0, step_; done_ < length;) {                                                       \
        const long b_ = done_, o_ = r_ + next_run(&p, k, 0, length, &done_, &step_);                       \
        for (long j = b_; j < done_; ++j) STORE##k(o_ + (j - b_) * step_, f(j));                           \
      }                                                                                                    \
    }                                                                                                      \
  }
// Rows up to this length are kept in private memory between the passes over them.
#if FAT
#define KEPT 4096
#else
#define KEPT 32
#endif

#define FOR_ROWS                                                                       \
  ulong row = get_global_id(0) * p.rows_per_group, end = row + p.rows_per_group;       \
  if (end > p.n_rows) end = p.n_rows;                                                  \
  const long length = (long)p.length;                                                  \
  for (; row < end; ++row)
#define FOR_BLOCKS(i, n) for (long i = 0, n; n = min_of(BLOCK, length - i), i < length; i += BLOCK)

// 128 bytes of lanes, as on the host, so that sums come out the same.
#if COMPUTE == C_F32
typedef float16 REGISTER;
#define REGISTERS 2
#define REGISTER_LANES 16
#define load_register(i, x) vload16(i, x)
#define store_register(to, v) vstore16(v, 0, to)
#elif COMPUTE == C_F64 || COMPUTE == C_I64
#if COMPUTE == C_F64
typedef double8 REGISTER;
#else
typedef long8 REGISTER;
#endif
#define REGISTERS 2
#define REGISTER_LANES 8
#define load_register(i, x) vload8(i, x)
#define store_register(to, v) vstore8(v, 0, to)
#else
typedef uchar16 REGISTER;
#define REGISTERS 8
#define REGISTER_LANES 16
#define load_register(i, x) vload16(i, x)
#define store_register(to, v) vstore16(v, 0, to)
#endif
#define LANE_COUNT (REGISTERS * REGISTER_LANES)
typedef struct { REGISTER r[REGISTERS]; } LANES;
FN LANES load_lanes(const T* x) {
  LANES l;
  for (int i = 0; i < REGISTERS; ++i) l.r[i] = load_register(i, x);
  return l;
}
// text/reduce.clk once per reduction: NAME(x) gives its functions their prefix, INIT_OF, LIFT_OF, MERGE_OF its meaning.
#define INIT ((REGISTER)(INIT_OF))
#define LIFT(x) (LIFT_OF(x))
#define MERGE(a, b) (MERGE_OF(a, b))
#define SCALAR_INIT INIT_OF
#define SCALAR_LIFT(x) T(LIFT_OF(x))
#define SCALAR_MERGE(a, b) T(MERGE_OF(a, b))
#define STATE NAME(STATE)
#define reduce_begin NAME(begin)
#define reduce_merge NAME(merge)
#define reduce_block NAME(block)
#define reduce_end NAME(end)
#define reduce_columns4 NAME(columns4)
#define reduce_columns NAME(columns)
#define reduce_columns_fold NAME(columns_fold)

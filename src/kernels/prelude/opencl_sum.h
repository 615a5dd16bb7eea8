// src/kernels/prelude/opencl_sum.h: text/reduce.clk as the sum, for texts that add rows up: sum_begin, sum_block, sum_end; and of squares.
#define NAME(x) sum_##x
#define INIT_OF T(0)
#define LIFT_OF(x) x
#define MERGE_OF(a, b) (a) + (b)
@include text/reduce.clk
#undef NAME
#undef INIT_OF
#undef LIFT_OF
#undef MERGE_OF
#define NAME(x) squares_##x
#define INIT_OF T(0)
#define LIFT_OF(x) (x) * (x)
#define MERGE_OF(a, b) (a) + (b)
@include text/reduce.clk
#undef NAME
#undef INIT_OF
#undef LIFT_OF
#undef MERGE_OF

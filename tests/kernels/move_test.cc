// tests/kernels/move_test.cc: copies, casts, fill, index operators, cat, triangles, series and random numbers.
#include <cstdlib>

#include "kernels/levels.h"
#include "reference.h"
#include "run_plan.h"

namespace flhal::test {
namespace {

const flhal_dtype kAll[] = {FLHAL_I8, FLHAL_I16, FLHAL_I32, FLHAL_I64, FLHAL_U8, FLHAL_U16, FLHAL_U32, FLHAL_U64,
                            FLHAL_F16, FLHAL_BF16, FLHAL_F32, FLHAL_F64, FLHAL_BOOL, FLHAL_C64, FLHAL_C128};

TEST_CASE("copy: every pair of dtypes and layouts", "[kernels][copy]") {
  for (flhal_dtype from : kAll)
    for (flhal_dtype to : kAll)
      for (Layout lf : kLayouts)
        for (Layout lt : {Layout::kDense, Layout::kTransposed, Layout::kStepped}) {
          if (left_out(37)) continue;
          std::vector<double> v = series(90, 1, from == FLHAL_BOOL ? 0 : 1, from == FLHAL_BOOL ? 2 : 99);
          Array x = Array::values(from, {2, 5, 9}, v, lf), y(to, {2, 5, 9}, lt);
          run_op(FLHAL_OP_COPY, {&y}, {&x});
          std::vector<double> want;
          for (double e : x.all()) {
            unsigned char b[16];
            bool integer = epsilon_of(to) == 0 && to != FLHAL_BOOL;
            write_element(to, b, integer ? std::trunc(e) : e);
            want.push_back(read_element(to, b));
          }
          check_close(y.all(), want, 0, 0, dtype_name(from) + " to " + dtype_name(to) + " " + layout_name(lf) + " " + layout_name(lt));
        }
}

TEST_CASE("copy: casts of what does not fit, NaN and halfway cases follow the rules", "[kernels][copy]") {
  Array x = Array::values(FLHAL_F32, {6}, {NAN, INFINITY, -INFINITY, 3e9, -1.7, 300});
  struct { flhal_dtype to; std::vector<double> want; } rows[] = {
      {FLHAL_I32, {-2147483648.0, -2147483648.0, -2147483648.0, -2147483648.0, -1, 300}},
      {FLHAL_I8, {0, 0, 0, 0, -1, 44}},
      {FLHAL_U8, {0, 0, 0, 3000000000ll & 255, 255, 44}},
      {FLHAL_BOOL, {1, 1, 1, 1, 1, 1}},
      {FLHAL_F16, {NAN, INFINITY, -INFINITY, INFINITY, -1.7001953125, 300}}};
  for (auto& row : rows) {
    Array y(row.to, {6});
    run_op(FLHAL_OP_COPY, {&y}, {&x});
    check_close(y.all(), row.want, 0, 0, dtype_name(row.to));
  }
  Array h = Array::values(FLHAL_F32, {4}, {2049, 2051, 65519, 65520}), half(FLHAL_F16, {4});
  run_op(FLHAL_OP_COPY, {&half}, {&h});
  check_close(half.all(), {2048, 2052, 65504, INFINITY}, 0, 0, "ties to even");
  Array tiny = Array::values(FLHAL_F32, {3}, {std::ldexp(1.0, -24), std::ldexp(1.5, -25), std::ldexp(1.0, -26)}), th(FLHAL_F16, {3});
  run_op(FLHAL_OP_COPY, {&th}, {&tiny});
  check_close(th.all(), {std::ldexp(1.0, -24), std::ldexp(1.0, -24), 0}, 0, 0, "subnormal halves");
}

TEST_CASE("copy: a large transposed copy is right at tile edges", "[kernels][large][copy]") {
  for (flhal_dtype dtype : {FLHAL_U8, FLHAL_F16, FLHAL_F32, FLHAL_F64, FLHAL_C128}) {
    Array x = Array::values(dtype, {131, 157}, {1, 2, 3, 4, 5, 6, 7}, Layout::kTransposed), y(dtype, {131, 157});
    run_op(FLHAL_OP_COPY, {&y}, {&x});
    REQUIRE(y.all() == x.all());
  }
}

TEST_CASE("fill: a host scalar of any dtype into any dtype and layout", "[kernels][copy]") {
  for (flhal_dtype to : kAll)
    for (Layout layout : kLayouts) {
      Array y(to, {7, 30}, layout), v = Array::host_scalar(FLHAL_F64, 1);
      run_op(FLHAL_OP_FILL, {&y}, {&v});
      for (double e : y.all()) REQUIRE(e == 1);
    }
}

TEST_CASE("index_select and gather: any layout; an index out of range is a fault with its values", "[kernels][index]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_I8, FLHAL_F16, FLHAL_F64, FLHAL_C128})
    for (flhal_dtype index_dtype : {FLHAL_I64, FLHAL_I32})
      for (Layout layout : kLayouts)
        for (int64_t dim : {0, 1, 2, -1}) {
          const Sizes sizes = {4, 5, 6};
          const size_t d = static_cast<size_t>(dim < 0 ? dim + 3 : dim);
          Array x = Array::values(dtype, sizes, series(120, 1, -50, 50), layout), ix = Array::values(index_dtype, {3}, {2, 0, 3});
          Sizes out_sizes = sizes;
          out_sizes[d] = 3;
          Array y(dtype, out_sizes);
          run_op(FLHAL_OP_INDEX_SELECT, {&y}, {&x, &ix}, 0, {Attr::integer(FLHAL_ATTR_INDEX_SELECT_DIM, dim)});
          Array g(dtype, {2, 3, 4}, layout);
          Sizes gs = {2, 3, 4};
          Array gi(index_dtype, gs, layout);
          for (int64_t i = 0; i < 24; ++i) gi.set(i, static_cast<double>(i * 7 % sizes[d]));
          run_op(FLHAL_OP_GATHER, {&g}, {&x, &gi}, 0, {Attr::integer(FLHAL_ATTR_GATHER_DIM, dim)});
          auto place = [&](const Sizes& of, int64_t i, int64_t k) {
            int64_t at[3] = {i / (of[1] * of[2]), i / of[2] % of[1], i % of[2]};
            at[d] = k;
            return (at[0] * 5 + at[1]) * 6 + at[2];
          };
          for (int64_t i = 0; i < y.count(); ++i) {
            int64_t at[3] = {i / (out_sizes[1] * out_sizes[2]), i / out_sizes[2] % out_sizes[1], i % out_sizes[2]};
            REQUIRE(y.get(i) == x.get(place(out_sizes, i, static_cast<int64_t>(ix.get(at[d])))));
          }
          for (int64_t i = 0; i < 24; ++i) REQUIRE(g.get(i) == x.get(place(gs, i, static_cast<int64_t>(gi.get(i)))));
        }
  Array x(FLHAL_F32, {5, 3}), ix = Array::values(FLHAL_I64, {2, 2}, {1, 7, -1, 0}), y(FLHAL_F32, {2, 2, 3});
  Outcome o = try_op(FLHAL_OP_INDEX_SELECT, {&y}, {&x, &ix});
  REQUIRE(kernels::kernel_error_text(o.error) == "index 7 is out of range for dimension 0 of size 5");
  REQUIRE(y.canaries_intact());
}

TEST_CASE("scatter, scatter_add, index_add: duplicates add up in order, bad indices are left out", "[kernels][index]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_I64, FLHAL_I32, FLHAL_I8, FLHAL_F16, FLHAL_BOOL})
    for (Layout layout : kLayouts) {
      Array out = Array::values(dtype, {5, 200}, {0}, layout), src = Array::values(dtype, {8, 200}, {1}, layout);
      Array ix = Array::values(FLHAL_I64, {8}, {0, 1, 1, 4, 1, 0, 2, 1});
      run_op(FLHAL_OP_INDEX_ADD, {&out}, {&ix, &src});
      double want[5] = {2, 4, 1, 0, 1};
      for (int64_t i = 0; i < 1000; ++i) REQUIRE(out.get(i) == (dtype == FLHAL_BOOL ? want[i / 200] > 0 : want[i / 200]));
      Array sum = Array::values(dtype, {5, 4}, {0}, layout), si = Array::values(FLHAL_I64, {6, 3}, {0, 1, 2, 1, 1, 1, 4, 4, 4, 0, 0, 2, 1, 3, 3, 2, 2, 2});
      Array ss = Array::values(dtype, {7, 3}, {1}, layout);
      run_op(FLHAL_OP_SCATTER_ADD, {&sum}, {&si, &ss});
      std::vector<double> counts(20);
      for (int64_t i = 0; i < 18; ++i) counts[static_cast<size_t>(static_cast<int64_t>(si.get(i)) * 4 + i % 3)] += 1;
      for (size_t i = 0; i < 20; ++i) REQUIRE(sum.get(static_cast<int64_t>(i)) == (dtype == FLHAL_BOOL ? counts[i] > 0 : counts[i]));
      Array put = Array::values(dtype, {5, 4}, {0}, layout), pi = Array::values(FLHAL_I64, {2, 4}, {4, 3, 2, 1, 0, 0, 0, 0});
      Array ps = Array::values(dtype, {2, 4}, {1}, layout);
      run_op(FLHAL_OP_SCATTER, {&put}, {&pi, &ps});
      for (int64_t i = 0; i < 20; ++i) REQUIRE(put.get(i) == (i / 4 == 0 || i / 4 == 4 - i % 4));
    }
  Array out(FLHAL_F32, {3, 3}), ix = Array::values(FLHAL_I64, {2}, {3, 1}), src = Array::values(FLHAL_F32, {2, 3}, {1});
  Outcome o = try_op(FLHAL_OP_INDEX_ADD, {&out}, {&ix, &src});
  REQUIRE(kernels::kernel_error_text(o.error) == "index 3 is out of range for dimension 0 of size 3");
  check_close(out.all(), {0, 0, 0, 1, 1, 1, 0, 0, 0}, 0, 0, "index_add");
  REQUIRE(out.canaries_intact());
}

TEST_CASE("cat: any number of inputs along any dimension, converting, with empty ones", "[kernels][cat]") {
  for (Layout layout : kLayouts)
    for (int64_t dim : {0, 1, -1}) {
      const size_t d = dim == 0 ? 0 : 1;
      Array a = Array::values(FLHAL_F32, {3, 4}, series(12, 1, -9, 9), layout), empty(FLHAL_F32, {0});
      Sizes bs = {3, 4};
      bs[d] = 7;
      Array b = Array::values(FLHAL_I32, bs, {1, 2, 3, 4, 5}, layout);
      Sizes os = {3, 4};
      os[d] += 7 + os[d];
      Array out(FLHAL_F32, os, layout);
      Sizes as = a.sizes;
      run_op(FLHAL_OP_CAT, {&out}, {&a, &empty, &b, &a}, 0, {Attr::integer(FLHAL_ATTR_CAT_DIM, dim)});
      for (int64_t i = 0; i < out.count(); ++i) {
        int64_t at[2] = {i / os[1], i % os[1]}, k = at[d];
        int64_t first = as[d];
        const Array& from = k < first || k >= first + 7 ? a : b;
        at[d] = k < first ? k : k < first + 7 ? k - first : k - first - 7;
        REQUIRE(out.get(i) == from.get(at[0] * from.sizes[1] + at[1]));
      }
    }
  std::vector<Array> many;
  std::vector<const Array*> inputs;
  for (int i = 0; i < 30; ++i) many.push_back(Array::values(FLHAL_F32, {2, 1000}, {static_cast<double>(i)}));
  for (const Array& m : many) inputs.push_back(&m);
  Array out(FLHAL_F32, {60, 1000});
  run_op(FLHAL_OP_CAT, {&out}, inputs);
  for (int64_t i = 0; i < 60000; ++i) REQUIRE(out.get(i) == static_cast<double>(i / 2000));
}

TEST_CASE("tril, triu and arange", "[kernels][shape]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_I8, FLHAL_F16, FLHAL_I64, FLHAL_C128})
    for (Layout layout : kLayouts)
      for (int64_t diagonal : {-9, -2, 0, 1, 9}) {
        Array x = Array::values(dtype, {2, 4, 5}, {1, 2, 3, 4, 5, 6, 7}, layout), lower(dtype, {2, 4, 5}, layout), upper(dtype, {2, 4, 5});
        run_op(FLHAL_OP_TRIL, {&lower}, {&x}, 0, {Attr::integer(FLHAL_ATTR_TRIL_DIAGONAL, diagonal)});
        run_op(FLHAL_OP_TRIU, {&upper}, {&x}, 0, {Attr::integer(FLHAL_ATTR_TRIU_DIAGONAL, diagonal)});
        for (int64_t i = 0; i < 40; ++i) {
          REQUIRE(lower.get(i) == (i % 5 <= i / 5 % 4 + diagonal ? x.get(i) : 0));
          REQUIRE(upper.get(i) == (i % 5 >= i / 5 % 4 + diagonal ? x.get(i) : 0));
        }
      }
  Array whole(FLHAL_I64, {10000}), part(FLHAL_F32, {100, 3}, Layout::kTransposed);
  run_op(FLHAL_OP_ARANGE, {&whole}, {}, 0, {Attr::integer(FLHAL_ATTR_ARANGE_START, 5), Attr::integer(FLHAL_ATTR_ARANGE_STEP, -2)});
  for (int64_t i = 0; i < 10000; ++i) REQUIRE(whole.get(i) == 5.0 - 2.0 * static_cast<double>(i));
  run_op(FLHAL_OP_ARANGE, {&part}, {}, 0, {Attr::number(FLHAL_ATTR_ARANGE_START, 0.5), Attr::number(FLHAL_ATTR_ARANGE_STEP, 0.25)});
  for (int64_t i = 0; i < 300; ++i) REQUIRE(part.get(i) == 0.5 + 0.25 * static_cast<double>(i));
}

// Philox 4x32-10 once more, written from the paper.
std::vector<uint32_t> philox_words(uint64_t seed, uint64_t counter) {
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int r = 0; r < 10; ++r) {
    uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    uint32_t n[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1],
                     static_cast<uint32_t>(a)};
    std::copy(n, n + 4, c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return {c, c + 4};
}

TEST_CASE("random: Philox gives the published words, and uniform numbers are their top bits in any layout and chunking", "[kernels][random]") {
  // Known answer of the Random123 distribution for counter 0 and key 0.
  REQUIRE(philox_words(0, 0) == std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  for (Layout layout : kLayouts) {
    Array u(FLHAL_F32, {100, 123}, layout);
    run_op(FLHAL_OP_UNIFORM, {&u}, {}, 0, {Attr::seed(FLHAL_ATTR_UNIFORM_PHILOX, 0x1234567890ull, 77), Attr::number(FLHAL_ATTR_UNIFORM_FROM, 0),
                                           Attr::number(FLHAL_ATTR_UNIFORM_TO, 1)});
    for (int64_t i = 0; i < u.count(); ++i) {
      uint32_t word = philox_words(0x1234567890ull, 77 + static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
      REQUIRE(u.get(i) == static_cast<double>(word >> 8) / 16777216.0);
    }
  }
  for (flhal_dtype dtype : {FLHAL_F16, FLHAL_BF16}) {
    Array u(dtype, {50000});
    run_op(FLHAL_OP_UNIFORM, {&u}, {}, 0, {Attr::seed(FLHAL_ATTR_UNIFORM_PHILOX, 1, 0)});
    for (double v : u.all()) if (!(v >= 0 && v < 1)) FAIL("uniform gave " << v);
  }
}

TEST_CASE("random: normal has its moments and follows Box and Muller; bernoulli and randint keep their ranges", "[kernels][large][random]") {
  Array n(FLHAL_F32, {200000});
  run_op(FLHAL_OP_NORMAL, {&n}, {}, 0, {Attr::seed(FLHAL_ATTR_NORMAL_PHILOX, 42, 5)});
  std::vector<double> v = n.all();
  double mean = 0, var = 0;
  for (double x : v) mean += x / 200000;
  for (double x : v) var += (x - mean) * (x - mean) / 200000;
  REQUIRE(std::fabs(mean) < 0.01);
  REQUIRE(std::fabs(var - 1) < 0.01);
  for (int64_t i = 0; i < 4000; i += 2) {
    std::vector<uint32_t> w = philox_words(42, 5 + static_cast<uint64_t>(i / 4));
    size_t h = static_cast<size_t>(i % 4);
    double u = (static_cast<double>(w[h] >> 8) + 1) / 16777216.0, angle = 2 * M_PI * w[h + 1] / 4294967296.0, radius = std::sqrt(-2 * std::log(u));
    REQUIRE(std::fabs(v[static_cast<size_t>(i)] - radius * std::cos(angle)) < 2e-6);
    REQUIRE(std::fabs(v[static_cast<size_t>(i) + 1] - radius * std::sin(angle)) < 2e-6);
  }
  Array b(FLHAL_BOOL, {100000}), r(FLHAL_I32, {100000}), big(FLHAL_I64, {1000});
  run_op(FLHAL_OP_BERNOULLI, {&b}, {}, 0, {Attr::seed(FLHAL_ATTR_BERNOULLI_PHILOX, 3, 0), Attr::number(FLHAL_ATTR_BERNOULLI_P, 0.25)});
  double ones = 0;
  for (double x : b.all()) ones += x;
  REQUIRE(std::fabs(ones / 100000 - 0.25) < 0.01);
  run_op(FLHAL_OP_RANDINT, {&r}, {}, 0, {Attr::seed(FLHAL_ATTR_RANDINT_PHILOX, 3, 0), Attr::integer(FLHAL_ATTR_RANDINT_FROM, -3), Attr::integer(FLHAL_ATTR_RANDINT_TO, 4)});
  std::vector<int> seen(7);
  for (double x : r.all()) seen.at(static_cast<size_t>(x + 3))++;
  for (int s : seen) REQUIRE(s > 10000);
  run_op(FLHAL_OP_RANDINT, {&big}, {}, 0, {Attr::seed(FLHAL_ATTR_RANDINT_PHILOX, 3, 0), Attr::integer(FLHAL_ATTR_RANDINT_FROM, 0), Attr::integer(FLHAL_ATTR_RANDINT_TO, int64_t(1) << 40)});
  double top = 0;
  for (double x : big.all()) { REQUIRE(x >= 0); REQUIRE(x < std::ldexp(1, 40)); top = std::max(top, x); }
  REQUIRE(top > std::ldexp(1, 39));
}

TEST_CASE("levels: every instruction set level this machine runs gives the same sums and products", "[kernels][levels]") {
  Array x = Array::values(FLHAL_F32, {70, 333}, series(70 * 333, 8, -1, 1)), w = Array::values(FLHAL_F32, {333, 90}, series(333 * 90, 9, -1, 1));
  std::vector<double> sums, products;
  for (const char* name : {"base", "v3", "v4"}) {
    if (!kernels::level_force(name)) continue;
    Array s(FLHAL_F32, {70, 1}), m(FLHAL_F32, {70, 90});
    run_op(FLHAL_OP_SUM, {&s}, {&x});
    run_op(FLHAL_OP_MATMUL, {&m}, {&x, &w});
    if (sums.empty()) { sums = s.all(); products = m.all(); }
    REQUIRE(s.all() == sums);                                    // the same order of additions
    check_close(m.all(), products, 1e-5, 1e-5, name);            // fused or not: not the same bits
  }
  kernels::level_force(std::getenv("FLHAL_TEST_KERNEL_LEVEL"));
}

}  // namespace
}  // namespace flhal::test

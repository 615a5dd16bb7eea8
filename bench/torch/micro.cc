// bench/torch/micro.cc: what one small op costs from C++, on any device. Loaded by micro.py into a process that has torch and
// the adapter, so both sides run with the same torch, threads and caches.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>

#include <chrono>
#include <functional>

namespace {

struct Operands {
  at::Tensor a4, b4, a120, b120, transposed, plain, matrix, row, grad4;
  explicit Operands(const char* device) {
    at::TensorOptions on = at::TensorOptions().dtype(at::kFloat);
    auto make = [&](at::IntArrayRef sizes) { return at::rand(sizes, on).to(c10::Device(device)); };
    a4 = make({4});
    b4 = make({4});
    a120 = make({2, 3, 4, 5});
    b120 = make({2, 3, 4, 5});
    transposed = make({5, 4, 3, 2}).permute({3, 2, 1, 0});
    matrix = make({8, 16});
    row = make({16});
  }
};

struct Case {
  const char* name;
  std::function<void(const Operands&)> run;
};

const Case kCases[] = {
    {"cpp_add_4", [](const Operands& o) { at::Tensor r = at::add(o.a4, o.b4); }},
    {"cpp_add_inplace_4", [](const Operands& o) { o.a4.add_(o.b4); }},
    {"cpp_mul_4", [](const Operands& o) { at::Tensor r = at::mul(o.a4, o.b4); }},
    {"cpp_relu_4", [](const Operands& o) { at::Tensor r = at::relu(o.a4); }},
    {"cpp_empty_4", [](const Operands& o) { at::Tensor r = at::empty({4}, o.a4.options()); }},
    {"cpp_view", [](const Operands& o) { at::Tensor r = o.a4.view({2, 2}); }},
    {"cpp_add_transposed_2x3x4x5", [](const Operands& o) { at::Tensor r = at::add(o.a120, o.transposed); }},
    {"cpp_add_row_to_matrix", [](const Operands& o) { at::Tensor r = at::add(o.matrix, o.row); }},
    {"cpp_add_number", [](const Operands& o) { at::Tensor r = at::add(o.a4, 2.0); }},
    {"cpp_copy_4", [](const Operands& o) { o.a4.copy_(o.b4); }},
};

}  // namespace

extern "C" {

int micro_count() { return sizeof kCases / sizeof kCases[0]; }
const char* micro_name(int i) { return kCases[i].name; }
void* micro_operands(const char* device) { return new Operands(device); }

// Nanoseconds per call over `n` calls.
double micro_time(int i, const void* operands, long n) {
  const auto& o = *static_cast<const Operands*>(operands);
  const auto& run = kCases[i].run;
  auto start = std::chrono::steady_clock::now();
  for (long k = 0; k < n; ++k) run(o);
  std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(n);
}
}

// src/kernels/host_module.cc: every ahead-of-time function by name, as the module of the dialect "flhal-host-1".
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "kernels/families.h"

namespace flhal::kernels {
namespace {

constexpr const char* kExprNames[kExprs] = {
#define EXPR(name, cls, arity, cost, text) #name,
#define EXPR_SCALED(name, plain, scaled) #name,
#include "kernels/exprs.def"
#undef EXPR
#undef EXPR_SCALED
};
constexpr const char* kNamedNames[kNameds] = {
#define NAMED(name) #name,
#include "kernels/named.def"
#undef NAMED
};
constexpr const char* kComputeNames[kComputes] = {"f32", "f64", "i64", "i32", "bool", "c128"};

// Names live as long as the process: modules and plans point to them.
struct Module {
  std::deque<std::string> names;
  std::vector<flhal_host_function> functions;
  std::vector<flhal_host_function> by_address;
  flhal_host_module module{};

  void add(std::string name, flhal_host_kernel run) {
    if (run == nullptr) return;
    names.push_back(std::move(name));
    functions.push_back({names.back().c_str(), run});
  }
  explicit Module(const Level& level) {
    for (int c = 0; c < kComputes; ++c)
      for (int e = 0; e < kExprs; ++e) add(std::string(kExprNames[e]) + "_" + kComputeNames[c], level.pointwise[c][e]);
    for (int i = 0; i < 5; ++i) add("copy_bytes_" + std::to_string(1 << i), level.copy_raw[i]);
    for (int i = 0; i < kNameds; ++i) add(kNamedNames[i], level.named[i]);
    by_address = functions;
    std::sort(by_address.begin(), by_address.end(), [](auto& a, auto& b) { return a.run < b.run; });
    module = {sizeof(flhal_host_module), static_cast<uint32_t>(functions.size()), functions.data()};
  }
};

const Module& module_of_level() {
  static const Module module(level());
  return module;
}

}  // namespace

const flhal_host_module* host_module() { return &module_of_level().module; }

const char* function_name(flhal_host_kernel run) {
  const auto& sorted = module_of_level().by_address;
  auto it = std::lower_bound(sorted.begin(), sorted.end(), run, [](const auto& f, flhal_host_kernel r) { return f.run < r; });
  return it != sorted.end() && it->run == run ? it->name : "unnamed";
}

}  // namespace flhal::kernels

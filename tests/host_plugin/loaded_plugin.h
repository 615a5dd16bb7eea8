// tests/host_plugin/loaded_plugin.h: the host plugin's library, opened and called as core would, but without core.
#pragma once

#include <flhal/ops.h>
#include <flhal/plugin.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace host_test {

struct LoadedPlugin {
  flhal_plugin_info_v1 info{};
  const flhal_plugin_table_v1* table = nullptr;
  const flhal_ops_v1* ops = nullptr;
  flhal_p_plugin* plugin = nullptr;
  flhal_p_device* device = nullptr;

  LoadedPlugin();    // loads, inits, opens device 0; fails the test when something is wrong
  ~LoadedPlugin();
  LoadedPlugin(const LoadedPlugin&) = delete;

  static flhal_plugin_v1_fn entry();               // of the library in the build folder
  static const flhal_host_v1* host();              // services that remember the last error
  static std::string last_error();                 // text of the last set_error on any thread
};

// A tensor of the test: memory of its own, guarded by a pattern on both sides, seen through sizes and strides.
class Tensor {
 public:
  // strides empty: contiguous. The memory holds exactly the elements the view can reach.
  Tensor(flhal_dtype dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides = {});
  static Tensor absent();

  flhal_tensor_v1 view() const;
  int64_t count() const;
  double at(int64_t i) const;              // element i in row-major order, converted from the dtype
  void set(int64_t i, double value);
  void fill_random(uint32_t seed, double scale = 1.0);
  bool guards_intact() const;
  const std::vector<int64_t>& sizes() const { return sizes_; }
  flhal_dtype dtype() const { return dtype_; }

 private:
  int64_t place(int64_t i) const;          // of element i, in elements
  bool absent_ = false;
  flhal_dtype dtype_ = 0;
  std::vector<int64_t> sizes_, strides_;
  std::vector<unsigned char> bytes_;
  size_t first_ = 0;                       // byte offset of element 0: behind the guard, aligned to 64
};

struct Attrs {
  std::vector<flhal_attr_v1> list;
  std::vector<std::vector<int64_t>> arrays;
  Attrs& number(uint32_t key, double v);
  Attrs& integer(uint32_t key, int64_t v);
  Attrs& ints(uint32_t key, std::vector<int64_t> v);
};

struct RunResult {
  flhal_status created = 0, ran = 0;
  std::string reason;
  flhal_plan_info_v1 info{};
};

// Plans and runs one call; operands outputs first. `again`: runs of the same plan.
RunResult run_op(LoadedPlugin& p, uint32_t op, const char* name, const std::vector<const Tensor*>& operands,
                 uint32_t n_outputs, Attrs attrs = {}, int runs = 1);

}  // namespace host_test

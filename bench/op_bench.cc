// bench/op_bench.cc: what dispatch costs, in instructions (under callgrind, by count_instructions.sh) and in nanoseconds.
//
// Usage: op_bench CASE ROUNDS. Prints nanoseconds per round. The script runs a case with two numbers of rounds and divides
// the difference, so that start and planning fall out. Chips: FLHAL_PLUGIN_FILES; op cases want a plugin with native ops.
// Cases end inside the plugin or at its door: the script subtracts what the plugin's own functions cost.
#include <flhal/flhal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kOpCall = 10;   // FLHAL_ST_OP_CALL

void check(flhal_status status, const char* what) {
  if (status == FLHAL_OK) return;
  char text[1024];
  flhal_last_error(text, sizeof text, nullptr);
  std::fprintf(stderr, "op_bench: %s: %d %s %s\n", what, status, text, flhal_last_decline());
  std::exit(1);
}

struct Bench {
  flhal_device* device = nullptr;
  flhal_stream* stream = nullptr;
  std::vector<int64_t> sizes{2, 3, 4, 5}, dense{60, 20, 5, 1}, transposed{1, 2, 6, 24}, row{0, 0, 0, 1};

  uint64_t memory(uint64_t bytes) {
    uint64_t address;
    check(flhal_alloc(stream, bytes, &address), "flhal_alloc");
    std::vector<char> zeros(bytes);
    check(flhal_copy(stream, address, reinterpret_cast<uint64_t>(zeros.data()), bytes, 0), "flhal_copy");
    return address;
  }
  flhal_tensor tensor(uint64_t address, const std::vector<int64_t>& strides) {
    flhal_tensor t{};
    t.address = address;
    t.sizes = sizes.data();
    t.strides = strides.data();
    t.dtype = FLHAL_F32;
    t.rank = 4;
    return t;
  }
  flhal_op_call call(uint32_t op, const flhal_tensor* tensors, uint32_t n_inputs) {
    flhal_op_call c{};
    c.struct_size = sizeof c;
    c.struct_type = kOpCall;
    c.op = op;
    c.tensors = tensors;
    c.tensor_stride = sizeof(flhal_tensor);
    c.n_outputs = 1;
    c.n_inputs = n_inputs;
    c.compute_dtype = FLHAL_F32;
    return c;
  }
};

void binary(Bench& b, uint64_t rounds, const std::vector<int64_t>& second, bool in_place) {
  uint64_t out = b.memory(480), x = b.memory(480), y = b.memory(480);
  flhal_tensor t[3] = {b.tensor(out, b.dense), b.tensor(in_place ? out : x, b.dense), b.tensor(y, second)};
  flhal_op_call c = b.call(FLHAL_OP_ADD, t, 2);
  for (uint64_t i = 0; i < rounds; ++i) check(flhal_op_run(b.stream, &c), "flhal_op_run");
}

void matmul(Bench& b, uint64_t rounds) {
  b.sizes = {8, 8};
  b.dense = {8, 1};
  uint64_t out = b.memory(256), x = b.memory(256), y = b.memory(256);
  flhal_tensor t[4] = {b.tensor(out, b.dense), b.tensor(x, b.dense), b.tensor(y, b.dense), {}};
  for (auto& each : t) each.rank = 2;
  t[3] = {};
  t[3].flags = FLHAL_TENSOR_ABSENT;
  flhal_op_call c = b.call(FLHAL_OP_MATMUL, t, 3);
  for (uint64_t i = 0; i < rounds; ++i) check(flhal_op_run(b.stream, &c), "flhal_op_run");
}

// The smallest kernel there is: nothing.
void nothing(const void* const*, uint64_t, uint64_t) {}

void launch(Bench& b, uint64_t rounds) {
  struct HostFunction {
    const char* name;
    void (*run)(const void* const*, uint64_t, uint64_t);
  } function{"nothing", nothing};
  struct HostModule {
    uint32_t struct_size, n_functions;
    const HostFunction* functions;
  } module{sizeof(HostModule), 1, &function};
  flhal_module* m;
  flhal_function* f;
  check(flhal_module_load(b.device, "flhal-host-1", &module, sizeof module, nullptr, &m), "flhal_module_load");
  check(flhal_function_get(m, "nothing", &f), "flhal_function_get");
  const uint64_t groups[3] = {1, 1, 1};
  const uint32_t size[3] = {1, 1, 1};
  for (uint64_t i = 0; i < rounds; ++i) check(flhal_launch(b.stream, f, groups, size, nullptr, 0), "flhal_launch");
  check(flhal_stream_synchronize(b.stream), "flhal_stream_synchronize");
}

const std::map<std::string, std::function<void(Bench&, uint64_t)>> kCases = {
    {"add_dense", [](Bench& b, uint64_t n) { binary(b, n, b.dense, false); }},
    {"add_in_place", [](Bench& b, uint64_t n) { binary(b, n, b.dense, true); }},
    {"add_transposed", [](Bench& b, uint64_t n) { binary(b, n, b.transposed, false); }},
    {"add_row", [](Bench& b, uint64_t n) { binary(b, n, b.row, false); }},
    {"matmul_exact", matmul},
    {"launch", launch},
};

}  // namespace

int main(int argc, char** argv) {
  auto found = argc == 3 ? kCases.find(argv[1]) : kCases.end();
  if (found == kCases.end()) {
    std::fprintf(stderr, "usage: op_bench CASE ROUNDS; cases:");
    for (const auto& [name, run] : kCases) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  Bench b;
  uint32_t n = flhal_device_count();
  for (uint32_t i = 0; i < n && !b.device; ++i) {
    flhal_device_info info{};
    info.struct_size = sizeof info;
    check(flhal_device_get_info(flhal_device_at(i), &info), "flhal_device_get_info");
    if (info.has_ops || (info.has_kernels && std::strcmp(argv[1], "launch") == 0)) b.device = flhal_device_at(i);
  }
  if (!b.device) {
    std::fprintf(stderr, "op_bench: none of %u devices has native ops; set FLHAL_PLUGIN_FILES\n", n);
    return 1;
  }
  b.stream = flhal_stream_default(b.device);
  uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
  auto start = std::chrono::steady_clock::now();
  found->second(b, rounds);
  double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s %.1f ns\n", argv[1], ns / static_cast<double>(rounds ? rounds : 1));
  std::exit(0);
}

// tests/opencl_plugin/module_test.cc: programs, binaries, arguments, launches from many threads, and refusals.
#include <flhal/x_module_binary.h>

#include <dlfcn.h>
#include <thread>

#include "world.h"

using namespace flhal;
using namespace flhal::test;
using Catch::Contains;

namespace {

const char kText[] = R"(
typedef struct { long at[2]; int by; } PLACES;
__kernel void add(__global const int* x, __global int* out, int by) { size_t i = get_global_id(0); out[i] = x[i] + by; }
__kernel void at(__global const uchar* x, __global uchar* out, PLACES p) {
  size_t i = get_global_id(0);
  ((__global int*)(out + p.at[1]))[i] = ((__global const int*)(x + p.at[0]))[i] + p.by;
}
__kernel void reverse(__global int* x, __local int* hold) {
  size_t i = get_local_id(0), n = get_local_size(0);
  hold[i] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  x[i] = hold[n - 1 - i];
}
__kernel void is_null(__global const int* x, __global int* out) { out[0] = x == 0; }
__kernel void where(__global int* out) {
  size_t w = get_global_size(0), h = get_global_size(1);
  out[get_global_id(0) + w * (get_global_id(1) + h * get_global_id(2))] =
      (int)(get_local_size(0) * 100 + get_local_size(1) * 10 + get_local_size(2));
}
)";

std::vector<int> ints(const std::vector<uint8_t>& bytes) {
  std::vector<int> out(bytes.size() / 4);
  memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

const flhal_x_module_binary_v1* binary_table() {
  void* library = dlopen(chip()->plugin->library_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  flhal_plugin_info_v1 info{};
  info.struct_size = sizeof info;
  REQUIRE(reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"))(nullptr, &info) == FLHAL_OK);
  CHECK(info.optional_table("ops", 0) == nullptr);
  return static_cast<const flhal_x_module_binary_v1*>(info.optional_table(FLHAL_X_MODULE_BINARY, 0));
}

flhal_p_source_v1 source_of(const char* dialect, const void* data, uint64_t bytes, char* log = nullptr, uint64_t log_bytes = 0) {
  flhal_p_source_v1 s{};
  s.struct_size = sizeof s;
  s.struct_type = FLHAL_ST_SOURCE;
  s.dialect = dialect;
  s.data = data;
  s.bytes = bytes;
  s.build_log = log;
  s.build_log_capacity = log_bytes;
  return s;
}

}  // namespace

TEST_CASE("launch: values, memory, local memory, absent operands and three dimensions", "[opencl][launch]") {
  for (uint32_t which : {0u, kBasic}) {
    Device* c = chip(which);
    flhal_stream* s = new_stream(c);
    flhal_module* m = build(c, kText, "-DUNUSED=1");
    flhal_addr x = allocate(s, 4096), out = allocate(s, 4096);
    std::vector<int> numbers(1024);
    for (int i = 0; i < 1024; ++i) numbers[size_t(i)] = i;
    upload(s, x, numbers.data(), 4096);
    int by = 7;
    REQUIRE_FINE(launch(s, function(m, "add"), 16, 64, {memory(x), memory(out), value(by)}));
    by = 1000;                                        // the value was taken during the call
    auto got = ints(download(s, out, 4096));
    for (int i = 0; i < 1024; ++i) REQUIRE(got[size_t(i)] == i + 7);
    REQUIRE_FINE(launch(s, function(m, "reverse"), 1, 64, {memory(x), {FLHAL_KERNEL_ARG_LOCAL, 256, nullptr, 0}}));
    got = ints(download(s, x, 256));
    for (int i = 0; i < 64; ++i) REQUIRE(got[size_t(i)] == 63 - i);
    REQUIRE_FINE(launch(s, function(m, "is_null"), 1, 1, {memory(0), memory(out)}));
    CHECK(ints(download(s, out, 4))[0] == 1);
    const uint64_t groups[3] = {2, 3, 4};
    const uint32_t size[3] = {4, 2, 1};
    flhal_kernel_arg arg = memory(out);
    REQUIRE_FINE(flhal_launch(s, function(m, "where"), groups, size, &arg, 1));
    got = ints(download(s, out, 8 * 6 * 4 * 4));
    CHECK(got == std::vector<int>(8 * 6 * 4, 421));
    REQUIRE_FINE(flhal_module_release(m));
    flhal_free(x), flhal_free(out);
  }
}

TEST_CASE("launch: offsets in a value reach any byte; offsets in an argument where the chip can", "[opencl][launch]") {
  Slots t(chip());
  flhal_p_slab_v1 x = t.slab(1 << 20), out = t.slab(1 << 20);
  auto source = source_of("opencl-c-1.2", kText, sizeof kText - 1);
  flhal_p_module* m = nullptr;
  REQUIRE(t.table.module_load(t.handle(), &source, &m) == FLHAL_OK);
  flhal_p_function *at = nullptr, *add = nullptr;
  REQUIRE(t.table.function_get(m, "at", &at) == FLHAL_OK);
  REQUIRE(t.table.function_get(m, "add", &add) == FLHAL_OK);
  std::vector<int> numbers(1 << 18);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = int(i);
  REQUIRE(t.copy(nullptr, on(x), host(numbers.data()), 1 << 20) == FLHAL_OK);
  struct {
    int64_t at[2];
    int by;
  } places{{4 * 1000, 4 * 77}, 5};
  auto run = [&](flhal_p_function* f, std::vector<flhal_p_arg> args, uint32_t kind_of_first = FLHAL_ARG_MEMORY) {
    args[0].kind = kind_of_first;
    flhal_p_launch_v1 l{};
    l.struct_size = sizeof l;
    l.struct_type = FLHAL_ST_LAUNCH;
    l.function = f;
    l.groups[0] = 4, l.groups[1] = l.groups[2] = 1;
    l.group_size[0] = 16, l.group_size[1] = l.group_size[2] = 1;
    l.args = args.data();
    l.n_args = uint32_t(args.size());
    l.arg_stride = sizeof(flhal_p_arg);
    return t.table.launch(t.handle(), nullptr, &l);
  };
  auto mem = [](const flhal_p_slab_v1& s, uint64_t offset) {
    return flhal_p_arg{FLHAL_ARG_MEMORY, 0, nullptr, s.memory, offset, s.address ? s.address + offset : 0};
  };
  flhal_p_arg value_arg{FLHAL_ARG_VALUE, sizeof places, &places, nullptr, 0, 0};
  REQUIRE(run(at, {mem(x, 0), mem(out, 0), value_arg}) == FLHAL_OK);
  auto got = ints(t.read(out));
  for (int i = 0; i < 64; ++i) REQUIRE(got[size_t(77 + i)] == 1000 + i + 5);

  int by = 3;
  flhal_p_arg three{FLHAL_ARG_VALUE, sizeof by, &by, nullptr, 0, 0};
  for (int again = 0; again < 100; ++again)           // more offsets than sub-buffers are kept
    REQUIRE(run(add, {mem(x, uint64_t(again) * 4096), mem(out, 8192), three}) == FLHAL_OK);
  got = ints(t.read(out));
  for (int i = 0; i < 64; ++i) REQUIRE(got[size_t(2048 + i)] == 99 * 1024 + i + 3);
  flhal_status odd = run(add, {mem(x, 4), mem(out, 8192), three});
  if (has_addresses()) {
    CHECK(odd == FLHAL_OK);
    CHECK(ints(t.read(out))[2048] == 1 + 3);
  } else {
    CHECK(odd == FLHAL_E_INVALID);
    CHECK_THAT(left_text(odd), Contains("add: argument 0: byte 4 of its slab") && Contains("multiples of 128"));
  }
  flhal_status wrong = run(add, {mem(x, 0), mem(out, 0)});
  CHECK(wrong == FLHAL_E_INVALID);
  CHECK_THAT(left_text(wrong), Contains("add takes 3 arguments and got 2"));
  wrong = run(add, {mem(x, 0), mem(out, 0), {FLHAL_ARG_VALUE, 8, &places, nullptr, 0, 0}});
  CHECK(wrong == FLHAL_E_INVALID);
  CHECK_THAT(left_text(wrong), Contains("argument 2") && Contains("CL_INVALID_ARG_SIZE (-51)"));
  wrong = run(add, {mem(x, (1 << 20) + 128), mem(out, 0), three});
  CHECK(wrong == FLHAL_E_INVALID);
  CHECK_THAT(left_text(wrong), Contains("leaves its slab of 1048576 bytes"));
  wrong = run(add, {mem(x, 0), mem(out, 0), three}, 77);
  CHECK(wrong == FLHAL_E_INVALID);
  CHECK_THAT(left_text(wrong), Contains("kind 77"));
  t.table.module_unload(m);
  t.table.memory_free(t.handle(), x.memory);
  t.table.memory_free(t.handle(), out.memory);
}

TEST_CASE("launch: a group larger than the chip runs is refused with the largest", "[opencl][launch]") {
  Device* c = chip();
  flhal_stream* s = new_stream(c);
  flhal_module* m = build(c, kText);
  flhal_addr out = allocate(s, 4096);
  CHECK(launch(s, function(m, "where"), 1, 1u << 20, {memory(out)}) == FLHAL_E_INVALID);
  CHECK_THAT(last_error_text(), Contains("at most") && Contains("where"));
  int by = 1;
  CHECK(launch(s, function(m, "add"), 1, 1, {memory(out), memory(out), value(by)}) == FLHAL_OK);   // the stream is well
  REQUIRE_FINE(flhal_stream_synchronize(s));
  flhal_free(out);
}

TEST_CASE("launch: eight threads launch one function at once, each with its own arguments", "[opencl][launch][threads]") {
  Device* c = chip();
  flhal_module* m = build(c, kText);
  flhal_function* add = function(m, "add");
  constexpr int kThreads = 8, kRounds = 300;
  std::vector<int> wrong(kThreads, 0);
  std::vector<flhal_stream*> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(new_stream(c));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      flhal_addr x = 0, out = 0;
      if (flhal_alloc(streams[size_t(t)], 256, &x) || flhal_alloc(streams[size_t(t)], 256, &out)) {
        wrong[size_t(t)] = -1;
        return;
      }
      std::vector<int> numbers(64, t * 1000), got(64);
      if (flhal_copy(streams[size_t(t)], x, number(numbers.data()), 256, 0)) ++wrong[size_t(t)];
      for (int i = 0; i < kRounds; ++i) {
        if (launch(streams[size_t(t)], add, 1, 64, {memory(x), memory(out), value(i)})) ++wrong[size_t(t)];
        if (i % 10) continue;
        if (flhal_copy(streams[size_t(t)], number(got.data()), out, 256, 0)) ++wrong[size_t(t)];
        for (int v : got) wrong[size_t(t)] += v != t * 1000 + i;
      }
      flhal_free(x), flhal_free(out);
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(kThreads, 0));
  REQUIRE_FINE(flhal_module_release(m));
}

TEST_CASE("module: a text that does not compile gives the compiler's whole log", "[opencl][module]") {
  Device* c = chip();
  std::string bad = "__kernel void f(__global int* x) { x[0] = not_there; }\n";
  flhal_module* m = nullptr;
  CHECK(flhal_module_load(device_of(c), "opencl-c-1.2", bad.data(), bad.size(), nullptr, &m) == FLHAL_E_BUILD);
  CHECK_THAT(last_error_text(), Contains("not_there") && Contains("CL_BUILD_PROGRAM_FAILURE (-11)") && Contains("build log"));

  Slots t(c);
  for (int i = 0; i < 12; ++i) bad += "__kernel void g" + std::to_string(i) + "(__global int* x) { x[0] = missing_" + std::to_string(i) + "; }\n";
  std::vector<char> log(1 << 16, 'x'), small(100, 'x');
  flhal_p_module* p = nullptr;
  auto source = source_of("opencl-c-1.2", bad.data(), bad.size(), log.data(), log.size());
  CHECK(t.table.module_load(t.handle(), &source, &p) == FLHAL_E_BUILD);
  CHECK_THAT(log.data(), Contains("missing_0") && Contains("missing_11"));
  source.build_log = small.data();
  source.build_log_capacity = small.size();
  CHECK(t.table.module_load(t.handle(), &source, &p) == FLHAL_E_BUILD);
  CHECK(strnlen(small.data(), small.size()) < small.size());
  CHECK_THAT(small.data(), Contains("more bytes]"));
}

TEST_CASE("module: refusals name what is there", "[opencl][module]") {
  Device* c = chip();
  flhal_module* m = build(c, kText);
  flhal_function* f = nullptr;
  CHECK(flhal_function_get(m, "nothing", &f) == FLHAL_E_NOT_FOUND);
  REQUIRE_FINE(flhal_module_release(m));
  CHECK(flhal_module_load(device_of(c), "spirv-9", kText, 4, nullptr, &m) == FLHAL_E_UNSUPPORTED);
  Slots t(c);
  flhal_p_module* p = nullptr;
  auto source = source_of("flhal-host-1", kText, sizeof kText);
  CHECK(t.table.module_load(t.handle(), &source, &p) == FLHAL_E_UNSUPPORTED);
  CHECK_THAT(left_text(FLHAL_E_UNSUPPORTED), Contains("opencl-c-1.2") && Contains("opencl-binary"));
  source = source_of("opencl-c-1.2", kText, 0);
  CHECK(t.table.module_load(t.handle(), &source, &p) == FLHAL_E_INVALID);
  source = source_of("opencl-c-1.2", kText, sizeof kText - 1);
  REQUIRE(t.table.module_load(t.handle(), &source, &p) == FLHAL_OK);
  flhal_p_function* g = nullptr;
  CHECK(t.table.function_get(p, "nothing", &g) == FLHAL_E_NOT_FOUND);
  CHECK_THAT(left_text(FLHAL_E_NOT_FOUND), Contains("reverse"));
  t.table.module_unload(p);
}

TEST_CASE("module: a binary taken out of a module loads and computes; a damaged one is refused", "[opencl][module][binary]") {
  const flhal_x_module_binary_v1* x = binary_table();
  REQUIRE(x != nullptr);
  CHECK(x->struct_size == sizeof *x);
  CHECK(std::string(x->dialect) == "opencl-binary");
  Slots t(chip());
  auto source = source_of("opencl-c-1.2", kText, sizeof kText - 1);
  flhal_p_module* m = nullptr;
  REQUIRE(t.table.module_load(t.handle(), &source, &m) == FLHAL_OK);
  uint64_t bytes = 0, again = 0;
  REQUIRE(x->get(m, nullptr, 0, &bytes) == FLHAL_OK);
  REQUIRE(bytes > 0);
  std::vector<char> binary(bytes + 1, 'c');
  CHECK(x->get(m, binary.data(), bytes - 1, &again) == FLHAL_E_INVALID);
  CHECK(binary == std::vector<char>(bytes + 1, 'c'));
  REQUIRE(x->get(m, binary.data(), bytes, &again) == FLHAL_OK);
  CHECK(again == bytes);
  CHECK(binary.back() == 'c');
  t.table.module_unload(m);

  flhal_module* loaded = nullptr;
  REQUIRE_FINE(flhal_module_load(device_of(chip()), "opencl-binary", binary.data(), bytes, nullptr, &loaded));
  flhal_stream* s = new_stream(chip());
  flhal_addr a = allocate(s, 256), out = allocate(s, 256);
  std::vector<int> numbers(64, 40);
  upload(s, a, numbers.data(), 256);
  int by = 2;
  REQUIRE_FINE(launch(s, function(loaded, "add"), 1, 64, {memory(a), memory(out), value(by)}));
  CHECK(ints(download(s, out, 256)) == std::vector<int>(64, 42));
  REQUIRE_FINE(flhal_module_release(loaded));
  flhal_free(a), flhal_free(out);

  std::vector<char> garbage(1000, 'g');
  CHECK(flhal_module_load(device_of(chip()), "opencl-binary", garbage.data(), garbage.size(), nullptr, &loaded) == FLHAL_E_BUILD);
  CHECK_THAT(last_error_text(), Contains("CL_INVALID_BINARY (-42)"));
}

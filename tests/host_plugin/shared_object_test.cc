// tests/host_plugin/shared_object_test.cc: the dialect flhal-host-elf-1: functions of shared objects, by described signatures.
#include <omp.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;
using Catch::Contains;

namespace {

const std::string kSignatures = "saxpy(f32, ptr, ptr, first, count); sum(ptr, u32, ptr)";

std::string read(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(bytes.size() > 1000);
  return bytes;
}

struct Loaded {
  flhal_status status;
  flhal_p_module* module = nullptr;
  std::string log;
};
Loaded load(LoadedPlugin& p, const std::string& data, const std::string& signatures, uint64_t log_bytes = 4096) {
  flhal_p_source_v1 source{};
  std::vector<char> log(log_bytes + 1, 'x');
  source.struct_size = sizeof source, source.dialect = FLHAL_DIALECT_HOST_ELF;
  source.data = data.data(), source.bytes = data.size(), source.options = signatures.c_str();
  source.build_log = log.data(), source.build_log_capacity = log_bytes;
  Loaded result;
  result.status = p.table->module_load(p.device, &source, &result.module);
  CHECK(log[log_bytes] == 'x');   // nothing behind the capacity
  if (log_bytes != 0) result.log = log.data();
  return result;
}
std::string refusal(LoadedPlugin& p, const std::string& data, const std::string& signatures = kSignatures) {
  Loaded l = load(p, data, signatures);
  CHECK(l.status == FLHAL_E_BUILD);
  CHECK(l.module == nullptr);
  CHECK(LoadedPlugin::last_error() == "host: module_load: " + l.log);
  return l.log;
}

flhal_p_arg value(const void* at, uint32_t bytes) { return {FLHAL_ARG_VALUE, bytes, at, nullptr, 0, 0}; }
flhal_p_arg memory(const void* at) { return {FLHAL_ARG_MEMORY, 0, nullptr, nullptr, 0, reinterpret_cast<uint64_t>(at)}; }
flhal_status launch(LoadedPlugin& p, flhal_p_module* module, const char* name, std::vector<flhal_p_arg> args, uint64_t groups) {
  flhal_p_function* function = nullptr;
  REQUIRE(p.table->function_get(module, name, &function) == FLHAL_OK);
  flhal_p_launch_v1 l{sizeof l, FLHAL_ST_LAUNCH, nullptr, function, {groups, 1, 1}, {1, 1, 1}, 0, args.data(), static_cast<uint32_t>(args.size()), sizeof(flhal_p_arg)};
  return p.table->launch(p.device, nullptr, &l);
}

}  // namespace

TEST_CASE("shared objects: functions run with values, memory and ranges, from bytes and from a path", "[host_plugin][module][elf]") {
  LoadedPlugin p;
  const bool by_path = GENERATE(false, true);
  Loaded l = load(p, by_path ? std::string(FLHAL_TEST_KERNELS) : read(FLHAL_TEST_KERNELS), "\n saxpy ( f32 , ptr,ptr, first, count ) ;\n\nsum(ptr, u32, ptr);");
  INFO(l.log);
  REQUIRE(l.status == FLHAL_OK);
  const uint32_t n = GENERATE(1u, 2u, 1000u);
  std::vector<float> x(n), y(n, 1);
  std::iota(x.begin(), x.end(), 0.0f);
  const float a = 0.5f;
  REQUIRE(launch(p, l.module, "saxpy", {value(&a, 4), memory(x.data()), memory(y.data())}, n) == FLHAL_OK);
  for (uint32_t i = 0; i < n; ++i) REQUIRE(y[i] == 0.5f * static_cast<float>(i) + 1);   // each element once, whoever did it
  double total = -1;
  REQUIRE(launch(p, l.module, "sum", {memory(y.data()), value(&n, 4), memory(&total)}, 1) == FLHAL_OK);
  CHECK(total == std::accumulate(y.begin(), y.end(), 0.0));
  p.table->module_unload(l.module);
}

TEST_CASE("shared objects: several of one image are apart, and each goes with its module", "[host_plugin][module][elf]") {
  LoadedPlugin p;
  const std::string image = read(FLHAL_TEST_KERNELS);
  Loaded one = load(p, image, "counter(ptr)"), two = load(p, image, "counter(ptr)");
  REQUIRE((one.status == FLHAL_OK && two.status == FLHAL_OK));
  int count = 0;
  for (int expected : {1, 2, 3}) {
    REQUIRE(launch(p, one.module, "counter", {memory(&count)}, 1) == FLHAL_OK);
    CHECK(count == expected);
  }
  REQUIRE(launch(p, two.module, "counter", {memory(&count)}, 1) == FLHAL_OK);
  CHECK(count == 1);   // its own variable
  p.table->module_unload(one.module);
  Loaded again = load(p, image, "counter(ptr)");   // may get the number of the file that was just closed
  REQUIRE(again.status == FLHAL_OK);
  REQUIRE(launch(p, again.module, "counter", {memory(&count)}, 1) == FLHAL_OK);
  CHECK(count == 1);
  p.table->module_unload(two.module);
  p.table->module_unload(again.module);
}

TEST_CASE("shared objects: what is no shared object is refused in words", "[host_plugin][module][elf][hostile]") {
  LoadedPlugin p;
  const std::string image = read(FLHAL_TEST_KERNELS);
  auto changed = [&](size_t at, std::string bytes) { return std::string(image).replace(at, bytes.size(), bytes); };
  CHECK_THAT(refusal(p, "not a library at all, only text"), Contains("are no ELF image"));
  CHECK_THAT(refusal(p, image.substr(0, 40)), Contains("the 40 bytes are no ELF image"));
  CHECK_THAT(refusal(p, ""), Contains("0 bytes"));
  CHECK_THAT(refusal(p, changed(18, std::string("\x28\0", 2))), Contains("for another processor (machine 40"));   // e_machine: arm
  CHECK_THAT(refusal(p, changed(4, "\1")), Contains("32 bits"));
  CHECK_THAT(refusal(p, changed(16, std::string("\1\0", 2))), Contains("no shared object (type 1)"));              // e_type: an object file
  CHECK_THAT(refusal(p, changed(32, std::string(8, '\xff'))), Contains("truncated: its"));                         // e_phoff
  CHECK_THAT(refusal(p, changed(54, std::string("\1\0", 2))), Contains("truncated: its"));                         // e_phentsize
  CHECK_THAT(refusal(p, changed(56, std::string("\0\0", 2))), Contains("nothing that could be loaded"));           // e_phnum
  for (size_t bytes = 64; bytes < image.size(); bytes += 97) {   // cut anywhere: refused, or whole in what is loaded
    Loaded l = load(p, image.substr(0, bytes), kSignatures);
    if (l.status == FLHAL_OK) p.table->module_unload(l.module);
    else CHECK_THAT(l.log, Contains("truncated"));
  }
  CHECK_THAT(refusal(p, "/no/such/file.so"), Contains("/no/such/file.so: No such file or directory"));
  CHECK_THAT(refusal(p, "/"), Contains("/: it is no file"));
  CHECK_THAT(refusal(p, "/proc/self/exe", "main()"), Contains("main") || Contains("executable"));
  CHECK_THAT(refusal(p, read(FLHAL_TEST_UNDEFINED), "f()"), Contains("nobody_has_this"));   // the loader's own words
}

TEST_CASE("shared objects: what is no signature is refused in words", "[host_plugin][module][elf][hostile]") {
  LoadedPlugin p;
  const std::string image = read(FLHAL_TEST_KERNELS);
  auto [signature, sentence] = GENERATE(table<std::string, std::string>({
      {"", "no function is described"},
      {" ; \n", "no function is described"},
      {"saxpy", "has no list of types in parentheses"},
      {"saxpy(f32", "has no list of types in parentheses"},
      {"(f32)", "does not begin with the name of a C function"},
      {"9lives(f32)", "does not begin with the name of a C function"},
      {"a b(f32)", "does not begin with the name of a C function"},
      {"saxpy(f32, float)", "has the type \"float\"; valid are i8, u8, i16"},
      {"saxpy(f32,)", "has the type \"\""},
      {"saxpy(,)", "has the type \"\""},
      {"saxpy(f32, ptr, first)", "needs first and count once each, or neither"},
      {"saxpy(first, count, count)", "needs first and count once each, or neither"},
      {"no_such(f32)", "the object exports no function \"no_such\""},
      {"sum(ptr, u32, ptr); hidden(ptr)", "the object exports no function \"hidden\""},
  }));
  CHECK_THAT(refusal(p, image, signature), Contains(sentence));
  std::string many = "sum(ptr";
  for (int i = 0; i < 64; ++i) many += ", ptr";
  CHECK_THAT(refusal(p, image, many + ")"), Contains("more than 64 types"));
  CHECK_THAT(refusal(p, image, std::string(100000, '(') + ")"), Contains("does not begin"));
}

TEST_CASE("shared objects: a log ends within its capacity", "[host_plugin][module][elf][hostile]") {
  LoadedPlugin p;
  for (uint64_t bytes : {0, 1, 5}) {
    Loaded l = load(p, "no library", kSignatures, bytes);
    CHECK(l.status == FLHAL_E_BUILD);
    CHECK(l.log.size() == (bytes == 0 ? 0 : bytes - 1));
  }
}

TEST_CASE("shared objects: a launch that is not what the signature says is refused, and runs nothing", "[host_plugin][module][elf][hostile]") {
  LoadedPlugin p;
  Loaded l = load(p, FLHAL_TEST_KERNELS, kSignatures);
  REQUIRE(l.status == FLHAL_OK);
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  const float a = 2;
  const double wide = 2;
  auto refused = [&](const char* name, std::vector<flhal_p_arg> args, uint64_t groups) {
    CHECK(launch(p, l.module, name, std::move(args), groups) == FLHAL_E_INVALID);
    CHECK(y[0] == 0);
    return LoadedPlugin::last_error();
  };
  CHECK(refused("saxpy", {value(&a, 4), memory(x)}, 4) == "host: launch of saxpy: 2 arguments are given; its signature has 3");
  CHECK(refused("saxpy", {value(&wide, 8), memory(x), memory(y)}, 4) == "host: launch of saxpy: argument 0 is a value of 8 bytes; its signature says f32");
  CHECK(refused("saxpy", {memory(x), memory(x), memory(y)}, 4) == "host: launch of saxpy: argument 0 is memory; its signature says f32");
  CHECK(refused("saxpy", {value(&a, 4), memory(x), value(&wide, 8)}, 4) == "host: launch of saxpy: argument 2 is a value of 8 bytes; its signature says ptr");
  const uint32_t n = 4;
  CHECK_THAT(refused("sum", {memory(x), value(&n, 4), memory(y)}, 2), Contains("2 groups are to run; a function that takes no first and count is called once"));
  flhal_p_function* function = nullptr;
  CHECK(p.table->function_get(l.module, "counter", &function) == FLHAL_E_NOT_FOUND);   // exported, not described
  CHECK(LoadedPlugin::last_error() == "host: the module has no function \"counter\" among its 2 that were described");
  p.table->module_unload(l.module);
}

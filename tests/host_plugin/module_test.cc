// tests/host_plugin/module_test.cc: the dialect flhal-host-1: loading, finding, launching.
#include <omp.h>

#include <atomic>
#include <set>
#include <thread>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;

namespace {

std::atomic<int> calls;
std::atomic<int> threads_seen;
std::thread::id first_thread;

// argv: counts (one per group), a value that is added.
void count_groups(const void* const* argv, uint64_t first, uint64_t count) {
  ++calls;
  if (std::this_thread::get_id() != first_thread) ++threads_seen;
  auto* counts = const_cast<int*>(static_cast<const int*>(argv[0]));
  for (uint64_t g = first; g < first + count; ++g) counts[g] += *static_cast<const int*>(argv[1]);
}
void nothing(const void* const*, uint64_t, uint64_t) {}

const flhal_host_function kFunctions[] = {{"zebra", nothing}, {"count_groups", count_groups}, {"alpha", nothing}};
const flhal_host_module kModule = {sizeof kModule, 3, kFunctions};

flhal_p_module* load(LoadedPlugin& p) {
  flhal_p_source_v1 source{};
  source.struct_size = sizeof source, source.dialect = FLHAL_DIALECT_HOST, source.data = &kModule;
  flhal_p_module* module = nullptr;
  REQUIRE(p.table->module_load(p.device, &source, &module) == FLHAL_OK);
  return module;
}

}  // namespace

TEST_CASE("host plugin: a launch covers every group once, and one group stays in the caller", "[host_plugin][module]") {
  LoadedPlugin p;
  flhal_p_module* module = load(p);
  flhal_p_function* function = nullptr;
  REQUIRE(p.table->function_get(module, "count_groups", &function) == FLHAL_OK);
  const uint64_t groups = GENERATE(1u, 2u, 7u, 1000u);
  std::vector<int> counts(groups, 0);
  int three = 3;
  flhal_p_arg args[2] = {{FLHAL_ARG_MEMORY, 0, nullptr, nullptr, 0, reinterpret_cast<uint64_t>(counts.data())},
                         {FLHAL_ARG_VALUE, 4, &three, nullptr, 0, 0}};
  flhal_p_launch_v1 launch{sizeof launch, FLHAL_ST_LAUNCH, nullptr, function, {groups, 1, 1}, {1, 1, 1}, 0, args, 2, sizeof(flhal_p_arg)};
  calls = 0, threads_seen = 0, first_thread = std::this_thread::get_id();
  REQUIRE(p.table->launch(p.device, nullptr, &launch) == FLHAL_OK);
  CHECK(std::count(counts.begin(), counts.end(), 3) == static_cast<int64_t>(groups));
  if (groups == 1) CHECK((calls == 1 && threads_seen == 0));
  CHECK(calls <= omp_get_max_threads());

  // omp_set_num_threads, which torch.set_num_threads calls, is obeyed.
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  calls = 0, threads_seen = 0;
  REQUIRE(p.table->launch(p.device, nullptr, &launch) == FLHAL_OK);
  CHECK((calls == 1 && threads_seen == 0));
  omp_set_num_threads(before);
  p.table->module_unload(module);
}

TEST_CASE("host plugin: memory arguments may come as slab and offset", "[host_plugin][module]") {
  LoadedPlugin p;
  flhal_p_module* module = load(p);
  flhal_p_function* function = nullptr;
  REQUIRE(p.table->function_get(module, "count_groups", &function) == FLHAL_OK);
  flhal_p_slab_v1 slab{};
  slab.struct_size = sizeof slab, slab.bytes = 4096;
  REQUIRE(p.table->memory_alloc(p.device, &slab) == FLHAL_OK);
  int one = 1;
  flhal_p_arg args[2] = {{FLHAL_ARG_MEMORY, 0, nullptr, slab.memory, 64, 0}, {FLHAL_ARG_VALUE, 4, &one, nullptr, 0, 0}};
  flhal_p_launch_v1 launch{sizeof launch, FLHAL_ST_LAUNCH, nullptr, function, {2, 1, 1}, {1, 1, 1}, 0, args, 2, sizeof(flhal_p_arg)};
  REQUIRE(p.table->launch(p.device, nullptr, &launch) == FLHAL_OK);
  CHECK(static_cast<int*>(slab.host)[16] == 1);
  CHECK(static_cast<int*>(slab.host)[17] == 1);
  CHECK(static_cast<int*>(slab.host)[18] == 0);
  p.table->memory_free(p.device, slab.memory);

  args[1].kind = FLHAL_ARG_LOCAL;
  CHECK(p.table->launch(p.device, nullptr, &launch) == FLHAL_E_UNSUPPORTED);
  p.table->module_unload(module);
}

TEST_CASE("host plugin: other dialects and unknown functions are refused with their names", "[host_plugin][module]") {
  LoadedPlugin p;
  flhal_p_source_v1 source{};
  char log[16] = "old";
  source.struct_size = sizeof source, source.dialect = "opencl-c-1.2", source.data = &kModule;
  source.build_log = log, source.build_log_capacity = sizeof log;
  flhal_p_module* module = nullptr;
  CHECK(p.table->module_load(p.device, &source, &module) == FLHAL_E_UNSUPPORTED);
  CHECK(log[0] == 0);
  CHECK(LoadedPlugin::last_error() == "host: module_load got the dialect \"opencl-c-1.2\"; this device takes \"flhal-host-1\" and \"flhal-host-elf-1\"");
  module = load(p);
  flhal_p_function* function = nullptr;
  CHECK(p.table->function_get(module, "beta", &function) == FLHAL_E_NOT_FOUND);
  CHECK(LoadedPlugin::last_error() == "host: the module has no function \"beta\" among its 3");
  for (const char* name : {"alpha", "count_groups", "zebra"}) CHECK(p.table->function_get(module, name, &function) == FLHAL_OK);
  p.table->module_unload(module);
}

// tests/layers/stats_test.cc: the counts, and turning layers on and off while the program runs.
#include <thread>

#include "layers/frame.h"
#include "layers/layers_world.h"
#include "layers/stats.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("layers: off leaves core's table with the plugin's own slots, on and off again while running", "[layers]") {
  Device* device = chip("ram");
  const auto wrapped = device->plugin->table.copy;
  {
    Set layers("layers", "none");
    const auto own = device->plugin->table.copy;
    CHECK(own != wrapped);
    CHECK((own == layers::frame(0).table.copy || own == layers::frame(1).table.copy));
    Set again("layers", "stats");
    CHECK(device->plugin->table.copy == wrapped);
    CHECK(device->plugin->table.launch != nullptr);
  }
  CHECK(device->plugin->table.copy == wrapped);
}

TEST_CASE("stats: counts calls, failures, time and bytes per slot of each plugin", "[layers]") {
  Device* device = chip("ram");
  Set layers("layers", "stats");
  reset_layers();
  uint64_t a = allocate(device->default_stream, 5000);
  std::vector<uint8_t> bytes(5000, 3);
  REQUIRE_OK(copy_bytes(device->default_stream, a, number(bytes.data()), 5000, 0));
  REQUIRE_OK(copy_bytes(device->default_stream, number(bytes.data()), a, 1000, 0));
  const uint8_t zero = 0;
  REQUIRE_OK(fill_bytes(device->default_stream, a, 4096, &zero, 1));
  {
    Set rules("faults", "fail=ram/fill:1:E_INVALID");
    Set faulty("layers", "stats,fault");
    CHECK(fill_bytes(device->default_stream, a, 4096, &zero, 1).code() == FLHAL_E_INVALID);
  }
  REQUIRE_OK(pool_free(a));
  LayersReport report;
  const cJSON *copies = report.row("stats", "slot", "copy"), *fills = report.row("stats", "slot", "fill");
  CHECK(LayersReport::text(copies, "plugin") == "ram");
  CHECK(LayersReport::number(copies, "calls") == 2);
  CHECK(LayersReport::number(copies, "bytes") == 6000);
  CHECK(LayersReport::number(copies, "failures") == 0);
  CHECK(LayersReport::number(copies, "ms") > 0);
  CHECK(LayersReport::number(copies, "ms_longest") <= LayersReport::number(copies, "ms"));
  CHECK(LayersReport::number(fills, "calls") == 2);
  CHECK(LayersReport::number(fills, "failures") == 1);
  CHECK(LayersReport::number(fills, "bytes") == 4096);
  const std::string table = layers::stats_table();
  CHECK(table.find("ram          copy") != std::string::npos);
  reset_layers();
  CHECK(LayersReport().row("stats", "slot", "copy") == nullptr);
}

TEST_CASE("stats: loses no call when threads call at once", "[layers]") {
  Device* device = chip("ram");
  Set layers("layers", "stats");
  uint64_t a = allocate(device->default_stream, 4096);
  reset_layers();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const uint8_t zero = 0;
      for (int i = 0; i < 500; ++i) (void)fill_bytes(device->default_stream, a, 64, &zero, 1);
    });
  for (auto& t : threads) t.join();
  LayersReport report;
  CHECK(LayersReport::number(report.row("stats", "slot", "fill"), "calls") == 2000);
  REQUIRE_OK(pool_free(a));
}

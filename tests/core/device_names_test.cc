// tests/core/device_names_test.cc: order, names, what a user may type, and the visibility filter.
#include "core/device_names.h"

#include <catch2/catch.hpp>

using namespace flhal;

namespace {

PluginDescription plugin(const std::string& id, std::vector<DeviceDescription> devices) {
  PluginDescription p;
  p.id = id;
  p.devices = std::move(devices);
  return p;
}

DeviceDescription chip(const std::string& name, uint32_t device_class, uint8_t uuid, const std::string& pci = "") {
  DeviceDescription d;
  d.chip = name;
  d.device_class = device_class;
  d.uuid[15] = uuid;
  d.pci_address = pci;
  return d;
}

std::string find(const std::vector<ListedDevice>& devices, const std::string& typed) {
  uint32_t index = 0;
  Refusal refusal = find_listed(devices, typed, &index);
  return refusal ? "! " + refusal.sentence() : devices[index].name;
}

}  // namespace

TEST_CASE("names: class, plugin, PCI address and uuid make the order, whatever order the plugins came in", "[core][names][LOAD-06]") {
  // Goal: an emulated or host chip never goes before a real one. Method: every permutation of four plugins.
  PluginDescription a = plugin("b.vendor", {chip("npu", 0, 3, "0000:02:00.0"), chip("npu", 0, 4, "0000:01:00.0"), chip("npu", 0, 9, "0000:01:00.0")});
  PluginDescription b = plugin("a.mock", {chip("chip_b", 4, 2), chip("chip_a", 4, 1)});
  PluginDescription c = plugin("a.host", {chip("cpu", 2, 5)});
  PluginDescription d = plugin("z.gpu", {chip("gpu", 1, 6), chip("strange", 4711, 8), chip("cl_cpu", 3, 7)});
  std::vector<const PluginDescription*> order = {&a, &b, &c, &d};
  std::sort(order.begin(), order.end());
  do {
    CHECK(name_list(list_devices(order)) == "npu, npu:1, npu:2, gpu, cpu, cl_cpu, chip_a, chip_b, strange");
    CHECK(list_devices(order)[0].plugin_device == 1);
    CHECK(list_devices(order)[1].plugin_device == 2);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("names: two plugins with one chip name are told apart, and the bare name is refused with both ways", "[core][names]") {
  PluginDescription a = plugin("acme", {chip("gpu", 1, 1), chip("gpu", 1, 2)}), b = plugin("opencl", {chip("gpu", 1, 3), chip("cpu", 3, 4)});
  auto all = list_devices({&a, &b});
  CHECK(name_list(all) == "acme/gpu, acme/gpu:1, opencl/gpu, cpu");
  CHECK(find(all, "gpu") == "! several plugins have a chip called 'gpu'; say which: acme/gpu, acme/gpu:1, opencl/gpu");
  CHECK(find(all, "gpu:1").rfind("! several plugins", 0) == 0);
  CHECK(find(all, "acme/gpu") == "acme/gpu");
  CHECK(find(all, "acme/gpu:0") == "acme/gpu");
  CHECK(find(all, "acme/gpu:1") == "acme/gpu:1");
  CHECK(find(all, "opencl/cpu") == "cpu");              // legal without a clash too
  CHECK(find(all, "cpu:0") == "cpu");
  CHECK(find(all, "2") == "opencl/gpu");
  CHECK(find(all, "uuid:00000000-0000-0000-0000-000000000003") == "opencl/gpu");
  CHECK(find(all, " cpu ") == "cpu");
  CHECK(find(all, "cpu:1") == "! there is no device 'cpu:1'; the devices are acme/gpu, acme/gpu:1, opencl/gpu, cpu");
  CHECK(find(all, "4") == "! there is no device '4': 4 devices are visible, counted from 0; the devices are acme/gpu, acme/gpu:1, opencl/gpu, cpu");
  CHECK(find(all, "uuid:12").find("the uuids are uuid:0000") != std::string::npos);
  for (const char* bad : {"", "Gpu", "acme/", "acme/cpu", "/gpu", "gpu:", "gpu:x", "gpu:-1", "uuid:", "99999999999999999999"}) {
    INFO(bad);
    CHECK(find(all, bad)[0] == '!');
  }
}

TEST_CASE("names: one uuid behind two plugins is ambiguous; an unknown uuid matches nobody", "[core][names]") {
  PluginDescription a = plugin("acme", {chip("gpu_a", 1, 7), chip("gpu_z", 1, 0)}), b = plugin("opencl", {chip("gpu_b", 1, 7)});
  auto all = list_devices({&a, &b});
  CHECK(find(all, "uuid:00000000000000000000000000000007").find("is one chip behind 2 plugins; name it by plugin: gpu_a or gpu_b") != std::string::npos);
  CHECK(find(all, "uuid:00000000000000000000000000000000")[0] == '!');
}

TEST_CASE("LOAD-06 visible devices: filters and orders, keeps names, and a typo lists the valid ones", "[core][names][LOAD-06]") {
  PluginDescription a = plugin("acme", {chip("npu", 0, 1), chip("npu", 0, 2)}), b = plugin("mock", {chip("chip_a", 4, 3)});
  auto all = list_devices({&a, &b});
  auto visible = [&](const std::string& text) {
    std::vector<ListedDevice> out = all;
    Refusal refusal = filter_visible(all, text, &out);
    if (refusal) CHECK(out.empty());
    return refusal ? "! " + refusal.sentence() : name_list(out);
  };
  CHECK(visible("") == "npu, npu:1, chip_a");
  CHECK(visible("  ") == "npu, npu:1, chip_a");
  CHECK(visible("none") == "");
  CHECK(visible("chip_a, npu:1") == "chip_a, npu:1");   // npu:1 stays npu:1 though npu is hidden
  CHECK(visible("uuid:00000000000000000000000000000002") == "npu:1");
  CHECK(visible("2,0") == "chip_a, npu");
  CHECK(visible("chip_a,,") == "chip_a");
  CHECK(visible("chip_c") == "! there is no device 'chip_c'; the devices are npu, npu:1, chip_a");
  CHECK(visible("npu,npu:0") == "! 'npu:0' names npu a second time; name each device once");
}

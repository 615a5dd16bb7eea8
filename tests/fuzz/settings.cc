// tests/fuzz/settings.cc: what users type: settings, device names, lists of visible devices, versions.
//
// An input is lines "<key>=<value>"; keys that are no setting name one of the parsers below.
#include "bytes.h"
#include "core/abi_range.h"
#include "core/config.h"
#include "core/config_values.h"
#include "core/device_names.h"

using namespace flhal;
using namespace flhal::fuzz;

namespace {

// Two makers that share a chip name, a chip twice, one without a uuid.
const std::vector<ListedDevice>& devices() {
  static const auto& plugins = *[] {
    auto* all = new std::vector<PluginDescription>(2);
    for (size_t p = 0; p < 2; ++p) {
      PluginDescription& plugin = (*all)[p];
      plugin.id = p == 0 ? "acme" : "org.example.chip";
      for (const char* chip : {"chip_a", "chip_a", p == 0 ? "lone" : "other"}) {
        DeviceDescription d;
        d.chip = chip;
        d.device_class = static_cast<uint32_t>(p * 2);
        if (chip[0] == 'c') d.uuid[15] = static_cast<uint8_t>(16 * p + plugin.devices.size() + 1);
        plugin.devices.push_back(d);
      }
    }
    return all;
  }();
  static const auto& listed = *new std::vector<ListedDevice>(list_devices({&plugins[0], &plugins[1]}));
  return listed;
}

void find(const std::string& typed) {
  uint32_t index = ~0u;
  Refusal refusal = find_listed(devices(), typed, &index);
  FLHAL_MUST(refusal ? !refusal.sentence().empty() : index < devices().size());
}

void filter(const std::string& value) {
  std::vector<ListedDevice> chosen;
  Refusal refusal = filter_visible(devices(), value, &chosen);
  FLHAL_MUST(chosen.size() <= devices().size() && (!refusal || chosen.empty()));
  for (const ListedDevice& d : chosen) {       // each name still means one of those that were chosen, and only one
    uint32_t index = ~0u;
    FLHAL_MUST(!find_listed(chosen, d.name, &index) && chosen[index].name == d.name);
  }
}

void set(const std::string& key, const std::string& value) {
  if (config_set(key, value).ok()) {
    const bool of_part_taken_back = key.find('@') != std::string::npos && trimmed(value) == "default";
    Result<std::string> now = config_get(key);
    FLHAL_MUST(now.ok());
    FLHAL_MUST(of_part_taken_back || config_set(key, *now).ok());   // what get gives, set takes
  } else {
    FLHAL_MUST(!last_error_text().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  for (int lines = 0; lines < 16 && !bytes.empty(); ++lines) {
    std::string line = bytes.until('\n');
    const size_t equal = line.find('=');
    const std::string key = line.substr(0, equal), value = equal == std::string::npos ? "" : line.substr(equal + 1);
    if (key == "find") {
      find(value);
    } else if (key == "visible") {
      filter(value);
    } else if (key == "version") {
      if (auto v = parse_abi_version(value)) FLHAL_MUST(v->major <= 65535 && v->minor <= 65535);
    } else if (key == "pool") {
      if (auto limit = parse_pool_limit(value)) FLHAL_MUST((limit->bytes != 0) != (limit->share > 0 && limit->share <= 1));
    } else {
      set(key, value);
    }
  }
  for (const std::string& device : config_pool_limit_devices()) (void)config_set("memory_pool_size@" + device, "default");
  (void)config_set("log_level", "error");
  return 0;
}

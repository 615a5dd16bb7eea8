// src/tools/flhal_info.cc: prints the devices, what each can do, the plugins, and what did not load. Uses the public ABI only.
//
// Usage: flhal-info [--json]
// Exit code: 0 when every candidate loaded and there is a device, 1 when there is no device, 2 when there are devices but
// something was refused or a setting is wrong, 64 for a wrong argument.
#include <cjson/cJSON.h>
#include <flhal/base.h>
#include <flhal/device.h>
#include <flhal/plugin.h>
#include <flhal/report.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace {

std::string report(const char* which) {
  std::string text;
  flhal_report(which, [](void* ctx, const char* utf8, uint64_t n) { static_cast<std::string*>(ctx)->append(utf8, n); }, &text);
  return text;
}

std::string field(const cJSON* object, const char* key) {
  const cJSON* value = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(value) ? value->valuestring : "";
}

std::string gigabytes(uint64_t bytes) {
  char text[32];
  snprintf(text, sizeof text, "%.4gGB", static_cast<double>(bytes) / 1073741824.0);
  return text;
}

// What a device can do, in words: "native operators, kernels (opencl-c-1.2), streams, addresses, float64".
std::string abilities(const flhal_device_info& info) {
  const struct { bool has; std::string text; } all[] = {
      {info.has_ops != 0, "native operators"},
      {info.has_kernels != 0, std::string("kernels (") + info.dialects + ")"},
      {info.is_asynchronous != 0, "streams"},
      {(info.caps & FLHAL_CAP_EVENT_HOST_SIGNAL) != 0, "waits for other makers"},
      {(info.caps & FLHAL_CAP_COMPUTE_COPY_OVERLAP) != 0, "copies beside kernels"},
      {(info.caps & FLHAL_CAP_ADDRESSES) != 0, "addresses"},
      {(info.caps & FLHAL_CAP_HOST_VISIBLE) != 0, "memory the host sees"},
      {(info.caps & FLHAL_CAP_FP64) != 0, "float64"},
      {(info.caps & FLHAL_CAP_INT64) != 0, "int64"},
  };
  std::string text;
  for (const auto& row : all)
    if (row.has) text += (text.empty() ? "" : ", ") + row.text;
  return text.empty() ? "memory and copies; core computes on the host" : text;
}

void print_devices() {
  const uint32_t count = flhal_device_count();
  printf("%s\n", count ? "Detected devices:" : "Detected devices: none");
  for (uint32_t i = 0; i < count; ++i) {
    flhal_device_info info{};
    info.struct_size = sizeof info;
    if (flhal_device_get_info(flhal_device_at(i), &info) != FLHAL_OK) continue;
    printf("[%u] %s: %s", i, info.name, gigabytes(info.memory_bytes).c_str());
    if (*info.compute_capability) printf(", compute_capability=%s", info.compute_capability);
    printf(", %s%s%s (plugin %s %s)\n", info.vendor, *info.vendor ? " " : "", info.product, info.plugin, info.plugin_version);
    printf("    can: %s\n", abilities(info).c_str());
  }
}

void print_plugins(const cJSON* load) {
  const cJSON* item;
  bool first = true;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(load, "plugins")) {
    if (field(item, "status") != "loaded") continue;
    if (first) printf("Plugins:\n");
    first = false;
    const cJSON* devices = cJSON_GetObjectItemCaseSensitive(item, "devices");
    std::string library = field(item, "library");
    printf("%s %s: %s (ABI %s, devices: %d)\n", field(item, "id").c_str(), field(item, "version").c_str(),
           library.empty() ? field(item, "path").c_str() : library.c_str(), field(item, "abi").c_str(), cJSON_IsNumber(devices) ? devices->valueint : 0);
  }
}

// Returns whether anything is wrong.
bool print_problems(const cJSON* load) {
  bool wrong = false;
  const cJSON* item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(load, "plugins")) {
    std::string status = field(item, "status");
    if (status == "loaded") continue;
    printf("%s: %s\n  reason: %s\n", status == "refused" ? "Not loaded" : "Skipped", field(item, "path").c_str(), field(item, "reason").c_str());
    if (std::string remedy = field(item, "remedy"); !remedy.empty()) printf("  remedy: %s\n", remedy.c_str());
    wrong = wrong || status == "refused";
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(load, "notes")) {
    const bool error = field(item, "level") == "error";
    printf("%s: %s\n", error ? "Error" : "Note", field(item, "reason").c_str());
    if (std::string remedy = field(item, "remedy"); !remedy.empty()) printf("  remedy: %s\n", remedy.c_str());
    wrong = wrong || error;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--json")) {
      json = true;
    } else {
      bool help = !strcmp(argv[i], "--help");
      fprintf(help ? stdout : stderr, "%susage: flhal-info [--json]\nPrints the devices flhal finds, what they can do, the plugins, and what did not load, why, and what to do.\n",
              help ? "" : "flhal-info: unknown argument\n");
      return help ? 0 : 64;
    }
  }
  const uint32_t count = flhal_device_count();
  char text[16384] = "";
  if (count == 0) flhal_last_error(text, sizeof text, nullptr);
  std::string load_text = report("load");
  std::unique_ptr<cJSON, decltype(&cJSON_Delete)> load(cJSON_Parse(load_text.c_str()), cJSON_Delete);
  bool wrong = false;
  if (json) {
    std::unique_ptr<cJSON, decltype(&cJSON_Delete)> devices(cJSON_Parse(report("devices").c_str()), cJSON_Delete);
    char* list = cJSON_Print(cJSON_GetObjectItemCaseSensitive(devices.get(), "devices"));
    printf("{\"devices\": %s, \"load\": %s}\n", list ? list : "[]", load_text.c_str());
    cJSON_free(list);
    const cJSON* item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(load.get(), "plugins")) wrong = wrong || field(item, "status") == "refused";
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(load.get(), "notes")) wrong = wrong || field(item, "level") == "error";
  } else {
    print_devices();
    print_plugins(load.get());
    wrong = print_problems(load.get());
    if (count == 0) printf("%s\n", text);
  }
  return count == 0 ? 1 : wrong ? 2 : 0;
}

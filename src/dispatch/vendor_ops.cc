// src/dispatch/vendor_ops.cc: the rows of vendor ops, made when first asked for.
//
// A row belongs to a name, since plugins that share a name share its meaning; which plugin describes it is remembered apart, so
// that the op is unknown on the chips of every other one.
#include "dispatch/vendor_ops.h"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "core/json_text.h"

namespace flhal {
namespace {

// A list without an end is a plugin's fault (FLP-090), and must not be ours.
constexpr uint32_t kMostOps = 65536;

bool describe(Plugin& plugin, uint32_t i, const char** name, const char** schema) {
  *name = *schema = nullptr;
  auto serial = plugin.lock();
  return plugin_call(plugin.ops.op_describe, plugin.handle, i, name, schema) == FLHAL_OK && *name != nullptr;
}

}  // namespace

const opset::OpDef* vendor_op(Device* device, const char* name) {
  if (!device || !device->plugin->has_ops || !device->open().ok()) return nullptr;   // until then the table may be stubs
  static std::mutex& mutex = *new std::mutex;
  static auto& rows = *new std::map<std::string, opset::OpDef, std::less<>>;   // never destroyed: plans point to the rows
  static auto& described_by = *new std::set<std::pair<const Plugin*, const opset::OpDef*>>;
  Plugin& plugin = *device->plugin;
  {
    std::lock_guard lock(mutex);
    auto known = rows.find(std::string_view(name));
    if (known != rows.end() && described_by.contains({&plugin, &known->second})) return &known->second;
  }
  bool found = false;
  const char *described, *schema;
  for (uint32_t i = 0; i < kMostOps && !found && describe(plugin, i, &described, &schema); ++i)
    found = std::string_view(described) == name;
  if (!found) return nullptr;
  std::lock_guard lock(mutex);
  auto [row, fresh] = rows.try_emplace(name);
  if (fresh) {
    row->second.number = opset::kMaxOpNumber + static_cast<uint32_t>(rows.size());
    row->second.name = row->first.c_str();
  }
  described_by.emplace(&plugin, &row->second);
  return &row->second;
}

std::vector<VendorOpText> vendor_op_texts(Device* device) {
  std::vector<VendorOpText> all;
  if (!device->plugin->has_ops || device->pool == nullptr) return all;
  const char *name, *schema;
  for (uint32_t i = 0; i < kMostOps && describe(*device->plugin, i, &name, &schema); ++i) all.push_back({name, schema ? schema : ""});
  return all;
}

std::string vendor_op_names(Device* device) {
  std::string names;
  for (const VendorOpText& op : vendor_op_texts(device)) names += (names.empty() ? "" : ", ") + op.name;
  return names;
}

std::string vendor_ops_json() {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "vendor_ops");
  cJSON* list = cJSON_AddArrayToObject(root.get(), "devices");
  for (Device* device : devices()) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "device", device->name);
    json_add(item, "plugin", device->plugin->id);
    json_add_bool(item, "open", device->pool != nullptr);
    cJSON* ops = cJSON_AddArrayToObject(item, "ops");
    for (const VendorOpText& op : vendor_op_texts(device)) {
      cJSON* row = cJSON_CreateObject();
      cJSON_AddItemToArray(ops, row);
      json_add(row, "name", op.name);
      json_add(row, "schema", op.schema);
    }
  }
  return json_print(root.get(), true);
}

}  // namespace flhal

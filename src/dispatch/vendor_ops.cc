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

namespace flhal {

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
  for (uint32_t i = 0; i < 65536 && !found; ++i) {
    const char *described = nullptr, *schema = nullptr;
    auto serial = plugin.lock();
    if (plugin_call(plugin.ops.op_describe, plugin.handle, i, &described, &schema) != FLHAL_OK || !described) break;
    found = std::string_view(described) == name;
  }
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

}  // namespace flhal

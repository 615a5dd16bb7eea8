// src/dispatch/vendor_ops.cc: the rows of vendor ops, made when first asked for.
#include "dispatch/vendor_ops.h"

#include <map>
#include <mutex>
#include <string>

namespace flhal {

const opset::OpDef* vendor_op(Device* device, const char* name) {
  if (!device || !device->plugin->has_ops) return nullptr;
  static std::mutex& mutex = *new std::mutex;
  static auto& rows = *new std::map<std::string, opset::OpDef>;   // never destroyed: plans point to the rows
  {
    std::lock_guard lock(mutex);
    auto known = rows.find(name);
    if (known != rows.end()) return &known->second;
  }
  Plugin& plugin = *device->plugin;
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
  return &row->second;
}

}  // namespace flhal

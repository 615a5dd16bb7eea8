// src/dispatch/vendor_ops.h: ops that only a plugin knows, by name. They get a number of this process and a row without
// rules: core checks bounds, devices and overlaps, the plugin the rest.
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "dispatch/opset/opset.h"

namespace flhal {

// nullptr when the device's plugin describes no op of that name.
const opset::OpDef* vendor_op(Device* device, const char* name);
// Name and schema of every op the device's plugin describes, in its order; empty until the device is open, since then the plugin
// has been started.
struct VendorOpText {
  std::string name, schema;
};
std::vector<VendorOpText> vendor_op_texts(Device* device);
std::string vendor_op_names(Device* device);   // "a, b" for messages; "" when there are none
std::string vendor_ops_json();                 // the report "vendor_ops"
inline bool is_vendor_op(const opset::OpDef& def) { return def.number >= opset::kMaxOpNumber; }

}  // namespace flhal

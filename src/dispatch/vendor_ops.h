// src/dispatch/vendor_ops.h: ops that only a plugin knows, by name. They get a number of this process and a row without
// rules: core checks bounds, devices and overlaps, the plugin the rest.
#pragma once

#include "core/device.h"
#include "dispatch/opset/opset.h"

namespace flhal {

// nullptr when the device's plugin describes no op of that name.
const opset::OpDef* vendor_op(Device* device, const char* name);
inline bool is_vendor_op(const opset::OpDef& def) { return def.number >= opset::kMaxOpNumber; }

}  // namespace flhal

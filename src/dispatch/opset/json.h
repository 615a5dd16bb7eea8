// src/dispatch/opset/json.h: the op set as JSON, for flhal-opset and for the report "ops".
#pragma once

#include <string>

namespace flhal::opset {

std::string json();

}  // namespace flhal::opset

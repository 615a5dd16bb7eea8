// csrc/ops/registry.h: the overloads that rows of aten_map.def answer.
#pragma once

#include "csrc/ops/frame.h"

namespace torch_fl {

// The entry of an overload ("aten::add.Tensor"); nullptr when no row answers it. Entries live as long as the process.
const Entry* find_entry(const std::string& name);

// Overloads that hot.cc registers by hand, with an unboxed kernel in front of the entry.
bool is_hot(const std::string& name);

}  // namespace torch_fl

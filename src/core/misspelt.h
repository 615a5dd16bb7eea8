// src/core/misspelt.h: environment variables of ours that are nearly, but not quite, one that is read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flhal {

// How many single letters must be put in, taken out, changed or swapped with their neighbour to make `a` of `b`.
size_t letters_apart(std::string_view a, std::string_view b);

// Variables that begin with FLHAL_ or TORCH_FL_, are not in `known` and are one or two letters from one that is: name and
// the name that was probably meant. Others are left alone: a maker's plugin may read variables of its own.
std::vector<std::pair<std::string, std::string>> misspelt_variables(const char* const* environment, const std::vector<std::string>& known);

}  // namespace flhal

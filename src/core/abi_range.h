// src/core/abi_range.h: do two ranges of ABI minors meet, and in which minor. Versions are compared as numbers, never as
// text: 1.9 is older than 1.10.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/refusal.h"

namespace flhal {

struct AbiVersion {
  uint32_t major = 0, minor = 0;
};
std::optional<AbiVersion> parse_abi_version(std::string_view text);  // "1.10"; nothing else

struct AbiRange {       // minors of one major
  uint32_t oldest = 0, newest = 0;
};

// The highest minor both know, when each accepts the other. `who` is the plugin's id, for the sentence.
Refusal negotiate_abi(AbiRange core, AbiRange plugin, std::string_view who, uint32_t* out_minor);

// The sentence for a plugin of another major.
Refusal other_major(uint32_t plugin_major, std::string_view who);

// "pip install --upgrade torch-fl torch-fl-plugin-<id>"
std::string align_command(std::string_view plugin_id);

}  // namespace flhal

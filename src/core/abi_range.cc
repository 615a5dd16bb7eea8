// src/core/abi_range.cc: negotiation of the vendor ABI's minor.
#include "core/abi_range.h"

#include <flhal/plugin.h>

#include <algorithm>

#include "core/config_values.h"

namespace flhal {
namespace {

std::string minors(AbiRange range) {
  return range.oldest == range.newest ? fmt::format("{}.{}", FLHAL_PLUGIN_ABI_MAJOR, range.newest)
                                      : fmt::format("{}.{} to {}.{}", FLHAL_PLUGIN_ABI_MAJOR, range.oldest,
                                                    FLHAL_PLUGIN_ABI_MAJOR, range.newest);
}

}  // namespace

std::optional<AbiVersion> parse_abi_version(std::string_view text) {
  size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  auto major = parse_integer(text.substr(0, dot), 0, 65535);
  auto minor = parse_integer(text.substr(dot + 1), 0, 65535);
  if (!major || !minor) return std::nullopt;
  return AbiVersion{static_cast<uint32_t>(*major), static_cast<uint32_t>(*minor)};
}

std::string align_command(std::string_view plugin_id) {
  return fmt::format("pip install --upgrade torch-fl torch-fl-plugin-{}", plugin_id.empty() ? "<id>" : plugin_id);
}

Refusal other_major(uint32_t plugin_major, std::string_view who) {
  return refuse(FLHAL_E_ABI,
                fmt::format("plugin {} was built for the plugin ABI {}.x and this flhal speaks {}.{}", who.empty() ? "(no id)" : who,
                            plugin_major, FLHAL_PLUGIN_ABI_MAJOR, FLHAL_PLUGIN_ABI_MINOR),
                fmt::format("install versions that meet: {}", align_command(who)));
}

Refusal negotiate_abi(AbiRange core, AbiRange plugin, std::string_view who, uint32_t* out_minor) {
  if (plugin.oldest > plugin.newest)
    return refuse(FLHAL_E_ABI,
                  fmt::format("plugin {} says it works with the plugin ABI {}.{} and newer, but is itself {}.{}", who,
                              FLHAL_PLUGIN_ABI_MAJOR, plugin.oldest, FLHAL_PLUGIN_ABI_MAJOR, plugin.newest),
                  "set oldest_host_minor to abi_minor or less");
  const uint32_t common = std::min(core.newest, plugin.newest);
  if (common < core.oldest || common < plugin.oldest)
    return refuse(FLHAL_E_ABI,
                  fmt::format("plugin {} works with the plugin ABI {} and this flhal with {}", who, minors(plugin), minors(core)),
                  fmt::format("install versions that meet: {}", align_command(who)));
  *out_minor = common;
  return {};
}

}  // namespace flhal

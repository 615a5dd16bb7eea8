// src/core/load_report.cc: the load report as JSON and as the text a person reads when there is nothing.
#include "core/load_report.h"

#include <flhal/base.h>
#include <flhal/plugin.h>

#include <algorithm>

#include "core/host_services.h"
#include "core/json_text.h"

namespace flhal {

bool LoadReport::any_loaded() const {
  return std::any_of(candidates.begin(), candidates.end(), [](const CandidateLine& line) { return line.status == "loaded"; });
}

std::string LoadReport::json() const {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "load");
  json_add(root.get(), "flhal_version", fmt::format("{}.{}", FLHAL_VERSION_MAJOR, FLHAL_VERSION_MINOR));
  cJSON* abi = cJSON_AddObjectToObject(root.get(), "plugin_abi");
  json_add(abi, "oldest", fmt::format("{}.{}", FLHAL_PLUGIN_ABI_MAJOR, kOldestPluginMinor));
  json_add(abi, "newest", fmt::format("{}.{}", FLHAL_PLUGIN_ABI_MAJOR, FLHAL_PLUGIN_ABI_MINOR));
  json_add_number(root.get(), "devices", devices);
  cJSON_AddNumberToObject(root.get(), "milliseconds", milliseconds);
  cJSON* list = cJSON_AddArrayToObject(root.get(), "plugins");
  for (const CandidateLine& line : candidates) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "path", line.path);
    json_add(item, "status", line.status);
    json_add(item, "id", line.id);
    json_add_if(item, "reason", line.reason);
    json_add_if(item, "remedy", line.remedy);
    json_add(item, "found_by", line.origin);
    json_add_if(item, "library", line.library);
    json_add_if(item, "loaded_path", line.loaded_path);
    json_add_if(item, "version", line.version);
    json_add_if(item, "vendor", line.vendor);
    json_add_if(item, "build_id", line.build_id);
    json_add_if(item, "abi", line.abi);
    json_add_if(item, "asked", line.asked);
    json_add_number(item, "devices", line.devices);
    cJSON_AddNumberToObject(item, "milliseconds", line.milliseconds);
    if (!line.notes.empty()) {
      cJSON* notes_list = cJSON_AddArrayToObject(item, "notes");
      for (const std::string& note : line.notes) cJSON_AddItemToArray(notes_list, cJSON_CreateString(note.c_str()));
    }
  }
  list = cJSON_AddArrayToObject(root.get(), "places");
  for (const PlaceLine& line : places) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "path", line.path);
    json_add(item, "named_by", line.origin);
    json_add(item, "status", line.status);
    json_add_if(item, "reason", line.reason);
    json_add_number(item, "found", line.found);
  }
  list = cJSON_AddArrayToObject(root.get(), "notes");
  for (const NoteLine& line : notes) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "level", line.level);
    json_add(item, "subject", line.subject);
    json_add(item, "reason", line.reason);
    json_add_if(item, "remedy", line.remedy);
  }
  return json_print(root.get(), true);
}

std::string LoadReport::not_found_text() const {
  std::string text = "Device registration failed: plugin not found";
  if (any_loaded()) text = "no device found: the plugins that loaded have no chip to offer";
  std::string refused, searched;
  for (const CandidateLine& line : candidates)
    if (line.status == "refused") refused += fmt::format("\n  {}: {}{}{}", line.path, line.reason, line.remedy.empty() ? "" : "; ", line.remedy);
  for (const PlaceLine& place : places)
    searched += fmt::format("\n  {} ({}): {}", place.path, place.origin,
                            place.found != 0 ? fmt::format("{} found", place.found)
                            : place.reason.empty() ? place.status == "searched" ? "nothing there" : place.status
                                                   : place.reason);
  if (!refused.empty()) text += "\nfound, and not usable:" + refused;
  for (const NoteLine& line : notes)
    if (line.level == "error") text += fmt::format("\n{}{}{}", line.reason, line.remedy.empty() ? "" : "; ", line.remedy);
  text += "\nsearched:" + (searched.empty() ? " no place at all" : searched);
  text += "\nto do: install a plugin (pip install torch-fl-plugin-host for this machine's processor), or name one: "
          "FLHAL_ADD_PLUGIN_FILES=/path/to/libflhal_plugin_<id>.so; `torch-fl scan`, or flhal-info of the SDK, shows what was found";
  return text;
}

}  // namespace flhal

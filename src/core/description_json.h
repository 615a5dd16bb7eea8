// src/core/description_json.h: a plugin's description as JSON, between the probe child, its parent and the cache.
#pragma once

#include "core/device_description.h"
#include "core/json_text.h"

namespace flhal {

JsonOwner description_to_json(const PluginDescription& plugin);
// Reads one back and checks it as if the plugin had said it: a child may be a plugin that writes what it likes.
Refusal description_from_json(const cJSON* root, PluginDescription* out);

}  // namespace flhal

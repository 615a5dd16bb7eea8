// tests/fuzz/manifest.cc: JSON from outside: manifests, and what a probe child answers. The first byte says which.
#include "core/manifest.h"

#include "bytes.h"
#include "core/description_json.h"

using namespace flhal;
using namespace flhal::fuzz;

static void manifest(const std::string& text) {
  Manifest m;
  Refusal refusal = parse_manifest("/folder/chip.json", text, &m);
  if (refusal) {
    FLHAL_MUST(!refusal.reason.empty() && !refusal.remedy.empty());
    return;
  }
  FLHAL_MUST(valid_plugin_id(m.id) && !m.library.empty() && m.library[0] == '/');
  FLHAL_MUST(m.probe_environment.size() <= 64 && m.probe_files.size() <= 64);
  Refusal abi = check_manifest_abi(m);
  FLHAL_MUST(!abi || abi.code == FLHAL_E_ABI);
}

// What was read must be the same after it was written and read again: cache and probe child pass it on.
static void description(const std::string& text) {
  JsonOwner root(cJSON_ParseWithLength(text.data(), text.size()));
  PluginDescription first;
  if (Refusal refusal = description_from_json(root.get(), &first)) {
    FLHAL_MUST(!refusal.reason.empty());
    return;
  }
  const std::string written = json_print(description_to_json(first).get(), false);
  JsonOwner again(cJSON_ParseWithLength(written.data(), written.size()));
  PluginDescription second;
  FLHAL_MUST(again && !description_from_json(again.get(), &second));
  FLHAL_MUST(json_print(description_to_json(second).get(), false) == written);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const bool is_manifest = bytes.byte() != 'd';
  const std::string text = bytes.rest();
  if (is_manifest) manifest(text);
  else description(text);
  return 0;
}

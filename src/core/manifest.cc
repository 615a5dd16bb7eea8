// src/core/manifest.cc: reading a manifest; each malformed field has its own sentence.
#include "core/manifest.h"

#include <cjson/cJSON.h>
#include <flhal/plugin.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "core/file_text.h"
#include "core/host_services.h"

namespace flhal {
namespace {

constexpr size_t kManifestBytesMax = 1 << 20;
constexpr int kManifestVersion = 1;

using Json = std::unique_ptr<cJSON, decltype(&cJSON_Delete)>;

Refusal bad(const std::string& path, std::string what, std::string remedy) {
  return refuse(FLHAL_E_INVALID, fmt::format("the manifest {}: {}", path, what), std::move(remedy));
}

const char* kind_of(const cJSON* value) {
  if (cJSON_IsString(value)) return "a string";
  if (cJSON_IsNumber(value)) return "a number";
  if (cJSON_IsArray(value)) return "a list";
  if (cJSON_IsObject(value)) return "an object";
  if (cJSON_IsBool(value)) return "true or false";
  return "null";
}

Refusal take_string(const std::string& path, const cJSON* root, const char* key, const char* example, bool needed, std::string* out) {
  const cJSON* value = cJSON_GetObjectItemCaseSensitive(root, key);
  if (value == nullptr)
    return needed ? bad(path, fmt::format("the field \"{}\" is missing", key), fmt::format("add it, e.g. \"{}\": \"{}\"", key, example))
                  : Refusal();
  if (!cJSON_IsString(value) || value->valuestring[0] == 0)
    return bad(path, fmt::format("the field \"{}\" is {}, and must be a text that is not empty", key,
                                 cJSON_IsString(value) ? "empty" : kind_of(value)),
               fmt::format("write e.g. \"{}\": \"{}\"", key, example));
  *out = value->valuestring;
  return {};
}

Refusal take_abi(const std::string& path, const cJSON* root, const char* key, std::optional<AbiVersion>* out) {
  std::string text;
  FLHAL_REFUSE_ON(take_string(path, root, key, "1.0", false, &text));
  if (text.empty()) return {};
  *out = parse_abi_version(text);
  if (!*out) return bad(path, fmt::format("the field \"{}\" is \"{}\", which is no version", key, text), fmt::format("write major.minor, e.g. \"{}\": \"1.0\"", key));
  return {};
}

Refusal take_list(const std::string& path, const cJSON* root, const char* key, std::vector<std::string>* out) {
  const cJSON* list = cJSON_GetObjectItemCaseSensitive(root, key);
  if (list == nullptr) return {};
  bool well = cJSON_IsArray(list) && cJSON_GetArraySize(list) <= 64;
  const cJSON* item;
  if (well) {
    cJSON_ArrayForEach(item, list) {
      well = well && cJSON_IsString(item) && item->valuestring[0] != 0;
      if (well) out->push_back(item->valuestring);
    }
  }
  return well ? Refusal() : bad(path, fmt::format("the field \"{}\" must be a list of at most 64 texts", key), "correct or remove it");
}

// Line and column of a place in a text, counted from 1.
std::string place_in(const std::string& text, size_t offset) {
  offset = std::min(offset, text.size());
  size_t line = 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n'));
  size_t start = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  size_t column = offset - (start == std::string::npos ? 0 : start + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

bool valid_plugin_id(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  return std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
  });
}

Refusal parse_manifest(const std::string& path, const std::string& text, Manifest* out) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return bad(path, "it is empty", "install the plugin's package again");
  const char* end = nullptr;
  Json root(cJSON_ParseWithLengthOpts(text.c_str(), text.size() + 1, &end, true), cJSON_Delete);
  if (root == nullptr)
    return bad(path, fmt::format("it is not JSON ({})", place_in(text, end ? static_cast<size_t>(end - text.c_str()) : 0)),
               "correct it there, or install the plugin's package again");
  if (!cJSON_IsObject(root.get()))
    return bad(path, fmt::format("it holds {}, not an object", kind_of(root.get())), "begin with { \"flhal_manifest\": 1, ...");

  const cJSON* version = cJSON_GetObjectItemCaseSensitive(root.get(), "flhal_manifest");
  if (version == nullptr) version = cJSON_GetObjectItemCaseSensitive(root.get(), "manifest_version");
  if (version == nullptr)
    return bad(path, "the field \"flhal_manifest\" is missing, so it is not a manifest of flhal", "add \"flhal_manifest\": 1");
  if (!cJSON_IsNumber(version) || version->valuedouble < 1 || version->valuedouble != std::floor(version->valuedouble))
    return bad(path, fmt::format("the field \"flhal_manifest\" is {}, and must be a whole number from 1",
                                 cJSON_IsNumber(version) ? fmt::format("{}", version->valuedouble) : kind_of(version)),
               "write \"flhal_manifest\": 1");
  if (version->valuedouble > kManifestVersion)
    return bad(path, fmt::format("its format is {:.0f} and this flhal reads up to {}", version->valuedouble, kManifestVersion),
               "update flhal: pip install --upgrade torch-fl");

  Manifest m;
  m.path = path;
  FLHAL_REFUSE_ON(take_string(path, root.get(), "id", "org.example.chip", true, &m.id));
  if (!valid_plugin_id(m.id))
    return bad(path, fmt::format("the id \"{}\" is not one", m.id.substr(0, 140)), "use letters, digits, '_', '-' and '.', at most 128");
  FLHAL_REFUSE_ON(take_string(path, root.get(), "library", "libflhal_plugin_chip.so", true, &m.library));
  FLHAL_REFUSE_ON(take_string(path, root.get(), "version", "1.0.0", false, &m.version));
  FLHAL_REFUSE_ON(take_abi(path, root.get(), "abi", &m.abi));
  FLHAL_REFUSE_ON(take_abi(path, root.get(), "abi_oldest", &m.abi_oldest));
  FLHAL_REFUSE_ON(take_list(path, root.get(), "probe_environment", &m.probe_environment));
  FLHAL_REFUSE_ON(take_list(path, root.get(), "probe_files", &m.probe_files));

  std::filesystem::path library(m.library);
  if (library.is_relative()) library = std::filesystem::path(path).parent_path() / library;
  m.library = library.lexically_normal().string();
  *out = std::move(m);
  return {};
}

Refusal read_manifest(const std::string& path, Manifest* out) {
  std::string text;
  FLHAL_REFUSE_ON(read_file_text(path, "manifest", kManifestBytesMax, &text));
  return parse_manifest(path, text, out);
}

Refusal check_manifest_abi(const Manifest& manifest) {
  if (!manifest.abi) return {};
  if (manifest.abi->major != FLHAL_PLUGIN_ABI_MAJOR) return other_major(manifest.abi->major, manifest.id);
  if (manifest.abi_oldest && manifest.abi_oldest->major != FLHAL_PLUGIN_ABI_MAJOR)
    return other_major(manifest.abi_oldest->major, manifest.id);
  uint32_t minor = 0;
  // Without a lower end the manifest promises nothing about it: the library itself will say.
  return negotiate_abi({kOldestPluginMinor, FLHAL_PLUGIN_ABI_MINOR},
                       {manifest.abi_oldest ? manifest.abi_oldest->minor : 0, manifest.abi->minor}, manifest.id, &minor);
}

}  // namespace flhal

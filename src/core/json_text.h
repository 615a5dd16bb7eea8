// src/core/json_text.h: cJSON with ownership, and the house rule that numbers above 2^53 are written as texts.
#pragma once

#include <cjson/cJSON.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace flhal {

struct JsonDeleter {
  void operator()(cJSON* node) const { cJSON_Delete(node); }
};
using JsonOwner = std::unique_ptr<cJSON, JsonDeleter>;

inline void json_add(cJSON* object, const char* key, const std::string& text) { cJSON_AddStringToObject(object, key, text.c_str()); }
inline void json_add_bool(cJSON* object, const char* key, bool value) { cJSON_AddBoolToObject(object, key, value); }
inline void json_add_number(cJSON* object, const char* key, uint64_t value) {
  if (value <= (1ull << 53)) {
    cJSON_AddNumberToObject(object, key, static_cast<double>(value));
  } else {
    cJSON_AddStringToObject(object, key, std::to_string(value).c_str());
  }
}
// Left out when empty: a reader sees at once which lines have something to say.
inline void json_add_if(cJSON* object, const char* key, const std::string& text) {
  if (!text.empty()) json_add(object, key, text);
}

std::string json_string(const cJSON* object, const char* key);             // "" when absent or of another kind
uint64_t json_number(const cJSON* object, const char* key);                // number or text of one; 0 otherwise
bool json_bool(const cJSON* object, const char* key);
std::string json_print(const cJSON* node, bool pretty);

}  // namespace flhal

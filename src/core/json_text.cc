// src/core/json_text.cc: reading fields that may be absent or of another kind.
#include "core/json_text.h"

#include "core/config_values.h"

namespace flhal {

std::string json_string(const cJSON* object, const char* key) {
  const cJSON* value = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(value) ? value->valuestring : "";
}

uint64_t json_number(const cJSON* object, const char* key) {
  const cJSON* value = cJSON_GetObjectItemCaseSensitive(object, key);
  if (cJSON_IsNumber(value)) return value->valuedouble >= 0 && value->valuedouble <= 9007199254740992.0 ? static_cast<uint64_t>(value->valuedouble) : 0;
  if (cJSON_IsString(value)) return parse_integer(value->valuestring, 0, UINT64_MAX).value_or(0);
  return 0;
}

bool json_bool(const cJSON* object, const char* key) { return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key)); }

std::string json_print(const cJSON* node, bool pretty) {
  char* text = pretty ? cJSON_Print(node) : cJSON_PrintUnformatted(node);
  if (text == nullptr) throw std::bad_alloc();
  std::string out = text;
  cJSON_free(text);
  return out;
}

}  // namespace flhal

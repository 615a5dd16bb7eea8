// conformance/runner/json.h: cJSON as a value that frees itself.
//
// Numbers above 2^53 go into reports as strings: not every reader of JSON has 64-bit integers.
#pragma once

#include <cjson/cJSON.h>

#include <string>
#include <utility>

namespace flhal::conformance {

class Json {
 public:
  static Json object() { return Json(cJSON_CreateObject()); }
  static Json array() { return Json(cJSON_CreateArray()); }
  static Json parse(const std::string& text) { return Json(cJSON_ParseWithLength(text.data(), text.size())); }   // may be empty

  Json(Json&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Json& operator=(Json&& other) noexcept { return std::swap(node_, other.node_), *this; }
  ~Json() { cJSON_Delete(node_); }

  explicit operator bool() const { return node_ != nullptr; }
  const cJSON* get() const { return node_; }

  Json& set(const char* key, const std::string& v) { return put(key, cJSON_CreateString(v.c_str())); }
  Json& set(const char* key, const char* v) { return put(key, cJSON_CreateString(v)); }
  Json& set(const char* key, double v) { return put(key, cJSON_CreateNumber(v)); }
  Json& set(const char* key, bool v) { return put(key, cJSON_CreateBool(v)); }
  Json& set(const char* key, Json&& v) { return put(key, std::exchange(v.node_, nullptr)); }
  Json& add(Json&& v) { return cJSON_AddItemToArray(node_, std::exchange(v.node_, nullptr)), *this; }
  Json& add(const std::string& v) { return cJSON_AddItemToArray(node_, cJSON_CreateString(v.c_str())), *this; }

  std::string line() const { return print(false); }
  std::string pretty() const { return print(true); }

 private:
  explicit Json(cJSON* node) : node_(node) {}
  Json& put(const char* key, cJSON* v) {
    cJSON_DeleteItemFromObjectCaseSensitive(node_, key);
    cJSON_AddItemToObject(node_, key, v);
    return *this;
  }
  std::string print(bool pretty) const {
    char* text = pretty ? cJSON_Print(node_) : cJSON_PrintUnformatted(node_);
    std::string copy = text != nullptr ? text : "";
    cJSON_free(text);
    return copy;
  }
  cJSON* node_;
};

inline std::string json_text(const cJSON* object, const char* key) {
  const cJSON* v = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(v) ? v->valuestring : "";
}
inline double json_number(const cJSON* object, const char* key, double otherwise = 0) {
  const cJSON* v = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsNumber(v) ? v->valuedouble : otherwise;
}

}  // namespace flhal::conformance

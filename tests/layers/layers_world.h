// tests/layers/layers_world.h: layers for one scope, and what they say.
#pragma once

#include <cjson/cJSON.h>

#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "layers/layers_report.h"
#include "memory/chips.h"

namespace flhal::test {

// A setting for one scope.
class Set {
 public:
  Set(const char* key, const std::string& value) : key_(key), before_(*config_get(key)) { REQUIRE_OK(config_set(key, value)); }
  ~Set() { (void)config_set(key_, before_); }
  Set(const Set&) = delete;

 private:
  std::string key_, before_;
};

struct LayersReport {
  std::unique_ptr<cJSON, void (*)(cJSON*)> root{cJSON_Parse(layers_json().c_str()), cJSON_Delete};
  const cJSON* list(const char* name) const { return cJSON_GetObjectItem(root.get(), name); }
  // The row of a list in which a field has a value; nullptr when there is none.
  const cJSON* row(const char* list_name, const char* field, const std::string& value) const {
    const cJSON* item = nullptr;
    cJSON_ArrayForEach(item, list(list_name)) {
      const cJSON* found = cJSON_GetObjectItem(item, field);
      if (cJSON_IsString(found) && value == found->valuestring) return item;
    }
    return nullptr;
  }
  static double number(const cJSON* row, const char* field) {
    const cJSON* found = row ? cJSON_GetObjectItem(row, field) : nullptr;
    return found ? found->valuedouble : -1;
  }
  static std::string text(const cJSON* row, const char* field) {
    const cJSON* found = row ? cJSON_GetObjectItem(row, field) : nullptr;
    return cJSON_IsString(found) ? found->valuestring : "";
  }
};

}  // namespace flhal::test

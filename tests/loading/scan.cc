// tests/loading/scan.cc
#include "loading/scan.h"

#include <cjson/cJSON.h>

#include <algorithm>
#include <memory>
#include <sstream>

namespace flhal::test {
namespace {

std::string text_of(const cJSON* item, const char* key) {
  const cJSON* value = cJSON_GetObjectItemCaseSensitive(item, key);
  return cJSON_IsString(value) ? value->valuestring : "";
}

std::vector<ReportLine> lines_of(const cJSON* root, const char* key) {
  std::vector<ReportLine> lines;
  const cJSON* item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, key)) {
    const cJSON* ms = cJSON_GetObjectItemCaseSensitive(item, "milliseconds");
    lines.push_back({text_of(item, "path"), text_of(item, "status"), text_of(item, "id"), text_of(item, "reason"),
                     text_of(item, "remedy"), cJSON_IsNumber(ms) ? ms->valuedouble : 0});
  }
  return lines;
}

}  // namespace

bool Scan::works(const std::string& name) const { return std::find(working.begin(), working.end(), name) != working.end(); }

const ReportLine* Scan::plugin(const std::string& part_of_path) const {
  for (const ReportLine& line : plugins)
    if (line.path.find(part_of_path) != std::string::npos) return &line;
  return nullptr;
}

Scan scan(TestWorld& world, double seconds_max) {
  Scan result;
  result.process = world.run({helper("scan_one")}, seconds_max);
  size_t report_at = result.process.out.find("\nreport ");
  std::istringstream text(result.process.out.substr(0, report_at));
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("device ", 0) == 0) {
      std::istringstream words(line);
      std::string skip, name;
      words >> skip >> skip >> name;
      result.devices.push_back(name);
      result.lines.push_back(line);
    } else if (line.rfind("works ", 0) == 0) {
      result.working.push_back(line.substr(6));
    } else if (line.rfind("none: ", 0) == 0) {
      result.none = result.process.out.substr(result.process.out.find("none: ") + 6);
    }
  }
  if (report_at != std::string::npos) {
    std::unique_ptr<cJSON, decltype(&cJSON_Delete)> root(cJSON_Parse(result.process.out.c_str() + report_at + 8), cJSON_Delete);
    result.plugins = lines_of(root.get(), "plugins");
    result.places = lines_of(root.get(), "places");
  }
  return result;
}

}  // namespace flhal::test

// conformance/runner/report.cc: JSON, JUnit and TAP.
#include "runner/report.h"

#include <flhal/plugin.h>
#include <fmt/format.h>

#include <stdexcept>

#include "runner/case.h"

namespace flhal::conformance {

Json report_json(const Report& report) {
  Json root = Json::object();
  root.set("flhal_conformance", 1.0);
  root.set("abi", fmt::format("{}.{}", FLHAL_PLUGIN_ABI_MAJOR, FLHAL_PLUGIN_ABI_MINOR));
  Json plugin = Json::object();
  plugin.set("path", report.plugin.path).set("id", report.plugin.id).set("version", report.plugin.version);
  plugin.set("build_id", report.plugin.build_id).set("vendor", report.plugin.vendor);
  plugin.set("file_hash", fmt::format("{:016x}", report.plugin.file_hash));
  Json devices = Json::array(), profiles = Json::array(), counts = Json::object(), records = Json::array();
  for (const std::string& d : report.plugin.devices) devices.add(d);
  plugin.set("devices", std::move(devices));
  root.set("plugin", std::move(plugin));
  for (const std::string& p : report.profiles) profiles.add(p);
  root.set("profiles", std::move(profiles));
  root.set("seed", std::to_string(report.seed)).set("selection", report.selection).set("level", report.level);
  for (uint8_t r = 0; r < kResults; ++r) counts.set(result_name(static_cast<Result>(r)), static_cast<double>(report.count(static_cast<Result>(r))));
  root.set("counts", std::move(counts));
  for (const Record& r : report.records) {
    Json row = Json::object();
    row.set("id", r.id).set("result", result_name(r.result)).set("ms", r.ms);
    if (!r.text.empty()) row.set("text", r.text);
    if (const Case* c = find_case(r.id)) row.set("duties", c->duties);
    records.add(std::move(row));
  }
  root.set("records", std::move(records));
  return root;
}

Report report_from_json(const std::string& text, const std::string& file) {
  auto refuse = [&](const std::string& why) { throw std::runtime_error(fmt::format("{} is no result of flhal-conformance: {}", file, why)); };
  Json root = Json::parse(text);
  if (!root) refuse("it is not JSON");
  if (json_number(root.get(), "flhal_conformance") != 1) refuse("\"flhal_conformance\" is not 1");
  Report report;
  const cJSON* plugin = cJSON_GetObjectItemCaseSensitive(root.get(), "plugin");
  report.plugin.path = json_text(plugin, "path");
  report.plugin.id = json_text(plugin, "id");
  report.plugin.version = json_text(plugin, "version");
  report.plugin.build_id = json_text(plugin, "build_id");
  report.plugin.vendor = json_text(plugin, "vendor");
  report.plugin.file_hash = std::strtoull(json_text(plugin, "file_hash").c_str(), nullptr, 16);
  const cJSON* item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(plugin, "devices"))
    if (cJSON_IsString(item)) report.plugin.devices.push_back(item->valuestring);
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root.get(), "profiles"))
    if (cJSON_IsString(item)) report.profiles.push_back(item->valuestring);
  report.seed = std::strtoull(json_text(root.get(), "seed").c_str(), nullptr, 10);
  report.selection = json_text(root.get(), "selection");
  report.level = json_text(root.get(), "level");
  const cJSON* records = cJSON_GetObjectItemCaseSensitive(root.get(), "records");
  if (!cJSON_IsArray(records)) refuse("it has no list \"records\"");
  cJSON_ArrayForEach(item, records) {
    Record r;
    r.id = json_text(item, "id");
    r.text = json_text(item, "text");
    r.ms = json_number(item, "ms");
    if (r.id.empty() || !result_of(json_text(item, "result"), &r.result)) refuse(fmt::format("record {} has no id or no known result", report.records.size()));
    report.records.push_back(std::move(r));
  }
  return report;
}

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') out += '?';
    else out += c;
  }
  return out;
}

}  // namespace

std::string report_junit(const Report& report) {
  uint32_t faults = 0, skipped = report.count(Result::kNotSupported) + report.count(Result::kWaived);
  for (const Record& r : report.records) faults += is_fault(r.result);
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format("<testsuite name=\"flhal-conformance {}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
                     escaped(report.plugin.id), report.records.size(), faults, skipped);
  for (const Record& r : report.records) {
    size_t dot = r.id.find('.', r.id.find('.') + 1);
    xml += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", r.id.substr(0, dot), r.id.substr(dot + 1), r.ms / 1000);
    std::string message = escaped(r.text);
    if (is_fault(r.result)) xml += fmt::format(">\n    <failure type=\"{}\" message=\"{}\"/>\n  </testcase>\n", result_name(r.result), message);
    else if (r.result == Result::kNotSupported || r.result == Result::kWaived) xml += fmt::format(">\n    <skipped message=\"{}\"/>\n  </testcase>\n", message);
    else if (r.result == Result::kWarning) xml += fmt::format(">\n    <system-out>warning: {}</system-out>\n  </testcase>\n", message);
    else xml += "/>\n";
  }
  return xml + "</testsuite>\n";
}

std::string report_tap(const Report& report) {
  std::string tap = fmt::format("TAP version 13\n1..{}\n", report.records.size());
  size_t number = 0;
  for (const Record& r : report.records) {
    std::string text = r.text;
    for (char& c : text)
      if (c == '\n' || c == '#') c = ' ';
    const char* ok = is_fault(r.result) ? "not ok" : "ok";
    tap += fmt::format("{} {} - {}", ok, ++number, r.id);
    if (r.result == Result::kNotSupported) tap += " # SKIP " + text;
    else if (r.result == Result::kWaived) tap += " # TODO " + text;   // TAP's own word for a failure that is known and does not count
    tap += "\n";
    if (is_fault(r.result) || r.result == Result::kWarning) tap += fmt::format("# {}: {}\n", result_name(r.result), text);
  }
  return tap;
}

}  // namespace flhal::conformance

// conformance/runner/waivers.cc: reading and applying waivers.
#include "runner/waivers.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <sstream>
#include <stdexcept>

#include "runner/case.h"

namespace flhal::conformance {
namespace {

bool is_day(const std::string& s) {
  if (s.size() != 10 || s[4] != '-' || s[7] != '-') return false;
  for (size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
    if (s[i] < '0' || s[i] > '9') return false;
  int month = std::stoi(s.substr(5, 2)), day = std::stoi(s.substr(8, 2));
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

}  // namespace

std::string today() {
  if (const char* set = std::getenv("FLHAL_CONFORMANCE_TODAY"); set != nullptr && is_day(set)) return set;
  time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::vector<Waiver> read_waivers(const std::string& file) {
  std::vector<Waiver> waivers;
  std::istringstream in(read_file(file));
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    Waiver w;
    if (!(words >> w.id) || w.id[0] == '#') continue;
    words >> w.last_day;
    std::getline(words >> std::ws, w.reason);
    auto refuse = [&](const std::string& why) {
      throw std::runtime_error(fmt::format("{}:{}: {}; a line is: id, last day as 2026-12-31, reason", file, number, why));
    };
    if (find_case(w.id) == nullptr) refuse(fmt::format("there is no case {}", w.id));
    if (!is_day(w.last_day)) refuse(fmt::format("\"{}\" is no day", w.last_day));
    if (w.reason.size() < 10) refuse("a reason is missing");
    waivers.push_back(std::move(w));
  }
  return waivers;
}

std::vector<std::string> apply_waivers(Report& report, const std::vector<Waiver>& waivers, const std::string& day) {
  std::vector<std::string> notes;
  for (const Waiver& w : waivers) {
    Record* record = nullptr;
    for (Record& r : report.records)
      if (r.id == w.id) record = &r;
    if (record == nullptr) continue;       // not selected in this run
    if (!is_fault(record->result)) {
      notes.push_back(fmt::format("{}: the waiver is not needed any more ({}); take it out", w.id, result_name(record->result)));
    } else if (w.last_day < day) {
      notes.push_back(fmt::format("{}: the waiver expired on {}; the fault counts again", w.id, w.last_day));
    } else {
      record->text = fmt::format("waived until {}: {} ({}: {})", w.last_day, w.reason, result_name(record->result), record->text);
      record->result = Result::kWaived;
    }
  }
  return notes;
}

}  // namespace flhal::conformance

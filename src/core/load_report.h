// src/core/load_report.h: every place searched and every candidate found, with what became of it, why, and what to do.
//
// One source of truth: the JSON of flhal_report("load"), the text of "plugin not found" and flhal-info all read this.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/refusal.h"

namespace flhal {

// A place of the search. status: "searched", "missing", "unreadable", "ignored".
struct PlaceLine {
  std::string path, origin, status, reason;   // origin: the variable or "built in" that named it
  uint32_t found = 0;                         // candidates
};

// A candidate. status: "loaded", "refused", "duplicate".
struct CandidateLine {
  std::string path;                           // as found: manifest or library
  std::string library, loaded_path, origin, id, version, vendor, build_id, status, reason, remedy;
  std::string abi;                            // negotiated, "1.0"
  std::string asked;                          // "in process", "in a child", "from the cache"
  uint32_t devices = 0;
  double milliseconds = 0;
  std::vector<std::string> notes;
};

// A line about something else: a setting, the cache, a chip that vanished. level: "error" or "note".
struct NoteLine {
  std::string level, subject, reason, remedy;
};

struct LoadReport {
  std::vector<PlaceLine> places;
  std::vector<CandidateLine> candidates;
  std::vector<NoteLine> notes;
  uint32_t devices = 0;
  double milliseconds = 0;

  bool any_loaded() const;
  std::string json() const;
  // "Device registration failed: plugin not found; searched: ...; to do: ...". For a person.
  std::string not_found_text() const;
};

// The report of the first count, copied; makes the first count when there was none.
std::string load_report_json();
std::string devices_json();
std::string not_found_text();
// Adds a line after the first count (a chip that vanished when it was opened).
void load_report_note(NoteLine note);

}  // namespace flhal

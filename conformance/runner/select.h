// conformance/runner/select.h: which cases a command line means, and what must pass for a level.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/case.h"
#include "runner/options.h"
#include "runner/record.h"

namespace flhal::conformance {

// '*' is any text, '?' any letter.
bool matches(std::string_view glob, std::string_view id);
// "memory.*,-memory.free.*": matches one of the globs and none with a minus. "" is everything.
bool filter_takes(const std::string& filter, std::string_view id);
// The shard of an id depends on the id alone, so that new cases do not move old ones.
bool shard_takes(uint32_t shard, uint32_t shards, std::string_view id);
std::vector<const Case*> select_cases(uint32_t profiles, const Options& options);

// Ids that version 1.0 of the suite promises, per profile, as they were built in from mustpass/1.0.
const std::vector<std::string>& must_pass(Profile profile);
// Sets report.level: the profiles whose must-pass ids are all there and none is a fault. Adds to `*missing` what keeps the
// next one away: "kernel: 3 of 40 fail, first launch.groups.once.7".
void judge_level(Report& report, std::vector<std::string>* missing);

}  // namespace flhal::conformance

// src/tools/flhal_replay.cc: makes the calls of a trace again, of any plugin, and says what came out otherwise.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>

#include "layers/rules.h"
#include "replay/session.h"

namespace {

using namespace flhal;
using namespace flhal::replay;

constexpr const char* kUsage =
    "usage: flhal-replay TRACE --plugin LIBRARY [--of ID] [--show N] [--list]\n"
    "Makes the calls that the layer trace has written (FLHAL_LAYERS=trace) again, in their order, of a plugin.\n"
    "  --plugin LIBRARY  the plugin to call; it need not be the one that was recorded\n"
    "  --of ID           whose calls, when the trace has those of several plugins\n"
    "  --show N          how many differences and calls left out are listed (20)\n"
    "  --list            only lists the calls of the trace\n"
    "Exit status: 0 when every call that was made answered as it had, 1 when one did not, 2 when nothing could be done.\n";

struct Options {
  std::string trace, plugin, of;
  size_t show = 20;
  bool list = false;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&] {
      if (++i == argc) throw std::runtime_error(a + " needs a value\n" + kUsage);
      return std::string(argv[i]);
    };
    if (a == "--plugin") o.plugin = value();
    else if (a == "--of") o.of = value();
    else if (a == "--show") o.show = std::stoul(value());
    else if (a == "--list") o.list = true;
    else if (a == "--help" || a == "-h") throw std::runtime_error(kUsage);
    else if (a[0] == '-' || !o.trace.empty()) throw std::runtime_error(a + " is not understood\n" + kUsage);
    else o.trace = a;
  }
  if (o.trace.empty() || (o.plugin.empty() && !o.list)) throw std::runtime_error(kUsage);
  return o;
}

// The plugin whose calls are meant.
std::string chosen(const Options& o, const std::vector<FlatCall>& calls) {
  std::set<std::string> ids;
  for (const FlatCall& c : calls) ids.insert(c.plugin);
  std::string all;
  for (const std::string& id : ids) all += (all.empty() ? "" : ", ") + id;
  if (!o.of.empty() && !ids.count(o.of)) throw std::runtime_error(fmt::format("{} has no calls of {}; it has those of {}", o.trace, o.of, all));
  if (o.of.empty() && ids.size() > 1) throw std::runtime_error(fmt::format("{} has the calls of {}; choose with --of", o.trace, all));
  return o.of.empty() ? *ids.begin() : o.of;
}

std::string name_of_answer(flhal_status answer) {
  const char* known = layers::status_text(answer);
  return known ? known : std::to_string(answer);
}

int run(const Options& o) {
  std::vector<FlatCall> calls = read_calls(o.trace);
  if (o.list) {
    for (const FlatCall& c : calls) {
      char* text = cJSON_PrintUnformatted(c.arguments);
      fmt::print("{} {} {} {} = {}\n", c.number, c.plugin, c.info().name, text, c.answer);
      cJSON_free(text);
    }
    return 0;
  }
  const std::string of = chosen(o, calls);
  Session session(o.plugin);
  size_t made = 0, different = 0, left_out = 0, shown = 0;
  std::map<std::string, size_t> reasons;
  double us = 0;
  for (const FlatCall& c : calls) {
    if (c.plugin != of) continue;
    const Outcome outcome = session.make(c);
    if (!outcome.made) {
      ++left_out;
      ++reasons[fmt::format("{}: {}", c.info().name, outcome.why_not)];
      continue;
    }
    ++made;
    us += outcome.us;
    const std::string now = name_of_answer(outcome.answer);
    if (now == c.answer && outcome.difference.empty()) continue;
    // A question may come earlier or later than it did.
    const bool question = c.slot == SlotId::stream_query || c.slot == SlotId::event_query;
    if (question && outcome.answer >= 0 && (c.answer == "OK" || c.answer == "NOT_READY")) continue;
    ++different;
    if (shown++ < o.show)
      fmt::print("call {}, {}: {}{}{}\n", c.number, c.info().name, now == c.answer ? "" : fmt::format("answered {}, had answered {}", now, c.answer),
                 outcome.text.empty() ? "" : " (" + outcome.text + ")", outcome.difference.empty() ? "" : " " + outcome.difference);
  }
  shown = 0;
  for (const auto& [reason, times] : reasons)
    if (shown++ < o.show) fmt::print("left out {} times: {}\n", times, reason);
  fmt::print("{} calls of {} made of {} in {:.3f} ms: {} otherwise than recorded, {} left out\n", made, of, session.id(), us / 1e3, different, left_out);
  return different == 0 && made != 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "flhal-replay: {}\n", error.what());
    return 2;
  }
}

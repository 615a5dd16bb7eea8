// src/tools/replay/flat_call.cc: reading a trace. One event a line, so a file that a crash cut off is read up to there.
#include "replay/flat_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "layers/rules.h"

namespace flhal::replay {
namespace {

std::string text_of(const cJSON* object, const char* key) {
  const cJSON* node = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(node) ? node->valuestring : "";
}

bool is_wait(SlotId slot) { return slot == SlotId::stream_synchronize || slot == SlotId::event_synchronize; }

FlatCall call_of(const std::string& line, const std::string& path, uint64_t line_number) {
  FlatCall call;
  call.event.reset(cJSON_Parse(line.c_str()));
  if (!call.event) throw std::runtime_error(fmt::format("{}, line {}: this is no event", path, line_number));
  const cJSON* args = cJSON_GetObjectItemCaseSensitive(call.event.get(), "args");
  const std::string name = text_of(args, "slot");
  auto slot = layers::slot_named(name);
  call.arguments = cJSON_GetObjectItemCaseSensitive(args, "arguments");
  if (!slot || call.arguments == nullptr)
    throw std::runtime_error(fmt::format("{}, line {}: \"{}\" is no slot this program knows; it reads what the layer trace writes", path, line_number, name));
  call.slot = *slot;
  call.number = number_of(args, "n");
  call.place = is_wait(call.slot) ? number_of(args, "begun") : call.number;
  call.plugin = text_of(args, "plugin");
  call.answer = text_of(args, "answer");
  call.payload = text_of(args, "payload");
  call.injected = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(args, "injected"));
  return call;
}

}  // namespace

const cJSON* FlatCall::argument(size_t i) const { return cJSON_GetObjectItemCaseSensitive(arguments, std::string(argument_name(info(), i)).c_str()); }

uint64_t number_of(const cJSON* node) {
  if (cJSON_IsString(node)) return strtoull(node->valuestring, nullptr, 10);
  return cJSON_IsNumber(node) ? static_cast<uint64_t>(node->valuedouble) : 0;
}
uint64_t number_of(const cJSON* object, const char* key) { return number_of(cJSON_GetObjectItemCaseSensitive(object, key)); }

std::vector<unsigned char> bytes_of_hex(const char* text) {
  auto digit = [](char c) { return static_cast<unsigned char>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::vector<unsigned char> bytes;
  for (; text && text[0] && text[1]; text += 2) bytes.push_back(static_cast<unsigned char>(digit(text[0]) << 4 | digit(text[1])));
  return bytes;
}

std::vector<FlatCall> read_calls(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be read", path));
  std::vector<FlatCall> calls;
  std::string line, broken;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (!broken.empty()) throw std::runtime_error(broken);
    while (!line.empty() && (line.back() == ',' || line.back() == '\r')) line.pop_back();
    if (line.empty() || line == "[" || line == "]") continue;
    if (line[0] != '{') throw std::runtime_error(fmt::format("{}, line {}: this is no event of a trace in Chrome's form (a *.txt trace is for the eye only)", path, number));
    try {
      calls.push_back(call_of(line, path, number));
    } catch (const std::runtime_error& error) {
      broken = error.what();             // the last line may have been cut off
    }
  }
  if (calls.empty()) throw std::runtime_error(fmt::format("{} has no call", path));
  std::stable_sort(calls.begin(), calls.end(), [](const FlatCall& a, const FlatCall& b) {
    return a.place != b.place ? a.place < b.place : is_wait(a.slot) < is_wait(b.slot);
  });
  return calls;
}

}  // namespace flhal::replay

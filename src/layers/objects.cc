// src/layers/objects.cc: the registry.
#include "layers/objects.h"

#include <fmt/format.h>

namespace flhal::layers {

Object* Objects::find(Kind kind, const void* handle) {
  auto& all = of_[static_cast<size_t>(kind)];
  auto at = all.find(handle);
  return at == all.end() ? nullptr : &at->second;
}

Object& Objects::make(Kind kind, const void* handle) {
  Object& object = of_[static_cast<size_t>(kind)][handle];
  object = Object{};                              // others may point here: they are dead as well, and it is the same kind
  object.kind = kind;
  object.number = ++made_[static_cast<size_t>(kind)];
  return object;
}

Object& Objects::adopt(Kind kind, const void* handle) {
  Object& object = make(kind, handle);
  object.adopted = true;
  return object;
}

void Objects::end(Object& object, uint64_t call) {
  object.alive = false;
  object.ended = call;
}

std::pair<bool, Kind> Objects::other_kind(Kind kind, const void* handle) {
  for (size_t k = 0; k <= static_cast<size_t>(Kind::kPlan); ++k) {
    if (static_cast<Kind>(k) == kind) continue;
    auto at = of_[k].find(handle);
    if (at != of_[k].end() && at->second.alive) return {true, static_cast<Kind>(k)};
  }
  return {false, Kind::kPlugin};
}

void Objects::clear() {
  for (auto& all : of_) all.clear();
  for (uint32_t& made : made_) made = 0;
}

std::string name_of(const Object& object) { return fmt::format("{} {}", handle_noun(object.kind), object.number); }

}  // namespace flhal::layers

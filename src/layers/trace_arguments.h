// src/layers/trace_arguments.h: the arguments of a call as JSON, the form that flhal-replay reads.
//
// Handles are numbers, 0 for NULL; structs are objects of their fields; bytes are hexadecimal text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "layers/slot_call.h"

namespace flhal::layers {

// Numbers for handles, per plugin. Equal values of two kinds are two handles.
class HandleNumbers {
 public:
  uint64_t of(Kind kind, const void* handle);   // a new number when it was not seen yet; 0 for nullptr
  uint64_t make(Kind kind, const void* handle); // it was just given out: always a new number
  void drop(Kind kind, const void* handle) { numbers_.erase({kind, handle}); }
  void name(uint64_t number, std::string text) { names_[number] = std::move(text); }
  const std::string& name_of(uint64_t number) { return names_[number]; }
  void forget() { numbers_.clear(); }

 private:
  std::map<std::pair<Kind, const void*>, uint64_t> numbers_;
  std::unordered_map<uint64_t, std::string> names_;   // of functions
};

std::string json_text(std::string_view text);   // with quotes; nullptr is the caller's to see
std::string hex_text(const void* bytes, uint64_t n);

// {"device":1,"stream":2,"what":{...}}, after the call has ended.
std::string arguments_json(const SlotCall& call, HandleNumbers& numbers);
// What the call is about, behind the slot's name in a picture: the operation or the function; "" for most.
std::string subject_of(const SlotCall& call, HandleNumbers& numbers);
// The bytes that came from the host (upload, view that was written), or went there (download that has ended); "" for others.
std::string payload_of(const SlotCall& call);

}  // namespace flhal::layers

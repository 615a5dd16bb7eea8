// src/tools/replay/arguments.h: the words of one call, made from its record.
#pragma once

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/session.h"

namespace flhal::replay {

extern const flhal_host_v1 kReplayHost;

// The call cannot be made here: what it needs was not made, or is code of another process.
struct CannotMake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  Arguments(Session& session, const FlatCall& call);   // throws CannotMake
  uint64_t words[layers::kWords] = {};

  // After the call: handles get their meaning; what came back is compared.
  void take_results(flhal_status answer, std::string* difference);

 private:
  template <typename T>
  T* keep(T value) {                     // for as long as the call
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return kept.get();
  }
  template <typename T>
  T* array(size_t n) { return keep(std::vector<T>(n ? n : 1))->data(); }
  void* handle(Kind kind, uint64_t number) const;
  const Session::Slab& slab(uint64_t number) const;
  const char* text(const cJSON* node);
  unsigned char* bytes(const char* hex);
  template <typename T>
  const T* list(const cJSON* node);
  uint64_t word_of(size_t i, const cJSON* node);
  flhal_p_place place(const cJSON* node);
  flhal_p_copy_v1* copy(const cJSON* node);
  flhal_p_source_v1* source(const cJSON* node);
  flhal_p_launch_v1* launch(const cJSON* node);
  flhal_tensor_v1 tensor(const cJSON* node);
  flhal_attr_v1 attribute(const cJSON* node);
  flhal_op_call_v1* op_call(const cJSON* node);

  Session& session_;
  const FlatCall& call_;
  std::vector<std::shared_ptr<void>> kept_;
  unsigned char* download_ = nullptr;    // where the bytes arrive, to be compared with the payload
};

}  // namespace flhal::replay

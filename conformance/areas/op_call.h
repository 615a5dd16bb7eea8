// conformance/areas/op_call.h: one native operation from planning to the comparison with its reference.
//
// Honesty: a plan that is given has to run; a call that was declined is recorded as not supported and never run.
#pragma once

#include <map>

#include "areas/op_tensor.h"

namespace flhal::conformance {

enum class Accuracy { kExact, kRounded, kTranscendental, kAccumulated };   // as the op set has it

struct OpRow {                               // a row of op_rows.def, which is made from the op set's tables
  uint32_t number;
  const char *name, *family;
  uint32_t n_outputs;
  const char *outputs, *inputs;              // names; `?` may be absent, `+` a group, `=` is read and written, `*` also written
  const char *dtypes, *out_dtype;            // any numeric float integral real; compute bool int64 input accumulate caller
  bool in_place;
  Accuracy accuracy;
};
const std::vector<OpRow>& op_rows();
const OpRow& op_row(const std::string& name);

struct OpCall {
  const OpRow* row = nullptr;
  std::string what;                          // "add f32 transposed"
  std::vector<Tensor> outputs, inputs;
  std::vector<uint32_t> groups;              // empty: every group is 1
  Attributes attributes;
  flhal_dtype compute = 0;
  uint32_t n_in_place = 0;                   // 1: input 0 is output 0

  std::vector<Expected> expected;            // one per output; empty: not compared
  std::map<size_t, Expected> written;        // inputs that are written as well, with what they are afterwards
};

class Plan {                                 // plan_create and plan_destroy
 public:
  Plan(Context& ctx, Device& device, const OpCall& call, bool only_planned = false);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  bool given() const { return handle_ != nullptr; }
  const std::string& reason() const { return reason_; }
  const flhal_plan_info_v1& info() const { return info_; }
  void expect_given() const;                 // not_supported with the plugin's reason otherwise
  // Uploads nothing, compares nothing. With a workspace of its own unless one is given.
  void run(const OpCall& call, Slab* workspace = nullptr) const;
  std::unique_ptr<Slab> workspace() const;   // nullptr: it needs none

 private:
  Device& device_;
  const flhal_ops_v1& ops_;
  flhal_plan_info_v1 info_{};
  flhal_p_plan* handle_ = nullptr;
  std::string reason_;
};

void upload(Device& device, OpCall& call);
void expect_results(Device& device, OpCall& call);      // fetches, compares, looks at guards
void run_and_compare(Context& ctx, OpCall& call);       // all of it

}  // namespace flhal::conformance

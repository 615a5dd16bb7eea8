// reference_plugins/host/program.h: a few oneDNN primitives in a row, ready to run on any thread.
//
// Idea: building a plan appends steps; each argument of a step says where its bytes come from: an operand of the call, or
// a place in the workspace (packed weights, oneDNN's scratchpad). Running sets the pointers and executes.
// Cost of a run besides the primitives: one store per argument and 0.1 us per primitive; no allocation unless two threads
// run the same plan at once.
// Threads: build on one, run on any number at once. oneDNN's memory objects hold the pointers of a run, so each run needs
// its own set: the last one is kept in `spare_` and taken by an atomic exchange.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "onednn.h"

namespace flhal::host {

class Program {
 public:
  // Where bytes come from: operand 0, 1, ..., or an offset in the workspace.
  struct Source {
    int operand;
    uint64_t offset;
  };
  static Source operand(int index) { return {index, 0}; }
  struct Arg {
    int name;                        // DNNL_ARG_*
    Source source;
    const_dnnl_memory_desc_t desc;   // copied by add()
  };

  Program() = default;
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sets workspace aside for the whole run.
  Source reserve(uint64_t bytes);
  // Appends the primitive of `desc`, its scratchpad included. False when oneDNN refuses.
  bool add(const PrimitiveDesc& desc, std::vector<Arg> args);
  // Appends a change of layout or dtype.
  bool add_reorder(Source from, const_dnnl_memory_desc_t from_desc, Source to, const_dnnl_memory_desc_t to_desc);

  // Reserved pieces, then one scratchpad that the steps use in turn.
  uint64_t workspace_bytes() const { return reserved_ + scratch_; }

  // pointers: one per operand. workspace: workspace_bytes() bytes, aligned to 64. False when oneDNN fails.
  bool run(void* const* pointers, void* workspace) const;

 private:
  static constexpr int kWorkspace = -1, kScratch = -2;
  struct Step {
    Primitive primitive;
    uint32_t first_arg, n_args;
  };
  struct Bound {       // one argument of one step
    int name;
    Source source;
    MemoryDesc desc;
  };
  struct Set;          // one dnnl_memory per Bound, and the array that execute wants
  Set* make_set() const;

  std::vector<Step> steps_;
  std::vector<Bound> bound_;
  uint64_t reserved_ = 0, scratch_ = 0;
  mutable std::atomic<Set*> spare_{nullptr};
};

// The attributes every primitive here gets: scratchpad from the caller, and exact float32 whatever the environment says
// (ONEDNN_DEFAULT_FPMATH_MODE would round the inputs of float32 products to bfloat16). `post` may be empty.
PrimitiveAttr exact_attr(const PostOps* post = nullptr);

// Name of the implementation oneDNN chose, e.g. "brg:avx512_core" or "ref:any".
const char* implementation_name(const PrimitiveDesc& desc);

}  // namespace flhal::host

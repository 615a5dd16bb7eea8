// reference_plugins/host/program.cc: building and running chains of primitives.
#include "program.h"

#include <algorithm>
#include <memory>

namespace flhal::host {

struct Program::Set {
  std::vector<dnnl_exec_arg_t> args;   // in the order of bound_; the memories inside are this set's own
  ~Set() {
    for (dnnl_exec_arg_t& a : args) onednn().memory_destroy(a.memory);
  }
};

Program::~Program() { delete spare_.load(); }

Program::Source Program::reserve(uint64_t bytes) {
  Source s{kWorkspace, reserved_};
  reserved_ += (bytes + 63) / 64 * 64;
  return s;
}

bool Program::add(const PrimitiveDesc& desc, std::vector<Arg> args) {
  const OneDnn& d = onednn();
  const_dnnl_memory_desc_t scratch = d.primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  const uint64_t scratch_bytes = scratch ? d.memory_desc_get_size(scratch) : 0;
  if (scratch_bytes) {
    scratch_ = std::max<uint64_t>(scratch_, scratch_bytes);
    args.push_back({DNNL_ARG_SCRATCHPAD, {kScratch, 0}, scratch});
  }
  Step step;
  if (d.primitive_create(step.primitive.out(), desc.get()) != dnnl_success) return false;
  step.first_arg = static_cast<uint32_t>(bound_.size());
  step.n_args = static_cast<uint32_t>(args.size());
  for (const Arg& a : args) {
    Bound bound{a.name, a.source, {}};
    if (d.memory_desc_clone(bound.desc.out(), a.desc) != dnnl_success) return false;
    bound_.push_back(std::move(bound));
  }
  steps_.push_back(std::move(step));
  return true;
}

bool Program::add_reorder(Source from, const_dnnl_memory_desc_t from_desc, Source to, const_dnnl_memory_desc_t to_desc) {
  const OneDnn& d = onednn();
  PrimitiveAttr attr = exact_attr();
  PrimitiveDesc desc;
  return d.reorder_primitive_desc_create(desc.out(), from_desc, d.engine, to_desc, d.engine, attr.get()) == dnnl_success &&
         add(desc, {{DNNL_ARG_FROM, from, from_desc}, {DNNL_ARG_TO, to, to_desc}});
}

Program::Set* Program::make_set() const {
  const OneDnn& d = onednn();
  auto set = std::make_unique<Set>();
  set->args.reserve(bound_.size());
  for (const Bound& b : bound_) {
    dnnl_memory_t memory = nullptr;
    if (d.memory_create(&memory, b.desc.get(), d.engine, DNNL_MEMORY_NONE) != dnnl_success) return nullptr;
    set->args.push_back({b.name, memory});
  }
  return set.release();
}

bool Program::run(void* const* pointers, void* workspace) const {
  const OneDnn& d = onednn();
  std::unique_ptr<Set> set(spare_.exchange(nullptr, std::memory_order_acquire));
  if (!set) set.reset(make_set());
  if (!set) return false;
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Source& s = bound_[i].source;
    char* base = static_cast<char*>(workspace);
    void* p = s.operand >= 0 ? pointers[s.operand] : base + (s.operand == kScratch ? reserved_ : s.offset);
    d.memory_set_data_handle(set->args[i].memory, p);
  }
  bool good = true;
  for (const Step& s : steps_) {
    // With OpenMP execute returns when the work is done; dnnl_stream_wait would only check that again.
    good = d.primitive_execute(s.primitive.get(), d.stream, static_cast<int>(s.n_args), set->args.data() + s.first_arg) ==
           dnnl_success;
    if (!good) break;
  }
  delete spare_.exchange(set.release(), std::memory_order_release);
  return good;
}

PrimitiveAttr exact_attr(const PostOps* post) {
  const OneDnn& d = onednn();
  PrimitiveAttr attr;
  if (d.primitive_attr_create(attr.out()) != dnnl_success) return attr;
  d.primitive_attr_set_scratchpad_mode(attr.get(), dnnl_scratchpad_mode_user);
  d.primitive_attr_set_fpmath_mode(attr.get(), dnnl_fpmath_mode_strict);
  if (post) d.primitive_attr_set_post_ops(attr.get(), post->get());
  return attr;
}

const char* implementation_name(const PrimitiveDesc& desc) {
  const char* name = "";
  onednn().primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name);
  return name;
}

}  // namespace flhal::host

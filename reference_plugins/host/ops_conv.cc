// reference_plugins/host/ops_conv.cc: conv2d and its two gradients by oneDNN.
//
// Idea: oneDNN chooses the layout of weights, and of activations that are not channels_last; where its choice differs from
// the tensor's own layout the program has a reorder, in the workspace. torch's CPU operator does the same.
// Not done: keeping the reordered weights between calls. FLHAL_TENSOR_STABLE says that a weight has not changed so far,
// not that it will not; a copy that outlives a write would be silently wrong (docs/why/host_plugin.md).
#include <cstring>

#include "ops_makers.h"
#include "program.h"

namespace flhal::host {
namespace {

enum class Kind { kForward, kInput, kWeight };

struct ConvShape {
  Kind kind;
  // Operand numbers: which tensor of the call is x (or its gradient), w, out (or its gradient), bias.
  int x, w, y, bias;
  int64_t x_sizes[4], w_sizes[5], y_sizes[4];
  int64_t x_strides[4], w_strides[5], y_strides[4];
  int64_t bias_stride = 1;
  int w_rank;                       // 5 with groups
  int64_t stride[2], padding[2], dilation[2];
  bool channels_last;               // activations stay as they are
  dnnl_data_type_t type;
};

// Strides of a dense tensor in the order N C H W or N H W C; dimensions of size 1 do not count.
bool dense_in_order(const int64_t* sizes, const int64_t* strides, std::initializer_list<int> outer_to_inner) {
  int64_t expected = 1;
  for (auto d = std::rbegin(outer_to_inner); d != std::rend(outer_to_inner); ++d) {
    if (sizes[*d] != 1 && strides[*d] != expected) return false;
    expected *= sizes[*d];
  }
  return true;
}
bool is_nchw(const int64_t* sizes, const int64_t* strides) { return dense_in_order(sizes, strides, {0, 1, 2, 3}); }
bool is_nhwc(const int64_t* sizes, const int64_t* strides) { return dense_in_order(sizes, strides, {0, 2, 3, 1}); }

MemoryDesc activation_desc(const int64_t* sizes, const int64_t* strides, dnnl_data_type_t type, bool prefer_nhwc) {
  const OneDnn& d = onednn();
  MemoryDesc desc;
  // By tag where possible: a dimension of size 1 then has the stride oneDNN expects, and equal layouts compare equal.
  if (prefer_nhwc && is_nhwc(sizes, strides)) d.memory_desc_create_with_tag(desc.out(), 4, sizes, type, dnnl_nhwc);
  else if (is_nchw(sizes, strides)) d.memory_desc_create_with_tag(desc.out(), 4, sizes, type, dnnl_nchw);
  else if (is_nhwc(sizes, strides)) d.memory_desc_create_with_tag(desc.out(), 4, sizes, type, dnnl_nhwc);
  else d.memory_desc_create_with_strides(desc.out(), 4, sizes, type, strides);
  return desc;
}

class ConvPlan final : public flhal_p_plan {
 public:
  explicit ConvPlan(const ConvShape& shape) : s_(shape) {}

  const char* prepare(uint64_t& workspace_bytes) {
    const Program* p = program();
    if (!p) return "oneDNN has no fast convolution for these sizes, layouts and types on this processor";
    workspace_bytes = declared_ = p->workspace_bytes();
    return nullptr;
  }

  flhal_status run(const flhal_op_call_v1& call, void* workspace) const override {
    const SerialWhenNested guard;
    const Program* p = program();
    if (!p) return fail(device->plugin, FLHAL_E_INTERNAL, "host: convolution: oneDNN refused for this number of threads");
    void* pointers[4];
    for (uint32_t i = 0; i < call.n_outputs + call.n_inputs && i < 4; ++i) pointers[i] = pointer_of(tensor_of(call, i));
    Workspace space(workspace, declared_, p->workspace_bytes());
    if (!space.get() && p->workspace_bytes()) return fail(device->plugin, FLHAL_E_HOST_MEMORY, "host: convolution has no memory for its workspace");
    return p->run(pointers, space.get()) ? FLHAL_OK : fail(device->plugin, FLHAL_E_OP_FAILED, "host: oneDNN failed in a convolution");
  }

 private:
  const Program* program() const {
    return program_.get([&] { return build(); });
  }

  std::unique_ptr<Program> build() const {
    const OneDnn& d = onednn();
    MemoryDesc x_user = activation_desc(s_.x_sizes, s_.x_strides, s_.type, s_.channels_last);
    MemoryDesc y_user = activation_desc(s_.y_sizes, s_.y_strides, s_.type, s_.channels_last);
    MemoryDesc w_user, x_any, y_any, w_any, bias;
    const dnnl_format_tag_t activations = s_.channels_last ? dnnl_nhwc : dnnl_format_tag_any;
    bool good = d.memory_desc_create_with_strides(w_user.out(), s_.w_rank, s_.w_sizes, s_.type, s_.w_strides) == dnnl_success &&
                d.memory_desc_create_with_tag(w_any.out(), s_.w_rank, s_.w_sizes, s_.type, dnnl_format_tag_any) == dnnl_success &&
                d.memory_desc_create_with_tag(x_any.out(), 4, s_.x_sizes, s_.type, activations) == dnnl_success &&
                d.memory_desc_create_with_tag(y_any.out(), 4, s_.y_sizes, s_.type, activations) == dnnl_success;
    if (good && s_.bias >= 0) {
      const dnnl_dims_t size = {s_.y_sizes[1]};
      good = d.memory_desc_create_with_tag(bias.out(), 1, size, s_.type, dnnl_a) == dnnl_success;
    }
    if (!good || !x_user || !y_user) return nullptr;

    const dnnl_dims_t stride = {s_.stride[0], s_.stride[1]}, padding = {s_.padding[0], s_.padding[1]};
    const dnnl_dims_t dilation = {s_.dilation[0] - 1, s_.dilation[1] - 1};   // oneDNN counts the gap
    PrimitiveAttr attr = exact_attr();
    PrimitiveDesc forward, desc;
    const dnnl_prop_kind_t prop = s_.kind == Kind::kForward ? dnnl_forward_inference : dnnl_forward_training;
    if (d.convolution_forward_primitive_desc_create(forward.out(), d.engine, prop, dnnl_convolution_direct, x_any.get(),
                                                    w_any.get(), bias.get(), y_any.get(), stride, dilation, padding, padding,
                                                    attr.get()) != dnnl_success)
      return nullptr;
    dnnl_status_t made = dnnl_success;
    if (s_.kind == Kind::kInput)
      made = d.convolution_backward_data_primitive_desc_create(desc.out(), d.engine, dnnl_convolution_direct, x_any.get(),
                                                               w_any.get(), y_any.get(), stride, dilation, padding, padding,
                                                               forward.get(), attr.get());
    else if (s_.kind == Kind::kWeight)
      made = d.convolution_backward_weights_primitive_desc_create(desc.out(), d.engine, dnnl_convolution_direct, x_any.get(),
                                                                  w_any.get(), nullptr, y_any.get(), stride, dilation,
                                                                  padding, padding, forward.get(), attr.get());
    if (made != dnnl_success) return nullptr;
    const PrimitiveDesc& chosen = s_.kind == Kind::kForward ? forward : desc;
    if (std::strncmp(implementation_name(chosen), "ref", 3) == 0) return nullptr;
    return chain(chosen, x_user.get(), w_user.get(), y_user.get(), bias.get());
  }

  // Reorders before, the convolution, the reorder after. Which of x, w, y is the result depends on the kind.
  std::unique_ptr<Program> chain(const PrimitiveDesc& desc, const_dnnl_memory_desc_t x_user, const_dnnl_memory_desc_t w_user,
                                 const_dnnl_memory_desc_t y_user, const_dnnl_memory_desc_t bias) const {
    const OneDnn& d = onednn();
    auto p = std::make_unique<Program>();
    struct Part { int name; int operand; const_dnnl_memory_desc_t user; dnnl_query_t query; bool result; };
    const bool forward = s_.kind == Kind::kForward, input = s_.kind == Kind::kInput, weight = s_.kind == Kind::kWeight;
    const Part parts[3] = {
        {input ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, s_.x, x_user, input ? dnnl_query_diff_src_md : dnnl_query_src_md, input},
        {weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, s_.w, w_user,
         weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md, weight},
        {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, s_.y, y_user, forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md, forward},
    };
    std::vector<Program::Arg> args;
    struct { Program::Source from; const_dnnl_memory_desc_t from_desc; const Part* part; } last{{0, 0}, nullptr, nullptr};
    for (const Part& part : parts) {
      const_dnnl_memory_desc_t own = d.primitive_desc_query_md(desc.get(), part.query, 0);
      if (!own) return nullptr;
      Program::Source source = Program::operand(part.operand);
      if (!d.memory_desc_equal(own, part.user)) {
        source = p->reserve(d.memory_desc_get_size(own));
        if (part.result) last = {source, own, &part};
        else if (!p->add_reorder(Program::operand(part.operand), part.user, source, own)) return nullptr;
      }
      args.push_back({part.name, source, own});
    }
    if (s_.bias >= 0) args.push_back({DNNL_ARG_BIAS, Program::operand(s_.bias), bias});
    if (!p->add(desc, std::move(args))) return nullptr;
    if (last.part && !p->add_reorder(last.from, last.from_desc, Program::operand(last.part->operand), last.part->user))
      return nullptr;
    return p;
  }

  const ConvShape s_;
  uint64_t declared_ = 0;
  PerThreadCount<Program> program_;
};

const char* make(Kind kind, uint32_t op, const flhal_op_call_v1& call, flhal_plan_info_v1& info, std::unique_ptr<flhal_p_plan>& out) {
  if (kind != Kind::kWeight && !make_pointwise_conv2d(call, info, out)) return nullptr;
  ConvShape s{};
  s.kind = kind;
  // forward (out; x, w, bias?)  input (gx; grad, w)  weight (gw; grad, x)
  s.x = kind == Kind::kForward ? 1 : kind == Kind::kInput ? 0 : 2;
  s.w = kind == Kind::kWeight ? 0 : 2;
  s.y = kind == Kind::kForward ? 0 : 1;
  s.bias = kind == Kind::kForward && call.n_inputs > 2 && given(tensor_of(call, 3)) ? 3 : -1;
  const flhal_tensor_v1 &x = tensor_of(call, s.x), &w = tensor_of(call, s.w), &y = tensor_of(call, s.y);
  if (x.rank != 4 || w.rank != 4 || y.rank != 4) return "native convolution takes operands of rank 4";
  if (x.dtype != FLHAL_F32 && x.dtype != FLHAL_BF16) return "native convolution takes float32 and bfloat16";
  s.type = x.dtype == FLHAL_F32 ? dnnl_f32 : dnnl_bf16;
  if (w.dtype != x.dtype || y.dtype != x.dtype || (s.bias >= 0 && tensor_of(call, 3).dtype != x.dtype))
    return "native convolution needs operands of one dtype";
  info.depends_on = FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES;   // from here on also of a refusal
  if (element_count(x) == 0 || element_count(w) == 0 || element_count(y) == 0) return "an empty convolution";
  if (s.bias >= 0 && tensor_of(call, 3).strides[0] != 1 && tensor_of(call, 3).sizes[0] != 1)
    return "native convolution needs a dense bias";

  // The three ops number their attributes alike: stride, padding, dilation, groups.
  const uint32_t keys = op << 8;
  for (uint32_t i = 0; i < 2; ++i) {
    s.stride[i] = element_attr(call, keys | 1, i, 1);
    s.padding[i] = element_attr(call, keys | 2, i, 0);
    s.dilation[i] = element_attr(call, keys | 3, i, 1);
  }
  const int64_t groups = integer_attr(call, keys | 4, 1);
  for (int d = 0; d < 4; ++d) {
    s.x_sizes[d] = x.sizes[d], s.x_strides[d] = x.strides[d];
    s.y_sizes[d] = y.sizes[d], s.y_strides[d] = y.strides[d];
    if ((x.strides[d] == 0 && x.sizes[d] > 1) || (y.strides[d] == 0 && y.sizes[d] > 1) || (w.strides[d] == 0 && w.sizes[d] > 1))
      return "native convolution takes no broadcast operand";
  }
  int at = 0;
  if (groups > 1) s.w_sizes[at] = groups, s.w_strides[at++] = w.strides[0] * (w.sizes[0] / groups);
  s.w_sizes[at] = w.sizes[0] / groups, s.w_strides[at++] = w.strides[0];
  for (int d = 1; d < 4; ++d) s.w_sizes[at] = w.sizes[d], s.w_strides[at++] = w.strides[d];
  s.w_rank = at;
  // A dimension of size 1 may carry any stride; oneDNN wants one that no other dimension contradicts.
  int64_t reach = 1;
  for (int d = at; d-- > 0;) reach = std::max(reach, s.w_strides[d] * s.w_sizes[d]);
  for (int d = 0; d < at; ++d)
    if (s.w_sizes[d] == 1) s.w_strides[d] = reach;
  s.channels_last = is_nhwc(s.x_sizes, s.x_strides) && is_nhwc(s.y_sizes, s.y_strides) &&
                    !(is_nchw(s.x_sizes, s.x_strides) && is_nchw(s.y_sizes, s.y_strides));

  if (onednn().missing) return onednn().missing;
  auto plan = std::make_unique<ConvPlan>(s);
  if (const char* reason = plan->prepare(info.workspace_bytes)) return reason;
  info.workspace_align = 64;
  out = std::move(plan);
  return nullptr;
}

}  // namespace

const char* make_conv2d(const flhal_op_call_v1& c, flhal_plan_info_v1& i, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kForward, FLHAL_OP_CONV2D, c, i, o);
}
const char* make_conv2d_backward_input(const flhal_op_call_v1& c, flhal_plan_info_v1& i, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kInput, FLHAL_OP_CONV2D_BACKWARD_INPUT, c, i, o);
}
const char* make_conv2d_backward_weight(const flhal_op_call_v1& c, flhal_plan_info_v1& i, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kWeight, FLHAL_OP_CONV2D_BACKWARD_WEIGHT, c, i, o);
}

}  // namespace flhal::host

// ops.cc: the native route of the mock: add, mul, matmul and two ops of its own in plain loops. Everything else declines with
// a reason.
//
// add and mul depend on the class of the call alone; matmul depends on the sizes and takes workspace, so that core's exact
// keys and workspaces are in use too.
#include <cstring>

#include "mock.h"

namespace {

enum class Kind { kAdd, kMul, kMatmul, kSquares, kWeighted };
// The vendor ops: known by their names alone. a * a + b * b, and a + weight * b, of two operands that broadcast. The key of an
// attribute is its place among the schema's arguments.
struct VendorOp {
  Kind kind;
  const char *name, *schema;
};
constexpr VendorOp kVendorOps[] = {
    {Kind::kSquares, "mock.sum_of_squares", "mock.sum_of_squares(Tensor a, Tensor b) -> Tensor out"},
    {Kind::kWeighted, "mock.weighted_sum", "mock.weighted_sum(Tensor a, Tensor b, float weight=1.0) -> Tensor out"},
};
constexpr uint32_t kWeightKey = 2;
const VendorOp* vendor_op(const char* name) {
  for (const VendorOp& op : kVendorOps)
    if (strcmp(op.name, name) == 0) return &op;
  return nullptr;
}
constexpr uint32_t kMaxRank = 12;

struct Operand {                    // a tensor, taken by value: the call is only valid while plan_run runs
  const char* inside = nullptr;
  flhal_dtype dtype = 0;
  uint32_t rank = 0;
  int64_t sizes[kMaxRank], strides[kMaxRank];
  alignas(16) char scalar[16];      // of a host scalar
  bool is_scalar = false;
  const char* data() const { return is_scalar ? scalar : inside; }
};

}  // namespace

struct flhal_p_plan {
  flhal_p_device* device;
  Kind kind;
  bool integer;
  flhal_dtype compute;
  double weight;
};

namespace mock {
namespace {

const flhal_tensor_v1& tensor(const flhal_op_call_v1* call, uint32_t i) {
  return *reinterpret_cast<const flhal_tensor_v1*>(reinterpret_cast<const char*>(call->tensors) +
                                                   static_cast<size_t>(i) * call->tensor_stride);
}

bool loads(flhal_dtype d) { return d == FLHAL_F32 || d == FLHAL_F64 || d == FLHAL_I32 || d == FLHAL_I64; }

// `T` is the arithmetic type; every element type of loads() converts to it and back.
template <typename T>
T load(const char* p, flhal_dtype dtype) {
  switch (dtype) {
    case FLHAL_F32: { float v; memcpy(&v, p, 4); return static_cast<T>(v); }
    case FLHAL_F64: { double v; memcpy(&v, p, 8); return static_cast<T>(v); }
    case FLHAL_I32: { int32_t v; memcpy(&v, p, 4); return static_cast<T>(v); }
    default: { int64_t v; memcpy(&v, p, 8); return static_cast<T>(v); }
  }
}
template <typename T>
void store(char* p, flhal_dtype dtype, T value) {
  switch (dtype) {
    case FLHAL_F32: { float v = static_cast<float>(value); memcpy(p, &v, 4); break; }
    case FLHAL_F64: { double v = static_cast<double>(value); memcpy(p, &v, 8); break; }
    case FLHAL_I32: { int32_t v = static_cast<int32_t>(value); memcpy(p, &v, 4); break; }
    default: { int64_t v = static_cast<int64_t>(value); memcpy(p, &v, 8); break; }
  }
}

Operand take(const flhal_tensor_v1& t, std::vector<flhal_p_memory*>* uses) {
  Operand o;
  o.dtype = t.dtype;
  o.rank = t.rank;
  for (uint32_t d = 0; d < t.rank; ++d) o.sizes[d] = t.sizes[d], o.strides[d] = t.strides[d];
  if (t.flags & FLHAL_TENSOR_HOST_SCALAR) {
    o.is_scalar = true;
    memcpy(o.scalar, reinterpret_cast<const void*>(t.address), FLHAL_DTYPE_BYTES(t.dtype));
  } else if (t.memory != nullptr) {
    uses->push_back(t.memory);
    o.inside = t.memory->inside + t.offset;
  }
  return o;
}

// Byte offset of the output's index `at` (rank out_rank) in an input that broadcasts by numpy's rules.
int64_t offset_of(const Operand& o, const int64_t* at, uint32_t out_rank) {
  int64_t elements = 0;
  uint32_t skip = out_rank - o.rank;
  for (uint32_t d = 0; d < o.rank; ++d)
    if (o.sizes[d] != 1) elements += at[skip + d] * o.strides[d];
  return elements * static_cast<int64_t>(FLHAL_DTYPE_BYTES(o.dtype));
}

// Next index in row-major order; false past the end.
bool advance(int64_t* at, const int64_t* sizes, uint32_t rank) {
  for (uint32_t d = rank; d-- > 0;) {
    if (++at[d] < sizes[d]) return true;
    at[d] = 0;
  }
  return false;
}

// numpy's rule, which core checks for the ops it knows. Of a vendor's op it knows the name alone.
bool broadcasts(const flhal_tensor_v1& t, const flhal_tensor_v1& out) {
  if (t.rank > out.rank) return false;
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != out.sizes[out.rank - t.rank + d] && t.sizes[d] != 1) return false;
  return true;
}

template <typename T>
T combine(Kind kind, double weight, T a, T b) {
  if (kind == Kind::kWeighted) return static_cast<T>(static_cast<double>(a) + weight * static_cast<double>(b));
  if constexpr (std::is_integral_v<T>) {   // two's complement, as torch has it
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kind == Kind::kAdd ? x + y : kind == Kind::kMul ? x * y : x * x + y * y);
  } else {
    return kind == Kind::kAdd ? a + b : kind == Kind::kMul ? a * b : a * a + b * b;
  }
}

template <typename T>
void pointwise(Kind kind, double weight, const Operand& out, const Operand& a, const Operand& b) {
  int64_t at[kMaxRank] = {};
  for (uint32_t d = 0; d < out.rank; ++d)
    if (out.sizes[d] == 0) return;
  do {
    T value = combine(kind, weight, load<T>(a.data() + offset_of(a, at, out.rank), a.dtype),
                      load<T>(b.data() + offset_of(b, at, out.rank), b.dtype));
    store(const_cast<char*>(out.inside) + offset_of(out, at, out.rank), out.dtype, value);
  } while (advance(at, out.sizes, out.rank));
}

// One row of the result at a time, summed in double in the workspace (n values).
void matmul(const Operand& out, const Operand& a, const Operand& b, double* row) {
  uint32_t r = out.rank;
  int64_t n = out.sizes[r - 1], k_count = a.sizes[a.rank - 1];
  for (uint32_t d = 0; d < r; ++d)
    if (out.sizes[d] == 0) return;
  auto step = [](const Operand& o, uint32_t from_end) {
    return o.strides[o.rank - from_end] * static_cast<int64_t>(FLHAL_DTYPE_BYTES(o.dtype));
  };
  int64_t at[kMaxRank] = {};                     // all but the last dimension count
  do {
    // The operands' batch dimensions broadcast; their matrix dimensions are set by hand.
    int64_t at_b[kMaxRank] = {};
    memcpy(at_b, at, sizeof at);
    at_b[r - 2] = at_b[r - 1] = 0;
    const char* pa = a.inside + offset_of(a, at, r);
    const char* pb = b.inside + offset_of(b, at_b, r);
    for (int64_t j = 0; j < n; ++j) row[j] = 0;
    for (int64_t k = 0; k < k_count; ++k) {
      double x = load<double>(pa + k * step(a, 1), a.dtype);
      for (int64_t j = 0; j < n; ++j) row[j] += x * load<double>(pb + k * step(b, 2) + j * step(b, 1), b.dtype);
    }
    char* po = const_cast<char*>(out.inside) + offset_of(out, at, r);
    for (int64_t j = 0; j < n; ++j) store(po + j * step(out, 1), out.dtype, row[j]);
  } while (advance(at, out.sizes, r - 1));
}

flhal_status decline(flhal_p_device* device, flhal_plan_info_v1* info, const char* reason) {
  info->reason = reason;
  device->counts().declines.fetch_add(1, std::memory_order_relaxed);
  return FLHAL_DECLINED;
}

bool listed(const std::vector<std::string>& names, const char* name) {
  for (const std::string& n : names)
    if (n == name || n == "all") return true;
  return false;
}

flhal_status plan_create(flhal_p_device* device, const flhal_op_call_v1* call, flhal_plan_info_v1* info, flhal_p_plan** out) {
  if (flhal_status s = slot_begin(Slot::plan_create, device->chip); s != FLHAL_OK) return s;
  device->counts().plan_creates.fetch_add(1, std::memory_order_relaxed);
  if (flhal_needed_extension(call->next) || flhal_needed_extension(info->next))
    return decline(device, info, "the call needs an extension that the mock does not know");
  if (listed(script().no_op, call->name)) return decline(device, info, "the script takes this op away");
  Kind kind;
  if (strcmp(call->name, "add") == 0) kind = Kind::kAdd;
  else if (strcmp(call->name, "mul") == 0) kind = Kind::kMul;
  else if (strcmp(call->name, "matmul") == 0) kind = Kind::kMatmul;
  else if (const VendorOp* own = vendor_op(call->name)) kind = own->kind;
  else return decline(device, info, "mock has add, mul and matmul only");

  double weight = 1;
  for (uint32_t i = 0; i < call->n_attrs; ++i) {
    const auto& attr = *reinterpret_cast<const flhal_attr_v1*>(reinterpret_cast<const char*>(call->attrs) + size_t{i} * call->attr_stride);
    if (kind != Kind::kWeighted || attr.key != kWeightKey || attr.kind != FLHAL_ATTR_FLOAT || (attr.flags & FLHAL_ATTR_DYNAMIC))
      return decline(device, info, "mock takes default attributes only");
    weight = attr.v.f;
  }
  if (call->n_outputs != 1) return decline(device, info, "mock writes one output");
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < 1 + call->n_inputs; ++i) {
    const flhal_tensor_v1& t = tensor(call, i);
    if (t.flags & FLHAL_TENSOR_ABSENT) continue;
    if (i > 0) ++inputs;
    if (t.layout != 0) return decline(device, info, "mock takes strided operands only");
    if (t.rank > kMaxRank) return decline(device, info, "mock takes at most 12 dimensions");
    if (!loads(t.dtype)) return decline(device, info, "mock computes with float32, float64, int32 and int64 only");
    if (kind == Kind::kMatmul && (t.rank < 2 || (t.flags & FLHAL_TENSOR_HOST_SCALAR)))
      return decline(device, info, "mock multiplies matrices only");
  }
  if (inputs != 2 || (kind == Kind::kSquares && call->n_inputs != 2)) return decline(device, info, "mock takes two inputs");
  // Core has no rule for the arithmetic type of an op it does not know: 0 unless the caller chose one.
  const flhal_dtype compute = vendor_op(call->name) && call->compute_dtype == 0 ? tensor(call, 0).dtype : call->compute_dtype;
  if (!loads(compute)) return decline(device, info, "mock computes with float32, float64, int32 and int64 only");
  bool integer = FLHAL_DTYPE_CODE(compute) == 0;
  if (kind == Kind::kMatmul && integer) return decline(device, info, "mock multiplies matrices of floats only");
  if (kind == Kind::kMatmul && call->alias == FLHAL_ALIAS_EXACT)
    return decline(device, info, "mock cannot multiply matrices in place");

  info->depends_on = 0;
  if (kind == Kind::kMatmul) {
    const flhal_tensor_v1& result = tensor(call, 0);
    info->depends_on = FLHAL_DEPENDS_SIZES;
    if (script().max_rows != 0 && static_cast<uint64_t>(result.sizes[result.rank - 2]) > script().max_rows)
      return decline(device, info, "the script takes matrices of so many rows away");
    info->workspace_bytes = static_cast<uint64_t>(result.sizes[result.rank - 1]) * sizeof(double);
    info->workspace_align = 64;
  }
  *out = new flhal_p_plan{device, kind, integer, compute, weight};
  device->counts().live_plans.fetch_add(1, std::memory_order_relaxed);
  return FLHAL_OK;
}

flhal_status plan_run(flhal_p_plan* plan, flhal_p_stream* stream, const flhal_op_call_v1* call, const flhal_p_place* workspace) {
  flhal_p_device* device = plan->device;
  if (flhal_status s = slot_begin(Slot::plan_run, device->chip); s != FLHAL_OK) return s;
  // For ops of the op set core has looked at the shapes. A plan of a class serves every size, so here is the place.
  const bool vendors = plan->kind == Kind::kSquares || plan->kind == Kind::kWeighted;
  if (vendors && !(broadcasts(tensor(call, 1), tensor(call, 0)) && broadcasts(tensor(call, 2), tensor(call, 0))))
    return fail(FLHAL_E_INVALID, std::string(call->name) + ": an input does not broadcast to the shape of the output");
  std::vector<flhal_p_memory*> uses;
  struct Operands { Operand out, a, b; };
  auto o = std::make_shared<Operands>();
  o->out = take(tensor(call, 0), &uses);
  o->a = take(tensor(call, 1), &uses);
  o->b = take(tensor(call, 2), &uses);
  double* row = nullptr;
  if (plan->kind == Kind::kMatmul && o->out.sizes[o->out.rank - 1] != 0) {
    if (workspace == nullptr || workspace->memory == nullptr) {
      misuse(device->chip, "plan_run without the workspace its plan asked for");
      return fail(FLHAL_E_INVALID, "mock: plan_run: the plan needs a workspace and got none");
    }
    uses.push_back(workspace->memory);
    row = reinterpret_cast<double*>(inside_of(*workspace));
  }
  Kind kind = plan->kind;
  double weight = plan->weight;
  bool integer = plan->integer, single = plan->compute == FLHAL_F32;
  flhal_status answer = submit(device, stream, Slot::plan_run, std::move(uses), [=]() -> Outcome {
    if (kind == Kind::kMatmul) matmul(o->out, o->a, o->b, row);
    else if (integer) pointwise<int64_t>(kind, weight, o->out, o->a, o->b);
    else if (single) pointwise<float>(kind, weight, o->out, o->a, o->b);
    else pointwise<double>(kind, weight, o->out, o->a, o->b);
    return {};
  });
  if (answer == FLHAL_OK) device->counts().plan_runs.fetch_add(1, std::memory_order_relaxed);
  return answer;
}

void plan_destroy(flhal_p_plan* plan) {
  plan->device->counts().live_plans.fetch_sub(1, std::memory_order_relaxed);
  delete plan;
}

flhal_status op_describe(flhal_p_plugin*, uint32_t i, const char** name, const char** schema) {
  if (i >= sizeof kVendorOps / sizeof *kVendorOps) return FLHAL_DECLINED;
  *name = kVendorOps[i].name;
  *schema = kVendorOps[i].schema;
  return FLHAL_OK;
}

}  // namespace

const flhal_ops_v1 kOps = {sizeof(flhal_ops_v1), FLHAL_ST_OPS, nullptr, 0, 0, plan_create, plan_run, plan_destroy, op_describe};

}  // namespace mock

// reference_plugins/host/ops_matmul.cc: matmul by oneDNN.
//
// Two programs: `fused` computes a@b plus a bias row; `plain` computes a@b alone, and a loop of ours then makes
// alpha * ab + beta * c of it. alpha and beta change from call to call (a learning rate, a scale), so a plan must answer
// all values; the usual 1 and 1 with a row for c costs no second pass.
// Full c goes through the loop too: oneDNN's binary post-op does it in one pass, but reads c in the result's layout.
// Measured on 2 cores of an AVX-512 machine: docs/why/host_plugin.md.
#include <cstdlib>
#include <cstring>

#include "matmul_shape.h"
#include "ops_makers.h"
#include "program.h"
#include "threads.h"

namespace flhal::host {
namespace {

// Multiply-adds up to which the portable kernel wins: 16x16x16 costs 0.55 us there, 0.5 us plus a primitive per shape here.
constexpr int64_t kSmall = 4096;

dnnl_data_type_t dnnl_type(flhal_dtype t) { return t == FLHAL_F32 ? dnnl_f32 : t == FLHAL_BF16 ? dnnl_bf16 : dnnl_data_type_undef; }

float load(const void* p, int64_t i, flhal_dtype t) {
  if (t == FLHAL_F32) return static_cast<const float*>(p)[i];
  uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(p)[i]) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
void store(void* p, int64_t i, flhal_dtype t, float f) {
  if (t == FLHAL_F32) {
    static_cast<float*>(p)[i] = f;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits + 0x7fffu + (bits >> 16 & 1);   // to nearest even
  static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(bits >> 16);
}

class MatmulPlan final : public flhal_p_plan {
 public:
  MatmulPlan(const MatmulShape& shape, flhal_dtype dtype) : s_(shape), dtype_(dtype) {}

  // Builds what the first call will need, and says how much workspace that is. Static text when oneDNN refuses.
  const char* prepare(bool fused, uint64_t& workspace_bytes) {
    const Program* p = program(fused);
    if (!p) return refusal_;
    workspace_bytes = declared_ = p->workspace_bytes();
    return nullptr;
  }

  flhal_status run(const flhal_op_call_v1& call, void* workspace) const override {
    const float alpha = static_cast<float>(number_attr(call, FLHAL_ATTR_MATMUL_ALPHA, 1.0));
    const float beta = s_.has_c ? static_cast<float>(number_attr(call, FLHAL_ATTR_MATMUL_BETA, 1.0)) : 0.0f;
    const bool fused = s_.c_is_row() && alpha == 1.0f && beta == 1.0f;
    const SerialWhenNested guard;
    const Program* p = program(fused);
    if (!p) return fail(device->plugin, FLHAL_E_INTERNAL, std::string("host: matmul: ") + refusal_);
    void* pointers[4];
    for (uint32_t i = 0; i < 1 + call.n_inputs && i < 4; ++i) pointers[i] = pointer_of(tensor_of(call, i));
    Workspace space(workspace, declared_, p->workspace_bytes());
    if (!space.get() && p->workspace_bytes()) return fail(device->plugin, FLHAL_E_HOST_MEMORY, "host: matmul has no memory for its workspace");
    if (!p->run(pointers, space.get())) return fail(device->plugin, FLHAL_E_OP_FAILED, "host: oneDNN failed in matmul");
    if (fused) return FLHAL_OK;
    if (dtype_ == FLHAL_F32) {
      if (alpha != 1.0f || beta != 0.0f)
        finish(pointers[0], pointers[0], dtype_, false, beta != 0.0f ? pointers[3] : nullptr, alpha, beta);
    } else {
      finish(space.get(), pointers[0], FLHAL_F32, true, beta != 0.0f ? pointers[3] : nullptr, alpha, beta);
    }
    return FLHAL_OK;
  }

 private:
  const Program* program(bool fused) const {
    return (fused ? fused_ : plain_).get([&] { return build(fused); });
  }

  std::unique_ptr<Program> build(bool fused) const {
    const OneDnn& d = onednn();
    const uint32_t rank = s_.n_batch + 2;
    dnnl_dims_t a, b, out, bias, a_s, b_s, out_s, bias_s, dense_s;
    int64_t dense = s_.m * s_.n;
    for (uint32_t i = s_.n_batch; i-- > 0;) {
      const MatmulShape::Batch& x = s_.batch[i];
      // A broadcast dimension has size 1 for oneDNN; its stride must still look sane.
      a[i] = x.a ? x.size : 1, a_s[i] = x.a ? x.a : s_.m * s_.k;
      b[i] = x.b ? x.size : 1, b_s[i] = x.b ? x.b : s_.k * s_.n;
      out[i] = x.size, out_s[i] = x.out, bias[i] = 1, bias_s[i] = s_.n;
      dense_s[i] = dense, dense *= x.size;
    }
    const uint32_t r = s_.n_batch, c = r + 1;
    a[r] = s_.m, a[c] = s_.k, a_s[r] = s_.a_m, a_s[c] = s_.a_k;
    b[r] = s_.k, b[c] = s_.n, b_s[r] = s_.b_k, b_s[c] = s_.b_n;
    out[r] = s_.m, out[c] = s_.n, out_s[r] = s_.out_m, out_s[c] = s_.out_n;
    bias[r] = 1, bias[c] = s_.n, bias_s[r] = s_.n, bias_s[c] = 1;
    dense_s[r] = s_.n, dense_s[c] = 1;

    const dnnl_data_type_t type = dnnl_type(dtype_);
    const bool own_result = !fused && dtype_ != FLHAL_F32;   // a float32 result in the workspace, rounded once by finish()
    MemoryDesc a_d, b_d, out_d, bias_d;
    bool good = d.memory_desc_create_with_strides(a_d.out(), rank, a, type, a_s) == dnnl_success &&
                d.memory_desc_create_with_strides(b_d.out(), rank, b, type, b_s) == dnnl_success &&
                d.memory_desc_create_with_strides(out_d.out(), rank, out, own_result ? dnnl_f32 : type,
                                                  own_result ? dense_s : out_s) == dnnl_success;
    if (good && fused) good = d.memory_desc_create_with_strides(bias_d.out(), rank, bias, type, bias_s) == dnnl_success;
    PrimitiveAttr attr = exact_attr();
    PrimitiveDesc desc;
    if (!good || d.matmul_primitive_desc_create(desc.out(), d.engine, a_d.get(), b_d.get(), fused ? bias_d.get() : nullptr,
                                                out_d.get(), attr.get()) != dnnl_success)
      return nullptr;
    if (std::strncmp(implementation_name(desc), "ref", 3) == 0) return nullptr;
    auto p = std::make_unique<Program>();
    std::vector<Program::Arg> args = {{DNNL_ARG_SRC, Program::operand(s_.a), a_d.get()},
                                      {DNNL_ARG_WEIGHTS, Program::operand(s_.b), b_d.get()}};
    args.push_back({DNNL_ARG_DST, own_result ? p->reserve(static_cast<uint64_t>(dense) * 4) : Program::operand(0), out_d.get()});
    if (fused) args.push_back({DNNL_ARG_BIAS, Program::operand(3), bias_d.get()});
    return p->add(desc, std::move(args)) ? std::move(p) : nullptr;
  }

  // out = alpha * ab + beta * c. ab is out itself, or a dense float32 result.
  void finish(const void* ab, void* out, flhal_dtype ab_type, bool ab_dense, const void* c, float alpha, float beta) const {
    const int64_t rows = s_.batch_count() * s_.m;
    // A range of rows is worth a thread from some 32k elements on.
    const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(rows, rows * s_.n / 32768));
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      const int64_t begin = rows * first / pieces, end = rows * (first + count) / pieces;
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row / s_.m, at_out = row % s_.m * s_.out_m, at_c = row % s_.m * s_.c_m;
        for (uint32_t i = s_.n_batch; i-- > 0; rest /= s_.batch[i].size) {
          at_out += rest % s_.batch[i].size * s_.batch[i].out;
          at_c += rest % s_.batch[i].size * s_.batch[i].c;
        }
        const int64_t at_ab = ab_dense ? row * s_.n : at_out;
        if (dtype_ == FLHAL_F32) {
          float* o = static_cast<float*>(out) + at_out;   // ab is out
          const float* cc = static_cast<const float*>(c) + at_c;
          if (!c) for (int64_t j = 0; j < s_.n; ++j) o[j] *= alpha;
          else if (s_.c_n == 1) for (int64_t j = 0; j < s_.n; ++j) o[j] = alpha * o[j] + beta * cc[j];
          else for (int64_t j = 0; j < s_.n; ++j) o[j] = alpha * o[j] + beta * cc[j * s_.c_n];
        } else {
          for (int64_t j = 0; j < s_.n; ++j) {
            float v = alpha * load(ab, at_ab + j, ab_type);
            if (c) v += beta * load(c, at_c + j * s_.c_n, dtype_);
            store(out, at_out + j, dtype_, v);
          }
        }
      }
    });
  }

  const MatmulShape s_;
  const flhal_dtype dtype_;
  uint64_t declared_ = 0;   // workspace the plan asked core for
  PerThreadCount<Program> fused_, plain_;
  static constexpr const char* refusal_ = "oneDNN has no fast matmul for these layouts and types on this processor";
};

}  // namespace

const char* make_matmul(const flhal_op_call_v1& call, flhal_plan_info_v1& info, std::unique_ptr<flhal_p_plan>& out) {
  const flhal_dtype dtype = tensor_of(call, 0).dtype;
  if (dtype != FLHAL_F32 && dtype != FLHAL_BF16) return "native matmul takes float32 and bfloat16";
  for (uint32_t i = 1; i < 1 + call.n_inputs; ++i)
    if (given(tensor_of(call, i)) && tensor_of(call, i).dtype != dtype) return "native matmul needs operands of one dtype";
  if (call.compute_dtype != dtype && call.compute_dtype != FLHAL_F32 && call.compute_dtype != 0)
    return "native matmul computes in float32 only";
  // From here on also a refusal is one of these sizes and strides; above, of the whole class.
  info.depends_on = FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES;
  MatmulShape shape;
  if (const char* reason = read_matmul(call, shape)) return reason;
  if (dtype == FLHAL_F32 && is_row_product(shape)) {
    out = make_row_product(shape);
    return nullptr;
  }
  if (shape.batch_count() * shape.m * shape.n * shape.k <= kSmall) return "so small a matmul is faster as a portable kernel";
  if (onednn().missing) return onednn().missing;

  const bool fused = shape.c_is_row() && number_attr(call, FLHAL_ATTR_MATMUL_ALPHA, 1.0) == 1.0 &&
                     number_attr(call, FLHAL_ATTR_MATMUL_BETA, 1.0) == 1.0;
  auto plan = std::make_unique<MatmulPlan>(shape, dtype);
  if (const char* reason = plan->prepare(fused, info.workspace_bytes)) return reason;
  info.workspace_align = 64;
  out = std::move(plan);
  return nullptr;
}

}  // namespace flhal::host

// csrc/ops/random.cc: random numbers. Every one comes from flhal's Philox with the device generator's seed and offset, so a
// seed gives the same numbers on every chip; none is drawn from the CPU's generator.
#include <ATen/Dispatch.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>
#include <limits>

#include "csrc/config.h"
#include "csrc/copy.h"
#include "csrc/generator.h"
#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

flhal_philox take(Frame& f, const c10::IValue& generator, int64_t n) {
  std::optional<at::Generator> g;
  if (generator.isGenerator()) g = generator.toGenerator();
  return take_philox(g, f.device, static_cast<uint64_t>((n + 3) / 4));
}

bool draw_uniform(Frame& f, const at::Tensor& t, const flhal_philox& p, double from, double to) {
  OpCall call(FLHAL_OP_UNIFORM, t.scalar_type());
  call.out(t);
  call.attr(FLHAL_ATTR_UNIFORM_PHILOX, &p);
  call.attr(FLHAL_ATTR_UNIFORM_FROM, from, true);
  call.attr(FLHAL_ATTR_UNIFORM_TO, to, true);
  return f.submit(call);
}

bool draw_bernoulli(Frame& f, const at::Tensor& t, const flhal_philox& p, double probability) {
  OpCall call(FLHAL_OP_BERNOULLI, t.scalar_type());
  call.out(t);
  call.attr(FLHAL_ATTR_BERNOULLI_PHILOX, &p);
  call.attr(FLHAL_ATTR_BERNOULLI_P, probability, true);
  return f.submit(call);
}

// Random ops have no CPU fallback under any policy: the CPU would draw other numbers.
bool refuse(Frame& f, const char* what) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, f.entry.name, ": ", what, " (", decline_reason(), ") and it never falls back to the CPU (fallback policy ",
                              config_text("fallback_policy"), "): the CPU's generator would draw other numbers; use a dtype that the device draws "
                              "(float32), or draw on the CPU and move the result");
}

// The largest value random_() may give, per dtype.
int64_t full_range(c10::ScalarType type) {
  switch (type) {
    case at::kBool: return 2;
    case at::kByte: return 256;
    case at::kChar: return 128;
    case at::kShort: return int64_t{1} << 15;
    case at::kInt: return int64_t{1} << 31;
    case at::kHalf: return (int64_t{1} << 11) + 1;
    case at::kBFloat16: return (int64_t{1} << 8) + 1;
    case at::kFloat: return (int64_t{1} << 24) + 1;
    case at::kDouble: return (int64_t{1} << 53) + 1;
    default: return std::numeric_limits<int64_t>::max();
  }
}

// The refusals of torch's CPU operators; their Meta functions do not check.
void check_uniform(const at::Tensor& self, double from, double to) {
  const c10::ScalarType type = c10::toRealValueType(self.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(type), "\"check_uniform_bounds\" not implemented for '", c10::toString(type), "'");
  const double largest = type == at::kHalf     ? 65504.0
                         : type == at::kDouble ? std::numeric_limits<double>::max()
                         : type == at::kBFloat16 ? static_cast<double>(std::numeric_limits<c10::BFloat16>::max())
                                               : static_cast<double>(std::numeric_limits<float>::max());
  TORCH_CHECK(from >= -largest && from <= largest, "from is out of bounds for ", type);
  TORCH_CHECK(to >= -largest && to <= largest, "to is out of bounds for ", type);
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  TORCH_CHECK(to - from <= largest, "uniform_ expects to-from <= std::numeric_limits<", c10::toString(type),
              ">::max(), but found to=", to, " and from=", from, " which result in to-from to exceed the limit");
}

void check_probability(double p) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}

// Every one of them. What a kernel draws by a number that is no probability looks like any other result, so the host waits for
// the least and the greatest; bernoulli by a tensor is no part of a training step (dropout takes a number).
void check_probabilities(const at::Tensor& p) {
  if (in_dry_run()) return;
  const bool fits = p.is_cpu() ? p.item().toDouble() >= 0 && p.item().toDouble() <= 1
                               : at::amin(p).item().toDouble() >= 0 && at::amax(p).item().toDouble() <= 1;   // NaN is neither
  TORCH_CHECK(fits, "Expected p_in >= 0 && p_in <= 1 to be true, but got false: bernoulli draws by probabilities, all in [0, 1]");
}

// out= of bernoulli may be of any type that holds 0 and 1; PyTorch's Meta kernel wants the probabilities' own.
void take_any_out(Frame& f, const at::Tensor& probability) {
  const at::Tensor& out = f.args[f.entry.first_out].toTensor();
  const c10::ScalarType type = out.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(!c10::isComplexType(type) && !c10::isBarebonesUnsignedType(type),
                              "\"bernoulli_tensor_cpu_self_\" not implemented for '", type, "'");
  if (out.sizes() != probability.sizes()) resize_output(out, probability.sizes());
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, probability);
  f.results.push_back(out);
}

// random_ draws whole numbers: those that the dtype can hold, integers exactly.
void check_random_range(c10::ScalarType type, int64_t from, int64_t to) {
  TORCH_CHECK(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  TORCH_CHECK(!c10::isComplexType(type), "check_random_bounds handles only integral, floating-point and boolean types");
  if (c10::isFloatingType(type)) return;
  const int bits = static_cast<int>(c10::elementSize(type)) * 8;
  const bool is_signed = c10::isSignedType(type);
  const int64_t highest = type == at::kBool ? 1 : bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const int64_t lowest = !is_signed ? 0 : bits == 64 ? std::numeric_limits<int64_t>::min() : -highest - 1;
  TORCH_CHECK(from >= lowest && from <= highest, "from is out of bounds for ", caffe2::TypeMeta::fromScalarType(type));
  TORCH_CHECK(to - 1 >= lowest && to - 1 <= highest, "to - 1 is out of bounds for ", caffe2::TypeMeta::fromScalarType(type));
}

// A complex tensor is drawn as its real and imaginary parts.
at::Tensor parts_of(const at::Tensor& t) { return t.is_complex() ? at::view_as_real(t) : t; }

// out = x * mask * scale
bool scaled_mask(Frame& f, const at::Tensor& out, const at::Tensor& x, const at::Tensor& mask, double scale) {
  OpCall call(FLHAL_OP_ADDCMUL, out.scalar_type());
  call.out(out);
  call.in_scalar(c10::Scalar(0), c10::isReducedFloatingType(out.scalar_type()) ? at::kFloat : out.scalar_type());
  call.in(x);
  call.in(mask);
  if (scale != 1.0) call.attr(FLHAL_ATTR_ADDCMUL_VALUE, scale, true);
  return f.submit(call);
}

}  // namespace

// uniform_(self, from, to, generator)
bool uniform(Frame& f) {
  check_uniform(f.result(), f.args[1].toDouble(), f.args[2].toDouble());
  const at::Tensor self = parts_of(f.result());
  if (self.numel() == 0) return true;
  flhal_philox p = take(f, f.args[3], self.numel());
  return draw_uniform(f, self, p, f.args[1].toDouble(), f.args[2].toDouble()) || refuse(f, "no device kernel draws it");
}

// normal_(self, mean, std, generator)
bool normal(Frame& f) {
  const at::Tensor self = parts_of(f.result());
  if (self.numel() == 0) return true;
  flhal_philox p = take(f, f.args[3], self.numel());
  // Of a complex number each part has half the variance.
  const double deviation = f.args[2].toDouble() / (f.result().is_complex() ? std::sqrt(2.0) : 1.0);
  OpCall call(FLHAL_OP_NORMAL, self.scalar_type());
  call.out(self);
  call.attr(FLHAL_ATTR_NORMAL_PHILOX, &p);
  call.attr(FLHAL_ATTR_NORMAL_MEAN, f.args[1].toDouble(), true);
  call.attr(FLHAL_ATTR_NORMAL_STD, deviation, true);
  return f.submit(call) || refuse(f, "no device kernel draws it");
}

// bernoulli_.float(self, p, generator)
bool bernoulli(Frame& f) {
  const at::Tensor& self = f.result();
  check_probability(f.args[1].toDouble());
  if (self.numel() == 0) return true;
  flhal_philox p = take(f, f.args[2], self.numel());
  return draw_bernoulli(f, self, p, f.args[1].toDouble()) || refuse(f, "no device kernel draws it");
}

// bernoulli_.Tensor(self, p, generator), bernoulli.out(p, generator, out): u < p
bool bernoulli_by(Frame& f) {
  const bool inplace = f.entry.form == Form::kInplace;
  const at::Tensor& probability = f.tensor(inplace ? 1 : 0);
  if (!inplace) take_any_out(f, probability);
  const at::Tensor& out = f.result();
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(probability.scalar_type()), "\"bernoulli_tensor_cpu_p_\" not implemented for '",
                              probability.scalar_type(), "'");
  if (out.numel() == 0) return true;
  check_probabilities(probability);
  flhal_philox p = take(f, f.args[inplace ? 2 : 1], out.numel());
  at::Tensor u = f.temporary(out.sizes(), at::kFloat);
  OpCall call(FLHAL_OP_LT, probability.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  call.out(out);
  call.in(u);
  if (probability.is_cpu()) call.in_host(probability.unsafeGetTensorImpl());
  else call.in(probability);
  return (draw_uniform(f, u, p, 0, 1) && f.submit(call)) || refuse(f, "no device kernel draws it");
}

// random_(self, generator), random_.to(self, to, generator), random_.from(self, from, to?, generator)
bool random_int(Frame& f) {
  const at::Tensor& self = f.result();
  const uint32_t n = f.n_inputs();
  int64_t from = 0, to = full_range(self.scalar_type());
  if (n == 3) to = f.args[1].toInt();
  if (n == 4) {
    from = f.args[1].toInt();
    if (!f.args[2].isNone()) to = f.args[2].toInt();
  }
  if (n > 2) check_random_range(self.scalar_type(), from, to);
  if (self.numel() == 0) return true;
  flhal_philox p = take(f, f.args[n - 1], self.numel());
  OpCall call(FLHAL_OP_RANDINT, self.scalar_type());
  call.out(self);
  call.attr(FLHAL_ATTR_RANDINT_PHILOX, &p);
  call.attr(FLHAL_ATTR_RANDINT_FROM, from, true);
  call.attr(FLHAL_ATTR_RANDINT_TO, to, true);
  return f.submit(call) || refuse(f, "no device kernel draws it");
}

// exponential_(self, lambd, generator): -log(u) / lambd with u in (0, 1]
bool exponential(Frame& f) {
  const at::Tensor& self = f.result();
  TORCH_CHECK(f.args[1].toDouble() > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", f.args[1].toDouble());
  if (self.numel() == 0) return true;
  flhal_philox p = take(f, f.args[2], self.numel());
  const bool wide = self.scalar_type() == at::kDouble;
  at::Tensor u = f.temporary(self.sizes(), wide ? at::kDouble : at::kFloat);
  OpCall log(FLHAL_OP_LOG, u.scalar_type());
  log.out(u);
  log.in(u);
  OpCall scale(FLHAL_OP_MUL, u.scalar_type());
  scale.out(self);
  scale.in(u);
  scale.in_scalar(c10::Scalar(-1.0 / f.args[1].toDouble()), u.scalar_type());
  // 1 and above 0: [0, 1) turned round.
  return (draw_uniform(f, u, p, 1, 0) && f.submit(log) && f.submit(scale)) || refuse(f, "no device kernel draws it");
}

// native_dropout(input, p, train?) -> (out, mask)
bool native_dropout(Frame& f) {
  const at::Tensor &x = f.tensor(0), &out = f.result(0), &mask = f.result(1);
  if (x.numel() == 0) return true;
  const double p = f.args[1].toDouble();
  const bool train = f.args[2].isNone() || f.args[2].toBool();
  const double keep = train ? 1.0 - p : 1.0;
  if (keep == 1.0 || keep == 0.0) {
    OpCall fill(FLHAL_OP_FILL, at::kBool);
    fill.out(mask);
    fill.in_scalar(c10::Scalar(keep == 1.0), at::kBool);
    return (f.submit(fill) && scaled_mask(f, out, x, mask, 1.0)) || refuse(f, "no device kernel draws it");
  }
  flhal_philox philox = take(f, c10::IValue(), x.numel());
  return (draw_bernoulli(f, mask, philox, keep) && scaled_mask(f, out, x, mask, 1.0 / keep)) ||
         refuse(f, "no device kernel draws it");
}

// native_dropout_backward(grad_output, mask, scale)
bool native_dropout_backward(Frame& f) {
  if (!c10::isFloatingType(f.tensor(0).scalar_type())) return f.decline("dropout of integers");
  f.results.push_back(at::empty_like(f.tensor(0)));   // the Meta kernel forgets the strides
  if (f.result().numel() == 0) return true;
  return scaled_mask(f, f.result(), f.tensor(0), f.tensor(1), f.args[2].toDouble());
}

// randperm.generator_out(n, generator, out): the order of random keys.
bool randperm(Frame& f) {
  const at::Tensor& out = f.result();
  const int64_t n = out.numel();
  if (n == 0) return true;
  flhal_philox p = take(f, f.args[1], n);
  at::Tensor keys = f.temporary({n}, at::kLong);
  OpCall call(FLHAL_OP_RANDINT, at::kLong);
  call.out(keys);
  call.attr(FLHAL_ATTR_RANDINT_PHILOX, &p);
  call.attr(FLHAL_ATTR_RANDINT_FROM, int64_t{0}, true);
  call.attr(FLHAL_ATTR_RANDINT_TO, std::numeric_limits<int64_t>::max(), true);
  if (!f.submit(call)) return refuse(f, "no device kernel draws it");
  if (!in_dry_run()) copy_into(out, at::argsort(keys, /*stable=*/true), false);
  return true;
}

}  // namespace torch_fl

// src/dispatch/opset/window_rules.cc: shape rules of convolution and pooling.
#include "dispatch/opset/rule_text.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

// Attribute slots of the conv rows.
enum { kStride = 0, kPadding = 1, kDilation = 2, kGroups = 3 };

// Attributes come as they are. Below this, sizes being below 2^56, sums and products of them stay in 64 bits.
constexpr int64_t kLargest = 1ll << 31;

int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil) {
  int64_t reach;
  if (__builtin_mul_overflow(dilation, kernel - 1, &reach) || reach > size + 2 * padding - 1) return 0;
  int64_t span = size + 2 * padding - reach - 1;
  int64_t n = (span + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (n - 1) * stride >= size + padding) --n;   // the last window must start inside x or its left padding
  return n;
}

// out = conv(x, w): checks the pieces against each other.
bool conv_fits(const CallView& v, const flhal_tensor& x, const flhal_tensor& w, int64_t* out, std::string* why) {
  if (x.rank != 4 || w.rank != 4) return refuse(why, "x {} and w {} need rank 4", sizes_text(x), sizes_text(w));
  int64_t groups = v.integer(kGroups), channels;
  if (groups < 1 || __builtin_mul_overflow(w.sizes[1], groups, &channels) || x.sizes[1] != channels || w.sizes[0] % groups != 0)
    return refuse(why, "{} channels of x {} do not fit w {} in {} groups", x.sizes[1], sizes_text(x), sizes_text(w),
                  groups);
  out[0] = x.sizes[0];
  out[1] = w.sizes[0];
  for (uint32_t i = 0; i < 2; ++i) {
    int64_t s = v.element(kStride, i), p = v.element(kPadding, i), d = v.element(kDilation, i);
    if (s < 1 || d < 1 || p < 0 || s > kLargest || d > kLargest || p > kLargest)
      return refuse(why, "stride {}, dilation {}, padding {} of dimension {}", s, d, p, i + 2);
    out[2 + i] = window_count(x.sizes[2 + i], w.sizes[2 + i], s, p, d, false);
    if (out[2 + i] < 1) return refuse(why, "w {} is larger than the padded x {}", sizes_text(w), sizes_text(x));
  }
  return true;
}

bool conv_gradient_fits(const CallView& v, const flhal_tensor& grad, const flhal_tensor& x, const flhal_tensor& w,
                        std::string* why) {
  int64_t want[4];
  if (!conv_fits(v, x, w, want, why)) return false;
  bool fits = grad.rank == 4;
  for (uint32_t d = 0; fits && d < 4; ++d) fits = grad.sizes[d] == want[d];
  return fits || refuse(why, "grad is {}, x {} and w {} give {}", sizes_text(grad), sizes_text(x), sizes_text(w),
                        sizes_text(want, 4));
}

bool pool_output(const CallView& v, bool dilated, uint32_t ceil_slot, Inferred::Out* o, std::string* why) {
  const flhal_tensor& x = v.in(0);
  if (x.rank != 4) return refuse(why, "x {} needs rank 4", sizes_text(x));
  o->rank = 4;
  o->sizes[0] = x.sizes[0];
  o->sizes[1] = x.sizes[1];
  for (uint32_t i = 0; i < 2; ++i) {
    int64_t k = v.element(0, i), s = v.element(1, i), p = v.element(2, i), d = dilated ? v.element(3, i) : 1;
    if (k < 1 || s < 1 || d < 1 || p < 0 || p > k / 2 || k > kLargest || s > kLargest || d > kLargest)
      return refuse(why, "kernel {}, stride {}, dilation {}, padding {} (at most half the kernel)", k, s, d, p);
    o->sizes[2 + i] = window_count(x.sizes[2 + i], k, s, p, d, v.integer(ceil_slot) != 0);
    if (o->sizes[2 + i] < 1) return refuse(why, "the window is larger than the padded x {}", sizes_text(x));
  }
  return true;
}

}  // namespace

bool infer_conv2d(const CallView& v, Inferred* r, std::string* why) {
  r->outs[0].rank = 4;
  if (!conv_fits(v, v.in(0), v.in(1), r->outs[0].sizes, why)) return false;
  const flhal_tensor& bias = v.in(2);
  if (CallView::given(bias) && (bias.rank != 1 || bias.sizes[0] != v.in(1).sizes[0]))
    return refuse(why, "bias {} is not one value for each of the {} output channels", sizes_text(bias),
                  v.in(1).sizes[0]);
  return true;
}
bool infer_conv2d_backward(const CallView& v, Inferred* r, std::string* why) { return infer_caller(v, r, why); }
bool check_conv2d_backward_input(const CallView& v, std::string* why) {
  return conv_gradient_fits(v, v.in(0), v.out(0), v.in(1), why);
}
bool check_conv2d_backward_weight(const CallView& v, std::string* why) {
  return conv_gradient_fits(v, v.in(0), v.in(1), v.out(0), why);
}

bool infer_max_pool2d(const CallView& v, Inferred* r, std::string* why) {
  if (!pool_output(v, true, 4, &r->outs[0], why)) return false;
  r->outs[1] = r->outs[0];
  return true;
}
bool infer_avg_pool2d(const CallView& v, Inferred* r, std::string* why) {
  return pool_output(v, false, 5, &r->outs[0], why);
}
bool check_max_pool2d_backward(const CallView& v, std::string* why) {
  const flhal_tensor &gx = v.out(0), &grad = v.in(0), &index = v.in(1);
  if (!same_sizes(grad, index)) return refuse(why, "grad {} and index {} differ", sizes_text(grad), sizes_text(index));
  if (gx.rank != 4 || grad.rank != 4 || gx.sizes[0] != grad.sizes[0] || gx.sizes[1] != grad.sizes[1])
    return refuse(why, "gx {} and grad {} need rank 4 and equal batches and channels", sizes_text(gx),
                  sizes_text(grad));
  return true;
}

}  // namespace flhal::opset

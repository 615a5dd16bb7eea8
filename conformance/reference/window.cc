// conformance/reference/window.cc: convolution, its gradients, pooling. Images are N, C, H, W.
#include <cmath>

#include "reference/values.h"

namespace flhal::conformance {
namespace {

// Every pair of an output pixel and an input pixel that a kernel position joins; `join` gets both indices and the position.
template <typename Join>
void each_tap(const Sizes& x, const Sizes& out, const Window& w, Join join) {
  for (int64_t oy = 0; oy < out[2]; ++oy)
    for (int64_t ox = 0; ox < out[3]; ++ox)
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          int64_t y = oy * w.stride[0] - w.padding[0] + ky * w.dilation[0], xx = ox * w.stride[1] - w.padding[1] + kx * w.dilation[1];
          if (y >= 0 && y < x[2] && xx >= 0 && xx < x[3]) join(oy, ox, ky, kx, y, xx);
        }
}
void add_to(Expected& e, int64_t i, double v) {
  e.value[static_cast<size_t>(i)] += v;
  e.magnitude[static_cast<size_t>(i)] += std::fabs(v);
}

// Calls `tap(out element, x element, w element)` for each product of a convolution.
template <typename Tap>
void each_product(const Sizes& x, const Sizes& w, const Sizes& out, const Window& window, int64_t groups, Tap tap) {
  int64_t per_group = out[1] / groups;
  each_tap(x, out, window, [&](int64_t oy, int64_t ox, int64_t ky, int64_t kx, int64_t y, int64_t xx) {
    for (int64_t n = 0; n < out[0]; ++n)
      for (int64_t o = 0; o < out[1]; ++o)
        for (int64_t c = 0; c < w[1]; ++c)
          tap(element_at({n, o, oy, ox}, out), element_at({n, o / per_group * w[1] + c, y, xx}, x), element_at({o, c, ky, kx}, w));
  });
}

}  // namespace

Expected conv2d(const Values& x, const Values& w, const Values& bias, const Sizes& out, const Window& window, int64_t groups) {
  Expected e(count_of(out));
  e.terms = w.sizes[1] * w.sizes[2] * w.sizes[3] + 1;
  each_product(x.sizes, w.sizes, out, window, groups, [&](int64_t o, int64_t i, int64_t k) { add_to(e, o, x.at(i) * w.at(k)); });
  if (bias.given)
    for (int64_t i = 0; i < count_of(out); ++i) add_to(e, i, bias.at(index_of(i, out)[1]));
  return e;
}
Expected conv2d_backward_input(const Values& grad, const Values& w, const Sizes& gx, const Window& window, int64_t groups) {
  Expected e(count_of(gx));
  e.terms = w.sizes[0] * w.sizes[2] * w.sizes[3];
  each_product(gx, w.sizes, grad.sizes, window, groups, [&](int64_t o, int64_t i, int64_t k) { add_to(e, i, grad.at(o) * w.at(k)); });
  return e;
}
Expected conv2d_backward_weight(const Values& grad, const Values& x, const Sizes& gw, const Window& window, int64_t groups) {
  Expected e(count_of(gw));
  e.terms = grad.sizes[0] * grad.sizes[2] * grad.sizes[3];
  each_product(x.sizes, gw, grad.sizes, window, groups, [&](int64_t o, int64_t i, int64_t k) { add_to(e, k, grad.at(o) * x.at(i)); });
  return e;
}

Expected max_pool2d(const Values& x, const Sizes& out, const Window& window, Expected* index) {
  Expected e(count_of(out));
  for (int64_t i = 0; i < count_of(out); ++i) e.set(static_cast<size_t>(i), -INFINITY, 0);
  each_tap(x.sizes, out, window, [&](int64_t oy, int64_t ox, int64_t, int64_t, int64_t y, int64_t xx) {
    for (int64_t plane = 0; plane < out[0] * out[1]; ++plane) {
      auto o = static_cast<size_t>((plane * out[2] + oy) * out[3] + ox);
      double v = x.at((plane * x.sizes[2] + y) * x.sizes[3] + xx);
      if (v > e.value[o]) {
        e.value[o] = v;
        index->value[o] = static_cast<double>(y * x.sizes[3] + xx);
      }
    }
  });
  return e;
}
Expected avg_pool2d(const Values& x, const Sizes& out, const Window& window, bool count_padding, int64_t divisor) {
  Expected e(count_of(out));
  e.terms = window.kernel[0] * window.kernel[1];
  std::vector<int64_t> inside(static_cast<size_t>(count_of(out)), 0);
  each_tap(x.sizes, out, window, [&](int64_t oy, int64_t ox, int64_t, int64_t, int64_t y, int64_t xx) {
    for (int64_t plane = 0; plane < out[0] * out[1]; ++plane) {
      int64_t o = (plane * out[2] + oy) * out[3] + ox;
      add_to(e, o, x.at((plane * x.sizes[2] + y) * x.sizes[3] + xx));
      ++inside[static_cast<size_t>(o)];
    }
  });
  for (size_t i = 0; i < inside.size(); ++i) {
    double n = static_cast<double>(divisor != 0 ? divisor : count_padding ? window.kernel[0] * window.kernel[1] : inside[i]);
    e.set(i, e.value[i] / n, e.magnitude[i] / n);
  }
  return e;
}

}  // namespace flhal::conformance

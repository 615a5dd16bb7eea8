// conformance/reference/gradients.cc: what training adds: statistics of a batch, gradients of the norms and of pooling.
#include <algorithm>
#include <cmath>

#include "reference/values.h"

namespace flhal::conformance {
namespace {

void add_to(Expected& e, int64_t i, double v) {
  e.value[static_cast<size_t>(i)] += v;
  e.magnitude[static_cast<size_t>(i)] += std::fabs(v);
}

}  // namespace

Statistics statistics_of(const Values& x, const std::vector<int64_t>& group_of, int64_t groups, double eps) {
  Statistics s{Expected(groups), Expected(groups)};
  std::vector<double> n(static_cast<size_t>(groups)), var(n.size());
  for (size_t i = 0; i < x.v.size(); ++i) ++n[static_cast<size_t>(group_of[i])];
  for (size_t i = 0; i < x.v.size(); ++i) add_to(s.mean, group_of[i], x.v[i] / n[static_cast<size_t>(group_of[i])]);
  for (size_t i = 0; i < x.v.size(); ++i) {
    auto g = static_cast<size_t>(group_of[i]);
    var[g] += (x.v[i] - s.mean.value[g]) * (x.v[i] - s.mean.value[g]) / n[g];
  }
  for (size_t g = 0; g < n.size(); ++g) {
    double rstd = 1 / std::sqrt(var[g] + eps);
    s.rstd.set(g, rstd, rstd * (1 + s.mean.value[g] * s.mean.value[g] / (var[g] + eps)));
    s.mean.terms = s.rstd.terms = static_cast<int64_t>(n[g]);
  }
  return s;
}

// Both norms: `group_of` says to which statistics an element belongs, `weight_of` to which weight. With `fixed` the statistics
// do not depend on x (batch_norm outside of training).
NormGradients norm_backward(const Values& grad, const Values& x, const Values& mean, const Values& rstd, const Values& weight,
                            const std::vector<int64_t>& group_of, const std::vector<int64_t>& weight_of, int64_t weights, bool fixed) {
  NormGradients r{Expected(count_of(x.sizes)), Expected(weights), Expected(weights)};
  size_t groups = mean.v.size();
  std::vector<double> n(groups), sum(groups), product(groups), sizes(groups);
  auto scaled = [&](size_t i) { return grad.v[i] * (weight.given ? weight.at(weight_of[i]) : 1); };
  auto normal = [&](size_t i) { return (x.v[i] - mean.at(group_of[i])) * rstd.at(group_of[i]); };
  for (size_t i = 0; i < x.v.size(); ++i) {
    auto g = static_cast<size_t>(group_of[i]);
    ++n[g], sum[g] += scaled(i), product[g] += scaled(i) * normal(i), sizes[g] += std::fabs(scaled(i)) * (1 + std::fabs(normal(i)));
    add_to(r.weight, weight_of[i], grad.v[i] * normal(i));
    add_to(r.bias, weight_of[i], grad.v[i]);
  }
  for (size_t i = 0; i < x.v.size(); ++i) {
    auto g = static_cast<size_t>(group_of[i]);
    double s = rstd.at(group_of[i]), value = fixed ? scaled(i) * s : s * (scaled(i) - (sum[g] + normal(i) * product[g]) / n[g]);
    r.x.set(i, value, s * (std::fabs(scaled(i)) + (fixed ? 0 : sizes[g] * (1 + std::fabs(normal(i))) / n[g])));
    r.x.terms = static_cast<int64_t>(n[g]);
  }
  // An element of weight's gradient has the error of x - mean, too.
  r.weight.terms = r.bias.terms = static_cast<int64_t>(x.v.size()) / std::max<int64_t>(weights, 1) + 4;
  for (size_t i = 0; i < x.v.size(); ++i)
    r.weight.magnitude[static_cast<size_t>(weight_of[i])] += std::fabs(grad.v[i] * mean.at(group_of[i]) * rstd.at(group_of[i]));
  return r;
}

Expected max_pool2d_backward(const Values& grad, const Values& index, const Sizes& gx) {
  Expected e(count_of(gx));
  e.terms = 4;
  int64_t plane = gx[2] * gx[3], from = grad.sizes[2] * grad.sizes[3];
  for (int64_t i = 0; i < count_of(grad.sizes); ++i) add_to(e, i / from * plane + static_cast<int64_t>(index.at(i)), grad.at(i));
  return e;
}

}  // namespace flhal::conformance

// reference_plugins/host/ops_pool.cc: max_pool2d, its gradient, and avg_pool2d, float32.
//
// Ours rather than oneDNN's: max_pool2d must give int64 positions and must let NaN win, both unlike oneDNN's.
// Planes of any strides; where the channels of a pixel are dense (channels_last) sixteen channels go at once.
#include <algorithm>

#include "ops_makers.h"
#include "threads.h"
#include "vec.h"

namespace flhal::host {
namespace {

struct Image {
  char* base;
  int64_t n = 0, c = 0, h = 0, w = 0, sn = 0, sc = 0, sh = 0, sw = 0;   // strides in elements
  explicit Image(const flhal_tensor_v1& t)
      : base(given(t) ? static_cast<char*>(pointer_of(t)) : nullptr) {
    if (!base) return;
    n = t.sizes[0], c = t.sizes[1], h = t.sizes[2], w = t.sizes[3];
    sn = t.strides[0], sc = t.strides[1], sh = t.strides[2], sw = t.strides[3];
  }
  template <class T>
  T* at(int64_t i, int64_t j) const { return reinterpret_cast<T*>(base) + i * sn + j * sc; }
};

struct Window {
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  // Rows (axis 0) or columns (axis 1) of the input that output `o` looks at: from, from + dilation, ... below to.
  void range(int axis, int64_t o, int64_t size, int64_t& from, int64_t& to) const {
    from = o * stride[axis] - padding[axis];
    to = std::min(from + (kernel[axis] - 1) * dilation[axis] + 1, size);
    while (from < 0) from += dilation[axis];
  }
};

// One line of sixteen channels at most; index may be null. x: first channel of pixel 0.
FLHAL_LEVELS void max_of_window(const float* x, int64_t sh, int64_t sw, int64_t width, int64_t y0, int64_t y1, int64_t dy,
                                int64_t x0, int64_t x1, int64_t dx, float* best, int32_t* where, int64_t lanes) {
  Vec m = splat(-__builtin_inff());
  VecInt at = VecInt{} + static_cast<int32_t>(y0 * width + x0);
  for (int64_t i = y0; i < y1; i += dy) {
    for (int64_t j = x0; j < x1; j += dx) {
      const float* p = x + i * sh + j * sw;
      const Vec v = lanes == kLanes ? load(p) : load_part(p, lanes, 0);
      const VecInt better = (v > m) | (v != v);
      m = better ? v : m;
      at = better ? VecInt{} + static_cast<int32_t>(i * width + j) : at;
    }
  }
  std::memcpy(best, &m, sizeof m);
  std::memcpy(where, &at, sizeof at);
}

class MaxPoolPlan final : public flhal_p_plan {
 public:
  explicit MaxPoolPlan(const Window& w) : w_(w) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    const Image out(tensor_of(call, 0)), index(tensor_of(call, 1)), x(tensor_of(call, 2));
    const bool lines = x.sc == 1 && out.sc == 1 && x.c >= 4 && (!index.base || index.sc == 1);
    if (out.n * out.c * out.h * out.w == 0) return FLHAL_OK;
    if (lines) {
      const int64_t rows = out.n * out.h;
      const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(rows, rows * out.w * out.c * w_.kernel[0] * w_.kernel[1] / 65536));
      for_ranges(pieces, [&](uint64_t first, uint64_t count) {
        for (int64_t r = rows * first / pieces; r < static_cast<int64_t>(rows * (first + count) / pieces); ++r)
          line_row(out, index, x, r / out.h, r % out.h);
      });
      return FLHAL_OK;
    }
    const int64_t planes = out.n * out.c;
    const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(planes, planes * out.h * out.w * w_.kernel[0] * w_.kernel[1] / 16384));
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t p = planes * first / pieces; p < static_cast<int64_t>(planes * (first + count) / pieces); ++p)
        plane(out, index, x, p / out.c, p % out.c);
    });
    return FLHAL_OK;
  }

 private:
  void plane(const Image& out, const Image& index, const Image& x, int64_t n, int64_t c) const {
    const float* in = x.at<float>(n, c);
    float* to = out.at<float>(n, c);
    int64_t* where = index.base ? index.at<int64_t>(n, c) : nullptr;
    for (int64_t oy = 0; oy < out.h; ++oy) {
      int64_t y0, y1, x0, x1;
      w_.range(0, oy, x.h, y0, y1);
      for (int64_t ox = 0; ox < out.w; ++ox) {
        w_.range(1, ox, x.w, x0, x1);
        float best = -__builtin_inff();
        int64_t at = y0 * x.w + x0;
        for (int64_t i = y0; i < y1; i += w_.dilation[0])
          for (int64_t j = x0; j < x1; j += w_.dilation[1]) {
            const float v = in[i * x.sh + j * x.sw];
            if (v > best || v != v) best = v, at = i * x.w + j;
          }
        to[oy * out.sh + ox * out.sw] = best;
        if (where) where[oy * index.sh + ox * index.sw] = at;
      }
    }
  }
  void line_row(const Image& out, const Image& index, const Image& x, int64_t n, int64_t oy) const {
    float best[kLanes];
    int32_t at[kLanes];
    int64_t y0, y1, x0, x1;
    w_.range(0, oy, x.h, y0, y1);
    for (int64_t ox = 0; ox < out.w; ++ox) {
      w_.range(1, ox, x.w, x0, x1);
      for (int64_t c = 0; c < x.c; c += kLanes) {
        const int64_t lanes = std::min(kLanes, x.c - c);
        max_of_window(x.at<float>(n, c), x.sh, x.sw, x.w, y0, y1, w_.dilation[0], x0, x1, w_.dilation[1], best, at, lanes);
        std::memcpy(out.at<float>(n, c) + oy * out.sh + ox * out.sw, best, lanes * sizeof(float));
        if (!index.base) continue;
        int64_t* where = index.at<int64_t>(n, c) + oy * index.sh + ox * index.sw;
        for (int64_t l = 0; l < lanes; ++l) where[l] = at[l];
      }
    }
  }
  const Window w_;
};

class MaxPoolBackwardPlan final : public flhal_p_plan {
 public:
  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    const Image gx(tensor_of(call, 0)), grad(tensor_of(call, 1)), index(tensor_of(call, 2));
    const int64_t planes = gx.n * gx.c;
    if (planes * gx.h * gx.w == 0) return FLHAL_OK;
    std::atomic<int64_t> bad{-1};
    const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(planes, planes * gx.h * gx.w / 16384));
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t p = planes * first / pieces; p < static_cast<int64_t>(planes * (first + count) / pieces); ++p) {
        float* to = gx.at<float>(p / gx.c, p % gx.c);
        for (int64_t y = 0; y < gx.h; ++y)
          for (int64_t x = 0; x < gx.w; ++x) to[y * gx.sh + x * gx.sw] = 0;
        const float* g = grad.at<float>(p / gx.c, p % gx.c);
        const int64_t* where = index.at<int64_t>(p / gx.c, p % gx.c);
        for (int64_t y = 0; y < grad.h; ++y)
          for (int64_t x = 0; x < grad.w; ++x) {
            const int64_t at = where[y * index.sh + x * index.sw];
            if (at < 0 || at >= gx.h * gx.w) bad.store(at);   // never followed
            else to[at / gx.w * gx.sh + at % gx.w * gx.sw] += g[y * grad.sh + x * grad.sw];
          }
      }
    });
    if (bad.load() != -1)
      return fail(device->plugin, FLHAL_E_INVALID, "host: max_pool2d_backward got the index " + std::to_string(bad.load()) +
                  "; a plane has " + std::to_string(gx.h * gx.w) + " elements");
    return FLHAL_OK;
  }
};

class AvgPoolPlan final : public flhal_p_plan {
 public:
  AvgPoolPlan(const Window& w, bool include_pad, int64_t divisor) : w_(w), include_pad_(include_pad), divisor_(divisor) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    const Image out(tensor_of(call, 0)), x(tensor_of(call, 1));
    const int64_t planes = out.n * out.c;
    if (planes * out.h * out.w == 0) return FLHAL_OK;
    const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(planes, planes * out.h * out.w * w_.kernel[0] * w_.kernel[1] / 16384));
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t p = planes * first / pieces; p < static_cast<int64_t>(planes * (first + count) / pieces); ++p)
        plane(out, x, p / out.c, p % out.c);
    });
    return FLHAL_OK;
  }

 private:
  void plane(const Image& out, const Image& x, int64_t n, int64_t c) const {
    const float* in = x.at<float>(n, c);
    float* to = out.at<float>(n, c);
    for (int64_t oy = 0; oy < out.h; ++oy)
      for (int64_t ox = 0; ox < out.w; ++ox) {
        int64_t y0 = oy * w_.stride[0] - w_.padding[0], x0 = ox * w_.stride[1] - w_.padding[1];
        // Padding counts up to its own end, not what ceil mode adds behind it.
        int64_t y1 = std::min(y0 + w_.kernel[0], x.h + w_.padding[0]), x1 = std::min(x0 + w_.kernel[1], x.w + w_.padding[1]);
        const int64_t padded = (y1 - y0) * (x1 - x0);
        y0 = std::max<int64_t>(y0, 0), x0 = std::max<int64_t>(x0, 0), y1 = std::min(y1, x.h), x1 = std::min(x1, x.w);
        float sum = 0;
        for (int64_t i = y0; i < y1; ++i)
          for (int64_t j = x0; j < x1; ++j) sum += in[i * x.sh + j * x.sw];
        const int64_t by = divisor_ ? divisor_ : include_pad_ ? padded : (y1 - y0) * (x1 - x0);
        to[oy * out.sh + ox * out.sw] = y1 <= y0 || x1 <= x0 ? 0 : sum / static_cast<float>(by);
      }
  }
  const Window w_;
  const bool include_pad_;
  const int64_t divisor_;
};

Window read_window(const flhal_op_call_v1& call, uint32_t op, bool dilated) {
  Window w;
  for (uint32_t i = 0; i < 2; ++i) {   // kernel, stride, padding, dilation are attributes 1 to 4 of both ops
    w.kernel[i] = element_attr(call, op << 8 | 1, i, 1), w.stride[i] = element_attr(call, op << 8 | 2, i, 1);
    w.padding[i] = element_attr(call, op << 8 | 3, i, 0);
    w.dilation[i] = dilated ? element_attr(call, op << 8 | 4, i, 1) : 1;
  }
  return w;
}

const char* check(const flhal_op_call_v1& call, std::initializer_list<uint32_t> images) {
  for (uint32_t i : images) {
    const flhal_tensor_v1& t = tensor_of(call, i);
    if (t.dtype != FLHAL_F32) return "native pooling takes float32";
    if (t.rank != 4) return "native pooling takes operands of rank 4";
  }
  return nullptr;
}

}  // namespace

const char* make_max_pool2d(const flhal_op_call_v1& call, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& out) {
  if (const char* reason = check(call, {0, 2})) return reason;
  if (given(tensor_of(call, 1)) && tensor_of(call, 1).dtype != FLHAL_I64) return "the index of max_pool2d must be int64";
  out = std::make_unique<MaxPoolPlan>(read_window(call, FLHAL_OP_MAX_POOL2D, true));
  return nullptr;
}
const char* make_max_pool2d_backward(const flhal_op_call_v1& call, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& out) {
  if (const char* reason = check(call, {0, 1})) return reason;
  if (tensor_of(call, 2).dtype != FLHAL_I64) return "the index of max_pool2d must be int64";
  out = std::make_unique<MaxPoolBackwardPlan>();
  return nullptr;
}
const char* make_avg_pool2d(const flhal_op_call_v1& call, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& out) {
  if (const char* reason = check(call, {0, 1})) return reason;
  out = std::make_unique<AvgPoolPlan>(read_window(call, FLHAL_OP_AVG_POOL2D, false),
                                      integer_attr(call, FLHAL_ATTR_AVG_POOL2D_COUNT_INCLUDE_PAD, 1) != 0,
                                      integer_attr(call, FLHAL_ATTR_AVG_POOL2D_DIVISOR, 0));
  return nullptr;
}

}  // namespace flhal::host

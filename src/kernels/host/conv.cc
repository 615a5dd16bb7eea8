// src/kernels/host/conv.cc: two-dimensional convolution and its two gradients.
//
// Idea: each is a matrix product whose operands are packed straight from the images (implicit im2col), per image and group:
//   forward          out[oc][place]   = w[oc][k] * x patches[k][place],       k = (channel, tap)
//   backward input   gx[ic][place]    = w^T[ic][k] * grad patches[k][place],  k = (out channel, tap)
//   backward weight  gw[oc][k]        = grad[oc][t] * x patches^T[t][k],      t = (image, place)
// Groups of one input channel (depthwise) are done directly: a product of height one would waste the register tile.
// Arguments: ConvParams; forward out, x, w, bias; backward input gx, grad, w; backward weight gw, grad, x.
#include "kernels/host/gemm.h"

LEVEL_BEGIN
namespace {

constexpr int64_t kBufferedTile = 96 * 128;

// Where a run of consecutive outputs along w reads: positions j in [low, high) of n starting at `ow` hit columns
// iw = (ow + j) * stride - padding + tap * dilation inside [0, width).
struct Span { int64_t low, high, first; };
FN Span span_of(int64_t ow, int64_t n, int64_t stride, int64_t shift, int64_t width) {
  int64_t first = ow * stride + shift;                       // column of j = 0
  int64_t low = first >= 0 ? 0 : stride == 1 ? -first : (-first + stride - 1) / stride;
  int64_t high = width <= first ? 0 : stride == 1 ? width - first : (width - 1 - first) / stride + 1;
  if (high > n) high = n;
  if (low > high) low = high;
  return {low, high, first};
}

template <class T> struct Conv {
  static constexpr int NR = Tile<T>::NR, MR = Tile<T>::MR;
  static constexpr Kind native = kComputeKind[ComputeIndex<T>::value];

  // n elements of x along w into dst, by any stride and kind.
  static FN_MEMBER void take(T* dst, const char* from, int64_t n, int64_t stride, Kind kind, Load load) {
    if (kind == native && stride == (int64_t)sizeof(T)) {
      if (n == NR) __builtin_memcpy(dst, from, NR * sizeof(T));       // a whole sliver: a few vector moves
      else __builtin_memcpy(dst, from, (uint64_t)n * sizeof(T));
    } else {
      load(dst, from, n, stride, 1, 0);
    }
  }

  // One line of the patch matrix: tap (c, r, s) at n places of the output from (oh, ow) on.
  static void patch_line(const ConvParams* p, const char* x, int64_t c, int64_t r, int64_t s, int64_t oh, int64_t ow, int64_t n,
                         T* dst, Load load) {
    const int64_t OW = p->out[1];
    while (n > 0) {
      int64_t run = min_of(n, OW - ow);
      int64_t ih = oh * p->stride[0] - p->padding[0] + r * p->dilation[0];
      if (ih < 0 || ih >= p->in[0]) {
        for (int64_t j = 0; j < run; ++j) dst[j] = T(0);
      } else {
        Span sp = span_of(ow, run, p->stride[1], s * p->dilation[1] - p->padding[1], p->in[1]);
        for (int64_t j = 0; j < sp.low; ++j) dst[j] = T(0);
        const char* from = x + c * p->x_channel + ih * p->x_at[0] + (sp.first + sp.low * p->stride[1]) * p->x_at[1];
        if (sp.high > sp.low) take(dst + sp.low, from, sp.high - sp.low, p->stride[1] * p->x_at[1], p->x_kind, load);
        for (int64_t j = sp.high; j < run; ++j) dst[j] = T(0);
      }
      dst += run;
      n -= run;
      ow = 0;
      ++oh;
    }
  }

  // Rows of a matrix given by a function fill(m, k0, kc, buffer), as panels.
  template <class Fill> static FN_MEMBER void panels(T* dst, int64_t rows, int64_t k0, int64_t kc, Fill fill) {
    T buffer[Tile<T>::KC];
    for (int64_t m0 = 0; m0 < rows; m0 += MR, dst += MR * kc)
      for (int64_t m = 0; m < MR; ++m) {
        if (m0 + m >= rows) {
          for (int64_t k = 0; k < kc; ++k) dst[k * MR + m] = T(0);
          continue;
        }
        fill(m0 + m, k0, kc, buffer);
        for (int64_t k = 0; k < kc; ++k) dst[k * MR + m] = buffer[k];
      }
  }

  // Adds a tile of sums to rows of a [rows][places] output, or to the buffer of a converted one.
  static FN_MEMBER void store_tile(const T* acc, int64_t mr, int64_t nr, char* to, int64_t row, int64_t col, bool first) {
    for (int64_t m = 0; m < mr; ++m) {
      const T* line = acc + m * NR;
      char* o = to + m * row;
      if (col == (int64_t)sizeof(T)) {
        T* t = (T*)o;
        if (first) for (int64_t j = 0; j < nr; ++j) t[j] = line[j];
        else for (int64_t j = 0; j < nr; ++j) t[j] += line[j];
      } else {
        for (int64_t j = 0; j < nr; ++j) {
          T* t = (T*)(o + j * col);
          *t = first ? line[j] : *t + line[j];
        }
      }
    }
  }

  // Writes n places from `place` on of a plane whose rows are `width` long.
  static void store_places(const T* src, int64_t place, int64_t n, int64_t width, char* plane, const int64_t at[2], Store store) {
    int64_t h = place / width, w = place % width;
    while (n > 0) {
      int64_t run = min_of(n, width - w);
      store(plane + h * at[0] + w * at[1], src, run, at[1], 1, 0);
      src += run;
      n -= run;
      w = 0;
      ++h;
    }
  }

  struct Unit { int64_t image, group, m, n, mb, nb; };
  static Unit unit_of(const ConvParams* p, uint64_t unit, int64_t rows, int64_t columns) {
    Unit u;
    u.n = (int64_t)(unit % (uint64_t)p->tiles_n) * p->tile_n;
    unit /= (uint64_t)p->tiles_n;
    u.m = (int64_t)(unit % (uint64_t)p->tiles_m) * p->tile_m;
    unit /= (uint64_t)p->tiles_m;
    u.group = (int64_t)(unit % (uint64_t)p->groups);
    u.image = (int64_t)(unit / (uint64_t)p->groups);
    u.mb = min_of(p->tile_m, rows - u.m);
    u.nb = min_of(p->tile_n, columns - u.n);
    return u;
  }
  // The product of one tile, into planes of one place per column: out (forward) or gx.
  template <class PackA, class PackB>
  static FN_MEMBER void into_planes(const Unit& u, int64_t K, PackA pack_a, PackB pack_b, char* planes, int64_t channel,
                                    const int64_t at[2], int64_t width, int64_t height, Kind kind, const T* bias) {
    auto add_bias = [&](T* acc, int64_t m0, int64_t mr, bool first) {
      if (!first || bias == nullptr) return;
      for (int64_t m = 0; m < mr; ++m)
        for (int64_t j = 0; j < NR; ++j) acc[m * NR + j] += bias[m0 + m];
    };
    if (kind == native && (at[0] == width * at[1] || height == 1)) {
      gemm_tile<T>(u.mb, u.nb, K, pack_a, pack_b, [&](T* acc, int64_t m0, int64_t mr, int64_t n0, int64_t nr, bool first) {
        add_bias(acc, m0, mr, first);
        store_tile(acc, mr, nr, planes + (u.m + m0) * channel + (u.n + n0) * at[1], channel, at[1], first);
      });
      return;
    }
    alignas(64) T sum[kBufferedTile];
    gemm_tile<T>(u.mb, u.nb, K, pack_a, pack_b, [&](T* acc, int64_t m0, int64_t mr, int64_t n0, int64_t nr, bool first) {
      add_bias(acc, m0, mr, first);
      store_tile(acc, mr, nr, (char*)(sum + m0 * u.nb + n0), u.nb * (int64_t)sizeof(T), sizeof(T), first);
    });
    for (int64_t m = 0; m < u.mb; ++m)
      store_places(sum + m * u.nb, u.n, u.nb, width, planes + (u.m + m) * channel, at, store_table[kind][ComputeIndex<T>::value]);
  }

  // Weights w[oc][ic][r][s] along (ic, r, s) from k0 on, for one oc.
  static void weight_line(const ConvParams* p, const char* w, int64_t k0, int64_t kc, T* dst, Load load) {
    const int64_t S = p->kernel[1], RS = p->kernel[0] * S;
    if (p->w_in == RS * p->w_at[1] && p->w_at[0] == S * p->w_at[1]) { load(dst, w + k0 * p->w_at[1], kc, p->w_at[1], 1, 0); return; }
    for (int64_t k = 0; k < kc; ++k) {
      int64_t c = (k0 + k) / RS, r = (k0 + k) % RS / S, s = (k0 + k) % S;
      load(dst + k, w + c * p->w_in + r * p->w_at[0] + s * p->w_at[1], 1, 0, 1, 0);
    }
  }

  static FN_MEMBER void forward(const void* const* argv, uint64_t first, uint64_t count) {
    const ConvParams* p = (const ConvParams*)argv[0];
    const int64_t places = p->out[0] * p->out[1], S = p->kernel[1], RS = p->kernel[0] * S, K = p->in_channels * RS;
    const uint64_t units = (uint64_t)(p->images * p->groups * p->tiles_m * p->tiles_n);
    const Load load_x = load_table[p->x_kind][ComputeIndex<T>::value], load_w = load_table[p->w_kind][ComputeIndex<T>::value];
    // A 1x1 convolution without padding or stride is a plain product.
    const bool plain = RS == 1 && p->stride[0] == 1 && p->stride[1] == 1 && p->padding[0] == 0 && p->padding[1] == 0 &&
                       (p->x_at[0] == p->in[1] * p->x_at[1] || p->in[0] == 1);
    for (uint64_t unit = first; unit < first + count && unit < units; ++unit) {
      Unit u = unit_of(p, unit, p->out_channels, places);
      const char* x = (const char*)argv[2] + u.image * p->x_image + u.group * p->in_channels * p->x_channel;
      const char* w = (const char*)argv[3] + (u.group * p->out_channels + u.m) * p->w_out;
      char* out = (char*)const_cast<void*>(argv[1]) + u.image * p->y_image + u.group * p->out_channels * p->y_channel;
      T bias[Tile<T>::MB];
      if (p->has_bias)
        load_table[p->bias_kind][ComputeIndex<T>::value](bias, (const char*)argv[4] + (u.group * p->out_channels + u.m) * p->bias_stride,
                                                         u.mb, p->bias_stride, 1, 0);
      auto pack_a = [&](T* dst, int64_t k0, int64_t kc) {
        panels(dst, u.mb, k0, kc, [&](int64_t m, int64_t k, int64_t n, T* b) { weight_line(p, w + m * p->w_out, k, n, b, load_w); });
      };
      auto pack_b = [&](T* dst, int64_t n0, int64_t nr, int64_t k0, int64_t kc) {
        if (plain) {
          pack_sliver<T>(dst, x + (u.n + n0) * p->x_at[1] + k0 * p->x_channel, p->x_kind, nr, kc, p->x_channel, p->x_at[1]);
          return;
        }
        const int64_t oh = (u.n + n0) / p->out[1], ow = (u.n + n0) % p->out[1];
        int64_t c = k0 / RS, r = k0 % RS / S, s = k0 % S;
        for (int64_t k = 0; k < kc; ++k, dst += NR) {
          patch_line(p, x, c, r, s, oh, ow, nr, dst, load_x);
          for (int64_t j = nr; j < NR; ++j) dst[j] = T(0);
          if (++s == S) { s = 0; if (++r == p->kernel[0]) { r = 0; ++c; } }
        }
      };
      into_planes(u, K, pack_a, pack_b, out, p->y_channel, p->y_at, p->out[1], p->out[0], p->y_kind, p->has_bias ? bias : nullptr);
    }
  }

  // One input channel per group: every output channel is a sum of shifted rows.
  static FN_MEMBER void depthwise(const void* const* argv, uint64_t first, uint64_t count) {
    const ConvParams* p = (const ConvParams*)argv[0];
    constexpr int64_t B = block_elements<T>();
    alignas(64) T acc[B], line[B];
    const int64_t channels = p->groups * p->out_channels;
    const Load load_x = load_table[p->x_kind][ComputeIndex<T>::value];
    const Store store = store_table[p->y_kind][ComputeIndex<T>::value];
    for (uint64_t unit = first; unit < first + count && unit < (uint64_t)(p->images * channels); ++unit) {
      int64_t image = (int64_t)unit / channels, oc = (int64_t)unit % channels, group = oc / p->out_channels;
      const char* x = (const char*)argv[2] + image * p->x_image + group * p->in_channels * p->x_channel;
      const char* w = (const char*)argv[3] + oc * p->w_out;
      char* out = (char*)const_cast<void*>(argv[1]) + image * p->y_image + oc * p->y_channel;
      T bias = p->has_bias ? get_one<T>((const char*)argv[4] + oc * p->bias_stride, p->bias_kind) : T(0);
      for (int64_t oh = 0; oh < p->out[0]; ++oh)
        for (int64_t w0 = 0; w0 < p->out[1]; w0 += B) {
          int64_t n = min_of(B, p->out[1] - w0);
          for (int64_t j = 0; j < n; ++j) acc[j] = bias;
          for (int64_t c = 0; c < p->in_channels; ++c)
            for (int64_t r = 0; r < p->kernel[0]; ++r) {
              int64_t ih = oh * p->stride[0] - p->padding[0] + r * p->dilation[0];
              if (ih < 0 || ih >= p->in[0]) continue;
              for (int64_t s = 0; s < p->kernel[1]; ++s) {
                T weight = get_one<T>(w + c * p->w_in + r * p->w_at[0] + s * p->w_at[1], p->w_kind);
                Span sp = span_of(w0, n, p->stride[1], s * p->dilation[1] - p->padding[1], p->in[1]);
                if (sp.high <= sp.low) continue;
                const char* from = x + c * p->x_channel + ih * p->x_at[0] + (sp.first + sp.low * p->stride[1]) * p->x_at[1];
                int64_t step = p->stride[1] * p->x_at[1], m = sp.high - sp.low;
                const T* v = line;
                if (p->x_kind == native && step == (int64_t)sizeof(T)) v = (const T*)from;
                else load_x(line, from, m, step, 1, 0);
                T* a = acc + sp.low;
                IVDEP for (int64_t j = 0; j < m; ++j) a[j] += weight * v[j];
              }
            }
          store(out + oh * p->y_at[0] + w0 * p->y_at[1], acc, n, p->y_at[1], 1, 0);
        }
    }
  }

  // Tap (oc, r, s) of the gradient at n input places from (ih, iw) on.
  static void slope_line(const ConvParams* p, const char* grad, int64_t c, int64_t r, int64_t s, int64_t ih, int64_t iw, int64_t n,
                         T* dst, Load load) {
    const int64_t W = p->in[1];
    while (n > 0) {
      int64_t run = min_of(n, W - iw);
      int64_t th = ih + p->padding[0] - r * p->dilation[0];
      const bool divides = p->stride[0] == 1 || th % p->stride[0] == 0;
      const int64_t oh = p->stride[0] == 1 ? th : th / p->stride[0];
      for (int64_t j = 0; j < run; ++j) dst[j] = T(0);
      if (th >= 0 && divides && oh < p->out[0]) {
        const char* row = grad + c * p->y_channel + oh * p->y_at[0];
        int64_t tw = iw + p->padding[1] - s * p->dilation[1];          // of j = 0; ow = (tw + j) / stride where it divides
        if (p->stride[1] == 1) {
          int64_t low = max_of(0, -tw), high = min_of(run, p->out[1] - tw);
          if (high > low) take(dst + low, row + (tw + low) * p->y_at[1], high - low, p->y_at[1], p->y_kind, load);
        } else {
          int64_t ow = tw <= 0 ? 0 : (tw + p->stride[1] - 1) / p->stride[1];
          for (int64_t j = ow * p->stride[1] - tw; j < run && ow < p->out[1]; j += p->stride[1], ++ow)
            load(dst + j, row + ow * p->y_at[1], 1, 0, 1, 0);
        }
      }
      dst += run;
      n -= run;
      iw = 0;
      ++ih;
    }
  }

  static FN_MEMBER void backward_input(const void* const* argv, uint64_t first, uint64_t count) {
    const ConvParams* p = (const ConvParams*)argv[0];
    const int64_t places = p->in[0] * p->in[1], S = p->kernel[1], RS = p->kernel[0] * S, K = p->out_channels * RS;
    const uint64_t units = (uint64_t)(p->images * p->groups * p->tiles_m * p->tiles_n);
    const Load load_y = load_table[p->y_kind][ComputeIndex<T>::value], load_w = load_table[p->w_kind][ComputeIndex<T>::value];
    for (uint64_t unit = first; unit < first + count && unit < units; ++unit) {
      Unit u = unit_of(p, unit, p->in_channels, places);
      const char* grad = (const char*)argv[2] + u.image * p->y_image + u.group * p->out_channels * p->y_channel;
      const char* w = (const char*)argv[3] + u.group * p->out_channels * p->w_out + u.m * p->w_in;
      char* gx = (char*)const_cast<void*>(argv[1]) + u.image * p->x_image + u.group * p->in_channels * p->x_channel;
      auto pack_a = [&](T* dst, int64_t k0, int64_t kc) {
        panels(dst, u.mb, k0, kc, [&](int64_t m, int64_t k, int64_t n, T* b) {
          int64_t c = k / RS, r = k % RS / S, s = k % S;
          for (int64_t i = 0; i < n; ++i) {
            const char* from = w + m * p->w_in + c * p->w_out + r * p->w_at[0] + s * p->w_at[1];
            if (p->w_kind == native) __builtin_memcpy(b + i, from, sizeof(T));
            else load_w(b + i, from, 1, 0, 1, 0);
            if (++s == S) { s = 0; if (++r == p->kernel[0]) { r = 0; ++c; } }
          }
        });
      };
      auto pack_b = [&](T* dst, int64_t n0, int64_t nr, int64_t k0, int64_t kc) {
        const int64_t ih = (u.n + n0) / p->in[1], iw = (u.n + n0) % p->in[1];
        int64_t c = k0 / RS, r = k0 % RS / S, s = k0 % S;
        for (int64_t k = 0; k < kc; ++k, dst += NR) {
          slope_line(p, grad, c, r, s, ih, iw, nr, dst, load_y);
          for (int64_t j = nr; j < NR; ++j) dst[j] = T(0);
          if (++s == S) { s = 0; if (++r == p->kernel[0]) { r = 0; ++c; } }
        }
      };
      into_planes(u, K, pack_a, pack_b, gx, p->x_channel, p->x_at, p->in[1], p->in[0], p->x_kind, nullptr);
    }
  }

  static FN_MEMBER void backward_weight(const void* const* argv, uint64_t first, uint64_t count) {
    const ConvParams* p = (const ConvParams*)argv[0];
    const int64_t places = p->out[0] * p->out[1], S = p->kernel[1], RS = p->kernel[0] * S, N = p->in_channels * RS;
    const uint64_t units = (uint64_t)(p->groups * p->tiles_m * p->tiles_n);
    const Load load_x = load_table[p->x_kind][ComputeIndex<T>::value], load_y = load_table[p->y_kind][ComputeIndex<T>::value];
    for (uint64_t unit = first; unit < first + count && unit < units; ++unit) {
      Unit u = unit_of(p, unit, p->out_channels, N);
      const char* grad = (const char*)argv[2] + (u.group * p->out_channels + u.m) * p->y_channel;
      const char* x = (const char*)argv[3] + u.group * p->in_channels * p->x_channel;
      char* gw = (char*)const_cast<void*>(argv[1]) + (u.group * p->out_channels + u.m) * p->w_out;
      // Depth k counts images times places; lines are cut at image and row ends.
      auto pack_a = [&](T* dst, int64_t k0, int64_t kc) {
        panels(dst, u.mb, k0, kc, [&](int64_t m, int64_t k, int64_t n, T* b) {
          while (n > 0) {
            int64_t image = k / places, place = k % places, oh = place / p->out[1], ow = place % p->out[1];
            int64_t run = min_of(n, p->out[1] - ow);
            load_y(b, grad + m * p->y_channel + image * p->y_image + oh * p->y_at[0] + ow * p->y_at[1], run, p->y_at[1], 1, 0);
            b += run;
            k += run;
            n -= run;
          }
        });
      };
      auto pack_b = [&](T* dst, int64_t n0, int64_t nr, int64_t k0, int64_t kc) {
        T line[Tile<T>::KC];
        for (int64_t j = 0; j < NR; ++j) {
          if (j >= nr) {
            for (int64_t k = 0; k < kc; ++k) dst[k * NR + j] = T(0);
            continue;
          }
          int64_t tap = u.n + n0 + j, c = tap / RS, r = tap % RS / S, s = tap % S;
          for (int64_t k = 0; k < kc;) {
            int64_t image = (k0 + k) / places, place = (k0 + k) % places, n = min_of(kc - k, places - place);
            patch_line(p, x + image * p->x_image, c, r, s, place / p->out[1], place % p->out[1], n, line + k, load_x);
            k += n;
          }
          for (int64_t k = 0; k < kc; ++k) dst[k * NR + j] = line[k];
        }
      };
      alignas(64) T sum[kBufferedTile];
      gemm_tile<T>(u.mb, u.nb, p->images * places, pack_a, pack_b, [&](T* acc, int64_t m0, int64_t mr, int64_t n0, int64_t nr, bool is_first) {
        store_tile(acc, mr, nr, (char*)(sum + m0 * u.nb + n0), u.nb * (int64_t)sizeof(T), sizeof(T), is_first);
      });
      for (int64_t m = 0; m < u.mb; ++m)
        for (int64_t j = 0; j < u.nb; ++j) {
          int64_t tap = u.n + j, c = tap / RS, r = tap % RS / S, s = tap % S;
          put_one<T>(gw + m * p->w_out + c * p->w_in + r * p->w_at[0] + s * p->w_at[1], p->w_kind, sum[m * u.nb + j]);
        }
    }
  }
};

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
KERNEL(conv2d_f32, Conv<float>::forward)
KERNEL(conv2d_f64, Conv<double>::forward)
KERNEL(conv2d_depthwise_f32, Conv<float>::depthwise)
KERNEL(conv2d_depthwise_f64, Conv<double>::depthwise)
KERNEL(conv2d_backward_input_f32, Conv<float>::backward_input)
KERNEL(conv2d_backward_input_f64, Conv<double>::backward_input)
KERNEL(conv2d_backward_weight_f32, Conv<float>::backward_weight)
KERNEL(conv2d_backward_weight_f64, Conv<double>::backward_weight)

LEVEL_END

// tests/kernels/array.cc: layouts, canaries and element conversions of test tensors.
#include "array.h"

#include <algorithm>

namespace flhal::test {

namespace {

double from_half(uint16_t h) {
  int exponent = h >> 10 & 31, mantissa = h & 1023;
  double sign = h >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}
// The value rounded to a grid of `bits` significant bits, half to even; `least` is the exponent of the smallest step.
double round_to(double v, int bits, int least, double largest) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e;
  std::frexp(v, &e);
  int step = std::max(e - bits, least);
  double r = std::ldexp(std::nearbyint(std::ldexp(v, -step)), step);
  return std::fabs(r) > largest ? std::copysign(INFINITY, v) : r;
}
uint16_t to_half(double v) {
  if (std::isnan(v)) return 0x7e00;
  v = round_to(static_cast<float>(v), 11, -24, 65504.0);
  uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  v = std::fabs(v);
  if (std::isinf(v)) return sign | 0x7c00;
  if (v < std::ldexp(1.0, -14)) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(v, 24)));
  int e;
  double m = std::frexp(v, &e);
  return static_cast<uint16_t>(sign | (e + 14) << 10 | (static_cast<int>(std::ldexp(m, 11)) & 1023));
}

template <class T> double read_as(const unsigned char* p) { T v; std::memcpy(&v, p, sizeof v); return static_cast<double>(v); }
template <class T> void write_as(unsigned char* p, double v) { T t = static_cast<T>(v); std::memcpy(p, &t, sizeof t); }

}  // namespace

double read_element(flhal_dtype dtype, const unsigned char* p) {
  switch (dtype) {
    case FLHAL_I8: return read_as<int8_t>(p);
    case FLHAL_I16: return read_as<int16_t>(p);
    case FLHAL_I32: return read_as<int32_t>(p);
    case FLHAL_I64: return read_as<int64_t>(p);
    case FLHAL_U8: return read_as<uint8_t>(p);
    case FLHAL_U16: return read_as<uint16_t>(p);
    case FLHAL_U32: return read_as<uint32_t>(p);
    case FLHAL_U64: return read_as<uint64_t>(p);
    case FLHAL_BOOL: return *p;
    case FLHAL_F32: return read_as<float>(p);
    case FLHAL_F64: return read_as<double>(p);
    case FLHAL_C64: return read_as<float>(p);        // the real part
    case FLHAL_C128: return read_as<double>(p);
    case FLHAL_F16: { uint16_t h; std::memcpy(&h, p, 2); return from_half(h); }
    case FLHAL_BF16: {
      uint16_t h;
      std::memcpy(&h, p, 2);
      uint32_t w = static_cast<uint32_t>(h) << 16;
      float f;
      std::memcpy(&f, &w, 4);
      return f;
    }
    default: return NAN;
  }
}

void write_element(flhal_dtype dtype, unsigned char* p, double v) {
  switch (dtype) {
    case FLHAL_I8: return write_as<int8_t>(p, v);
    case FLHAL_I16: return write_as<int16_t>(p, v);
    case FLHAL_I32: return write_as<int32_t>(p, v);
    case FLHAL_I64: return write_as<int64_t>(p, v);
    case FLHAL_U8: return write_as<uint8_t>(p, v);
    case FLHAL_U16: return write_as<uint16_t>(p, v);
    case FLHAL_U32: return write_as<uint32_t>(p, v);
    case FLHAL_U64: return write_as<uint64_t>(p, v);
    case FLHAL_BOOL: *p = v != 0; return;
    case FLHAL_F32: return write_as<float>(p, v);
    case FLHAL_F64: return write_as<double>(p, v);
    case FLHAL_C64: write_as<float>(p, v); write_as<float>(p + 4, 0); return;
    case FLHAL_C128: write_as<double>(p, v); write_as<double>(p + 8, 0); return;
    case FLHAL_F16: { uint16_t h = to_half(v); std::memcpy(p, &h, 2); return; }
    case FLHAL_BF16: {
      float f = std::isnan(v) ? NAN : static_cast<float>(round_to(static_cast<float>(v), 8, -133, 3.3895313892515355e38));
      uint32_t w;
      std::memcpy(&w, &f, 4);
      uint16_t h = std::isnan(v) ? 0x7fc0 : static_cast<uint16_t>(w >> 16);
      std::memcpy(p, &h, 2);
      return;
    }
    default: return;
  }
}

std::string dtype_name(flhal_dtype dtype) {
  static const char* codes[] = {"i", "u", "f", "?", "bf", "c", "bool"};
  return codes[FLHAL_DTYPE_CODE(dtype)] + std::to_string(dtype >> 8 & 0xff);
}
std::string layout_name(Layout layout) {
  static const char* names[] = {"dense", "transposed", "gappy", "stepped", "offset", "expanded"};
  return names[static_cast<int>(layout)];
}

Array::Array(flhal_dtype dtype_, Sizes sizes_, Layout layout) : dtype(dtype_), sizes(std::move(sizes_)) {
  const size_t rank = sizes.size();
  strides.resize(rank);
  std::vector<size_t> order(rank);                       // outermost first
  for (size_t d = 0; d < rank; ++d) order[d] = d;
  if (layout == Layout::kTransposed) std::reverse(order.begin(), order.end());
  int64_t next = layout == Layout::kStepped ? 3 : 1;
  for (size_t i = rank; i-- > 0;) {
    strides[order[i]] = next;
    next *= sizes[order[i]] ? sizes[order[i]] : 1;
    if (layout == Layout::kGappy && i + 1 == rank) next += 2;   // a column slice of a wider matrix
  }
  int64_t reach = 1;
  for (size_t d = 0; d < rank; ++d) reach += (sizes[d] > 0 ? sizes[d] - 1 : 0) * strides[d];
  if (count() == 0) reach = 0;
  int64_t lead = layout == Layout::kOffset ? 3 : 16;     // kOffset: 3 elements in, so aligned to the element only
  first = lead * size_bytes();
  bytes.assign(static_cast<size_t>((lead + reach + 16) * size_bytes()), kCanary);
  for (int64_t i = 0; i < count(); ++i) set(i, 0);
}

Array Array::values(flhal_dtype dtype, Sizes sizes, const std::vector<double>& v, Layout layout) {
  Array a(dtype, std::move(sizes), layout);
  for (int64_t i = 0; i < a.count(); ++i) a.set(i, v[static_cast<size_t>(i) % v.size()]);
  return a;
}
Array Array::host_scalar(flhal_dtype dtype, double v) {
  Array a(dtype, {});
  a.set(0, v);
  a.scalar = true;
  return a;
}
Array Array::none() {
  Array a;
  a.absent = true;
  return a;
}
Array Array::expanded(const Sizes& to) const {
  Array a = *this;
  a.sizes = to;
  a.strides.assign(to.size(), 0);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) a.strides[to.size() - sizes.size() + d] = strides[d];
  return a;
}

unsigned char* Array::at(int64_t logical) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0;) {
    offset += logical % sizes[d] * strides[d];
    logical /= sizes[d];
  }
  return bytes.data() + first + offset * size_bytes();
}
std::vector<double> Array::all() const {
  std::vector<double> v;
  for (int64_t i = 0; i < count(); ++i) v.push_back(get(i));
  return v;
}
bool Array::canaries_intact() const {
  std::vector<bool> owned(bytes.size());
  for (int64_t i = 0; i < count(); ++i)
    for (int64_t b = 0; b < size_bytes(); ++b) owned[static_cast<size_t>(at(i) - bytes.data() + b)] = true;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (!owned[i] && bytes[i] != kCanary) return false;
  return true;
}
flhal_tensor_v1 Array::tensor() const {
  flhal_tensor_v1 t{};
  if (absent) { t.flags = FLHAL_TENSOR_ABSENT; return t; }
  t.address = reinterpret_cast<uint64_t>(bytes.data() + first);
  t.sizes = sizes.data();
  t.strides = strides.data();
  t.dtype = dtype;
  t.rank = static_cast<uint16_t>(sizes.size());
  t.flags = scalar ? FLHAL_TENSOR_HOST_SCALAR : 0;
  return t;
}

std::vector<double> series(int64_t n, uint64_t seed, double low, double high) {
  std::vector<double> v(static_cast<size_t>(n));
  uint64_t s = seed * 2654435761u + 88172645463325252ull;
  for (double& x : v) {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    x = low + (high - low) * static_cast<double>(s >> 11) / 9007199254740992.0;
  }
  return v;
}

}  // namespace flhal::test

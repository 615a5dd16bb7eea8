// conformance/areas/op_tensor.cc: layouts, guards and conversions of operands.
#include "areas/op_tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace flhal::conformance {
namespace {

constexpr uint64_t kGuardBytes = 512;        // in front and behind; a multiple of every alignment a class asks for
constexpr uint8_t kGuard = 0xa5;

template <typename T>
double load(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return static_cast<double>(v);
}
template <typename T>
void store(uint8_t* p, double v) {
  T t;
  if constexpr (std::is_integral_v<T>) t = static_cast<T>(std::isfinite(v) ? static_cast<int64_t>(v) : 0);   // wraps, as the op set says
  else t = static_cast<T>(v);
  std::memcpy(p, &t, sizeof t);
}

// bfloat16 is the upper half of a float; rounded half to even.
double load_bf16(const uint8_t* p) {
  uint16_t upper;
  std::memcpy(&upper, p, 2);
  uint32_t word = uint32_t{upper} << 16;
  float f;
  std::memcpy(&f, &word, 4);
  return f;
}
void store_bf16(uint8_t* p, double v) {
  float f = static_cast<float>(v);
  uint32_t word;
  std::memcpy(&word, &f, 4);
  uint16_t upper = std::isnan(f) ? 0x7fc0 : static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  std::memcpy(p, &upper, 2);
}

// Inaccessible memory, so that a plugin that looks at operands while it plans does not get away with it.
uint64_t forbidden_address() {
  static void* const page = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reinterpret_cast<uint64_t>(page);
}

}  // namespace

double read_element(flhal_dtype dtype, const uint8_t* p) {
  switch (dtype) {
    case FLHAL_F32: return load<float>(p);
    case FLHAL_F64: return load<double>(p);
    case FLHAL_F16: return load<_Float16>(p);
    case FLHAL_BF16: return load_bf16(p);
    case FLHAL_I32: return load<int32_t>(p);
    case FLHAL_I64: return load<int64_t>(p);
    case FLHAL_U8: case FLHAL_BOOL: return load<uint8_t>(p);
    case FLHAL_C64: return load<float>(p);
    case FLHAL_C128: return load<double>(p);
    default: return NAN;
  }
}
double read_imaginary(flhal_dtype dtype, const uint8_t* p) {
  return dtype == FLHAL_C64 ? load<float>(p + 4) : dtype == FLHAL_C128 ? load<double>(p + 8) : 0;
}
void write_imaginary(flhal_dtype dtype, uint8_t* p, double v) {
  if (dtype == FLHAL_C64) store<float>(p + 4, v);
  if (dtype == FLHAL_C128) store<double>(p + 8, v);
}
void write_element(flhal_dtype dtype, uint8_t* p, double v) {
  switch (dtype) {
    case FLHAL_F32: return store<float>(p, v);
    case FLHAL_F64: return store<double>(p, v);
    case FLHAL_F16: return store<_Float16>(p, v);
    case FLHAL_BF16: return store_bf16(p, v);
    case FLHAL_I32: return store<int32_t>(p, v);
    case FLHAL_I64: return store<int64_t>(p, v);
    case FLHAL_U8: return store<uint8_t>(p, v);
    case FLHAL_C64: return store<float>(p, v);
    case FLHAL_C128: return store<double>(p, v);
    default: *p = v != 0;
  }
}
double half_step(flhal_dtype dtype) {
  switch (dtype) {
    case FLHAL_F32: case FLHAL_C64: return 0x1p-24;
    case FLHAL_F64: case FLHAL_C128: return 0x1p-53;
    case FLHAL_F16: return 0x1p-11;
    case FLHAL_BF16: return 0x1p-8;
    default: return 0;
  }
}
std::string dtype_name(flhal_dtype dtype) {
  switch (dtype) {
    case FLHAL_F32: return "f32";
    case FLHAL_F64: return "f64";
    case FLHAL_F16: return "f16";
    case FLHAL_BF16: return "bf16";
    case FLHAL_I32: return "i32";
    case FLHAL_I64: return "i64";
    case FLHAL_U8: return "u8";
    case FLHAL_C64: return "c64";
    case FLHAL_C128: return "c128";
    default: return "bool";
  }
}
const char* layout_name(Layout layout) {
  static const char* const names[] = {"dense", "transposed", "gaps", "steps", "unaligned"};
  return names[static_cast<int>(layout)];
}

Tensor::Tensor(flhal_dtype t, Sizes s, Layout layout) : dtype(t), sizes(std::move(s)), given(true) {
  size_t rank = sizes.size();
  strides.assign(rank, 1);
  std::vector<size_t> order(rank);           // innermost dimension last
  for (size_t d = 0; d < rank; ++d) order[d] = d;
  if (layout == Layout::kTransposed && rank >= 2) std::swap(order[rank - 1], order[rank - 2]);
  int64_t step = layout == Layout::kSteps ? 2 : 1;
  for (size_t k = rank; k-- > 0;) {
    strides[order[k]] = step;
    step *= std::max<int64_t>(sizes[order[k]], 1);
    if (k + 1 == rank && layout == Layout::kGaps) step += 3;
  }
  uint64_t element = FLHAL_DTYPE_BYTES(dtype);
  first_ = kGuardBytes + (layout == Layout::kUnaligned ? element : 0);
  uint64_t last = 0;
  for (size_t d = 0; d < rank; ++d) last += static_cast<uint64_t>(std::max<int64_t>(sizes[d] - 1, 0) * strides[d]);
  bytes_.assign(first_ + (last + 1) * element + kGuardBytes, kGuard);
}

Tensor Tensor::host_scalar(flhal_dtype t, double v) {
  Tensor s(t, {}, Layout::kDense);
  s.scalar = true;
  s.set(0, v);
  return s;
}

uint64_t Tensor::offset_of(int64_t logical) const {
  Sizes at = index_of(logical, sizes);
  int64_t elements = 0;
  for (size_t d = 0; d < at.size(); ++d) elements += at[d] * strides[d];
  return first_ + static_cast<uint64_t>(elements) * FLHAL_DTYPE_BYTES(dtype);
}
void Tensor::fill_with(const std::function<double(int64_t)>& value) {
  for (int64_t i = 0; i < count(); ++i) set(i, value(i));
}
Values Tensor::values() const {
  Values v{sizes, {}, given};
  if (given)
    for (int64_t i = 0; i < count(); ++i) v.v.push_back(get(i)), v.imaginary.push_back(read_imaginary(dtype, bytes_.data() + offset_of(i)));
  return v;
}

void Tensor::upload(Device& device) {
  if (!given || scalar) return;
  if (slab_ == nullptr) slab_ = std::make_unique<Slab>(device, bytes_.size(), 256);
  device.upload(*slab_, 0, bytes_.data(), bytes_.size());
}
void Tensor::fetch(const Device&) {
  if (!given || scalar) return;
  slab_->made.bytes = bytes_.size();
  after_ = slab_->read();
}

flhal_tensor_v1 Tensor::describe() const {
  flhal_tensor_v1 t{};
  if (!given) return t.flags = FLHAL_TENSOR_ABSENT, t;
  t.sizes = sizes.data(), t.strides = strides.data();
  t.dtype = dtype;
  t.rank = static_cast<uint16_t>(sizes.size());
  if (scalar) {
    t.flags = FLHAL_TENSOR_HOST_SCALAR;
    t.address = reinterpret_cast<uint64_t>(bytes_.data() + first_);
    t.extent = FLHAL_DTYPE_BYTES(dtype);
    return t;
  }
  t.memory = slab_->made.memory;
  t.offset = first_;
  t.address = slab_->made.address != 0 ? slab_->made.address + first_ : 0;
  t.extent = count() == 0 ? 0 : bytes_.size() - first_ - kGuardBytes;
  return t;
}
flhal_tensor_v1 Tensor::describe_for_planning() const {
  flhal_tensor_v1 t = describe();
  if (!given) return t;
  t.memory = nullptr;
  t.address = forbidden_address() + first_;
  return t;
}

void Tensor::expect_guards(const std::string& what, bool output) const {
  if (!given || scalar) return;
  std::vector<uint8_t> wanted = bytes_;
  if (output)
    for (int64_t i = 0; i < count(); ++i) std::copy_n(after_.begin() + static_cast<long>(offset_of(i)), FLHAL_DTYPE_BYTES(dtype), wanted.begin() + static_cast<long>(offset_of(i)));
  auto at = std::mismatch(after_.begin(), after_.end(), wanted.begin());
  if (at.first == after_.end()) return;
  int64_t place = at.first - after_.begin() - static_cast<int64_t>(first_);
  fail(output ? fmt::format("{}: a byte that belongs to no element was written, {} bytes from the first element (0x{:02x}, it was 0x{:02x})", what, place, *at.first, *at.second)
              : fmt::format("{}: an input was written, {} bytes from its first element (0x{:02x}, it was 0x{:02x})", what, place, *at.first, *at.second));
}

}  // namespace flhal::conformance

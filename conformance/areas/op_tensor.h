// conformance/areas/op_tensor.h: operands with a layout of one's choice, and guard bytes around and between their elements.
#pragma once

#include <memory>
#include <string>

#include "reference/values.h"
#include "runner/context.h"

namespace flhal::conformance {

// One element as a double, by arithmetic of this file and not of any library under test.
double read_element(flhal_dtype dtype, const uint8_t* p);             // of a complex number the real part
void write_element(flhal_dtype dtype, uint8_t* p, double v);           // of a complex number the real part; the other stays
double read_imaginary(flhal_dtype dtype, const uint8_t* p);            // 0 of real numbers
void write_imaginary(flhal_dtype dtype, uint8_t* p, double v);
double half_step(flhal_dtype dtype);        // the largest relative error of one rounding; 0 for integers
std::string dtype_name(flhal_dtype dtype);
inline bool is_complex(flhal_dtype d) { return FLHAL_DTYPE_CODE(d) == 5; }
inline bool is_float(flhal_dtype d) { return FLHAL_DTYPE_CODE(d) == 2 || FLHAL_DTYPE_CODE(d) == 4; }

enum class Layout {
  kDense,
  kTransposed,    // the last two dimensions lie the other way round
  kGaps,          // rows are longer than they need to be
  kSteps,         // every second element
  kUnaligned,     // dense, one element behind an aligned address
};
const char* layout_name(Layout layout);

class Tensor {
 public:
  Tensor() = default;                        // an operand that is not given
  Tensor(flhal_dtype dtype, Sizes sizes, Layout layout = Layout::kDense);
  static Tensor host_scalar(flhal_dtype dtype, double v);

  flhal_dtype dtype = 0;
  Sizes sizes, strides;                      // strides in elements; 0 where the same element is read again
  bool given = false, scalar = false;

  int64_t count() const { return count_of(sizes); }
  double get(int64_t logical) const { return read_element(dtype, bytes_.data() + offset_of(logical)); }
  void set(int64_t logical, double v) { write_element(dtype, bytes_.data() + offset_of(logical), v); }
  void set_imaginary(int64_t logical, double v) { write_imaginary(dtype, bytes_.data() + offset_of(logical), v); }
  void fill_with(const std::function<double(int64_t)>& value);
  Values values() const;

  void upload(Device& device);               // makes the slab on first use
  void fetch(const Device& device);          // the slab's bytes into `after`
  flhal_tensor_v1 describe() const;          // valid while this lives
  flhal_tensor_v1 describe_for_planning() const;   // an address of the same alignment that nobody may touch, no memory
  double fetched(int64_t logical) const { return read_element(dtype, after_.data() + offset_of(logical)); }
  double fetched_imaginary(int64_t logical) const { return read_imaginary(dtype, after_.data() + offset_of(logical)); }
  // Fails when a byte changed that belongs to no element; of an input, when any byte did.
  void expect_guards(const std::string& what, bool output) const;

 private:
  uint64_t offset_of(int64_t logical) const;
  std::vector<uint8_t> bytes_, after_;
  uint64_t first_ = 0;                       // byte of element [0, ..., 0]
  std::unique_ptr<Slab> slab_;
};

}  // namespace flhal::conformance

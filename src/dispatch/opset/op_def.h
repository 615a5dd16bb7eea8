// src/dispatch/opset/op_def.h: what one row of the op set says.
//
// Idea: the op set is data. A row names operands and roles, attributes (static or dynamic, with defaults), the shape rule
// as a function, the dtype rule, whether outputs may be inputs, the tolerance and the formula. Core, `flhal-opset` (which
// prints ops.h, JSON and the reference page) and the tests all read the same rows.
// Rules: a number and an attribute's number are never reused (abi/1.0/ops.txt guards them); an op never changes meaning:
// a new meaning is a new row. Nothing here depends on core, so that the printer needs no libflhal.
#pragma once

#include <flhal/op.h>

#include <cstdint>
#include <string>

namespace flhal::opset {

inline constexpr uint32_t kMaxOperands = 12;   // table slots; a variadic slot may hold many tensors
inline constexpr uint32_t kMaxAttrs = 6;
inline constexpr uint32_t kMaxRank = 16;
inline constexpr uint32_t kMaxOpNumber = 0x800;

enum class Role : uint8_t { kOut, kIn, kInOut };          // kInOut: an output whose old content is read
struct Operand {
  const char* name = nullptr;
  Role role = Role::kIn;
  bool optional = false;    // may be TENSOR_ABSENT
  bool variadic = false;    // a group of 1 or more tensors
  bool written = false;     // an input that the op also writes (batch_norm's running statistics)
};

struct Attr {
  const char* name = nullptr;
  uint8_t number = 0;        // key = op << 8 | number
  uint16_t kind = 0;         // FLHAL_ATTR_INT ...
  bool dynamic = false;      // may change in each call, not part of a plan's identity
  bool required = false;
  uint8_t count = 1;         // of INTS
  int64_t default_int = 0;   // INT, and every element of INTS
  double default_float = 0;
  const char* doc = "";
  uint8_t since = 0;         // op set minor that added it: a call that gives it is only shown to plugins that know it
};

enum class Family : uint8_t { kPointwise, kReduce, kMatmul, kConv, kNorm, kIndex, kRandom, kCopy };

// Which arithmetic types (compute_dtype) the op is defined for.
enum class Dtypes : uint8_t { kAny, kNumeric, kFloat, kIntegral, kReal };   // kIntegral includes bool; kReal: no complex
// Dtype of output 0 in flhal_op_infer.
enum class OutDtype : uint8_t { kCompute, kBool, kInt64, kInput0, kAccumulate, kCaller };
// Which inputs may be the output itself (same view). kNone: core copies such an input first.
enum class Alias : uint8_t { kNone, kAnyInput };
// How a result may differ from the exact value rounded to the output's dtype.
enum class Tolerance : uint8_t { kExact, kRounded, kTranscendental, kAccumulated };

struct CallView;
struct Inferred;
// Sizes of the outputs from inputs and attributes. False: `why` says what does not fit.
using InferFn = bool (*)(const CallView&, Inferred*, std::string* why);
// Checks a complete call, outputs included. False: `why` says what does not fit.
using CheckFn = bool (*)(const CallView&, std::string* why);

struct OpDef {
  uint32_t number = 0;
  const char* name = nullptr;
  const char* formula = "";
  Family family = Family::kPointwise;
  uint8_t n_outputs = 1, n_inputs = 0, n_attrs = 0;   // table slots
  Operand operands[kMaxOperands] = {};                // outputs first
  Attr attrs[kMaxAttrs] = {};
  Dtypes dtypes = Dtypes::kNumeric;
  OutDtype out_dtype = OutDtype::kCompute;
  Alias alias = Alias::kNone;
  Tolerance tolerance = Tolerance::kRounded;
  bool random = false;
  bool pointwise = false;      // inputs broadcast against output 0; core checks that inline
  bool fills_empty = false;    // with zero input elements the output still gets `identity` written
  double identity = 0;
  InferFn infer = nullptr;
  CheckFn check = nullptr;
  uint8_t since = 0;           // op set minor that added the row
  uint64_t fast_counts = 0;    // n_outputs | n_inputs << 32 when hot_path.h takes the op: pointwise, one output, required inputs

  constexpr bool variadic() const {
    for (const Operand& o : operands) if (o.variadic) return true;
    return false;
  }
  constexpr const Operand& input(uint32_t i) const { return operands[n_outputs + i]; }

  // Builders, so that a row reads as a sentence.
  constexpr OpDef out(const char* n, bool optional = false) const {
    OpDef d = *this;
    d.operands[d.n_outputs++] = Operand{n, Role::kOut, optional};
    return d;
  }
  constexpr OpDef inout(const char* n) const {
    OpDef d = *this;
    d.operands[d.n_outputs++] = Operand{n, Role::kInOut};
    return d;
  }
  constexpr OpDef in(const char* n) const { return add_input(Operand{n, Role::kIn}); }
  constexpr OpDef maybe(const char* n) const { return add_input(Operand{n, Role::kIn, true}); }
  constexpr OpDef maybe_written(const char* n) const { return add_input(Operand{n, Role::kIn, true, false, true}); }
  constexpr OpDef many(const char* n) const { return add_input(Operand{n, Role::kIn, false, true}); }
  constexpr OpDef integer(const char* n, int64_t value, const char* doc = "") const {
    return add_attr(Attr{n, 0, FLHAL_ATTR_INT, false, false, 1, value, 0, doc});
  }
  constexpr OpDef number_attr(const char* n, double value, bool dynamic = false, const char* doc = "") const {
    return add_attr(Attr{n, 0, FLHAL_ATTR_FLOAT, dynamic, false, 1, 0, value, doc});
  }
  constexpr OpDef ints2(const char* n, int64_t value, bool required = false, const char* doc = "") const {
    return add_attr(Attr{n, 0, FLHAL_ATTR_INTS, false, required, 2, value, 0, doc});
  }
  constexpr OpDef philox() const {
    return add_attr(Attr{"philox", 0, FLHAL_ATTR_PHILOX, true, true, 1, 0, 0, "seed and counter offset"});
  }
  constexpr OpDef shape(InferFn i, CheckFn c) const { OpDef d = *this; d.infer = i; d.check = c; return d; }
  constexpr OpDef of(Dtypes t) const { OpDef d = *this; d.dtypes = t; return d; }
  constexpr OpDef gives(OutDtype t) const { OpDef d = *this; d.out_dtype = t; return d; }
  constexpr OpDef within(Tolerance t) const { OpDef d = *this; d.tolerance = t; return d; }
  constexpr OpDef row_since(uint8_t minor) const { OpDef d = *this; d.since = minor; return d; }
  constexpr OpDef attr_since(uint8_t minor) const { OpDef d = *this; d.attrs[d.n_attrs - 1].since = minor; return d; }   // the last one
  constexpr OpDef when_empty(double value) const {
    OpDef d = *this;
    d.fills_empty = true;
    d.identity = value;
    return d;
  }

 private:
  constexpr OpDef add_input(Operand o) const {
    OpDef d = *this;
    d.operands[d.n_outputs + d.n_inputs++] = o;
    return d;
  }
  constexpr OpDef add_attr(Attr a) const {
    OpDef d = *this;
    a.number = static_cast<uint8_t>(d.n_attrs + 1);
    d.attrs[d.n_attrs++] = a;
    return d;
  }
};

constexpr OpDef row(Family family, uint32_t number, const char* name, const char* formula) {
  OpDef d;
  d.family = family;
  d.number = number;
  d.name = name;
  d.formula = formula;
  d.n_outputs = 0;
  return d;
}

constexpr uint32_t attr_key(uint32_t op, uint32_t attr_number) { return op << 8 | attr_number; }

}  // namespace flhal::opset

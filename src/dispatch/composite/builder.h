// src/dispatch/composite/builder.h: how a composite is written: a function that makes temporaries and calls ops.
//
// Idea: the same function runs twice. When the plan is made, call() only asks for the parts' routes; in a call, it runs
// them in stream order with temporaries from the pool. Parts are found in the plan cache, so each is planned once.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "dispatch/opset/call_view.h"
#include "dispatch/prepared_call.h"
#include "dispatch/reasons.h"
#include "memory/pool.h"

namespace flhal {

// A strided view; a value, unlike flhal_tensor.
struct Part {
  uint64_t address = 0;
  flhal_dtype dtype = 0;
  uint32_t rank = 0, flags = FLHAL_TENSOR_ABSENT;
  int64_t sizes[opset::kMaxRank], strides[opset::kMaxRank];
  bool given() const { return (flags & FLHAL_TENSOR_ABSENT) == 0; }
};

class Builder {
 public:
  enum class Mode { kPlan, kRun };
  Builder(const PreparedCall& p, Mode mode, bool host_parts);
  Builder(const Builder&) = delete;

  Part in(uint32_t i) const { return operand(p_.source->n_outputs + i); }
  Part out(uint32_t i) const { return operand(i); }
  const opset::CallView& view() const { return view_; }
  flhal_dtype compute() const { return p_.call.compute_dtype; }
  // f32 for half types, the compute type itself otherwise: what sums and statistics are kept in.
  flhal_dtype wide() const;

  // A contiguous temporary, until the composite ends.
  Part temporary(const int64_t* sizes, uint32_t rank, flhal_dtype dtype);
  Part like(const Part& t, flhal_dtype dtype) { return temporary(t.sizes, t.rank, dtype); }
  // `t` with dimension `dim` (or the last n) of size 1.
  Part reduced(const Part& t, uint32_t dim, flhal_dtype dtype);
  Part reduced_tail(const Part& t, uint32_t n, flhal_dtype dtype);
  // A number as a host scalar of type f64; lives until the composite ends.
  Part number(double value);

  // A part. After the first failure or refusal nothing more is done.
  void call(uint32_t op, std::initializer_list<const Part*> outputs, std::initializer_list<const Part*> inputs,
            flhal_dtype compute, std::initializer_list<flhal_attr> attrs = {});

  Status status() const { return status_; }       // kRun
  bool refused() const { return refused_; }       // kPlan
  const std::string& refusal() const { return refusal_; }

 private:
  Part operand(uint32_t i) const;

  const PreparedCall& p_;
  const Mode mode_;
  const bool host_parts_;
  const opset::CallView view_;
  std::vector<Temporary> temporaries_;
  double numbers_[16];
  uint32_t n_numbers_ = 0;
  Status status_;
  bool refused_ = false;
  bool wrote_output_ = false;
  std::string refusal_;
};

inline flhal_attr float_attr(uint32_t key, double value) {
  flhal_attr a{};
  a.key = key;
  a.kind = FLHAL_ATTR_FLOAT;
  a.v.f = value;
  return a;
}

using CompositeFn = void (*)(Builder&);
CompositeFn composite_for(uint32_t op);            // nullptr when none is written

}  // namespace flhal

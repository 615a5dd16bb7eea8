// src/layers/op_operands.h: walking the operands of a call, whose distance the call says.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>

namespace flhal::layers {

template <typename T>
class Strided {                                 // elements that grew keep their old beginning
 public:
  Strided(const T* first, uint32_t n, uint32_t stride) : at_(reinterpret_cast<const char*>(first)), n_(n), stride_(stride) {}
  struct Iterator {
    const char* at;
    uint32_t stride;
    const T& operator*() const { return *reinterpret_cast<const T*>(at); }
    Iterator& operator++() { at += stride; return *this; }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() const { return {at_, stride_}; }
  Iterator end() const { return {at_ + uint64_t{n_} * stride_, stride_}; }
  const T& operator[](uint32_t i) const { return *reinterpret_cast<const T*>(at_ + uint64_t{i} * stride_); }
  uint32_t size() const { return n_; }

 private:
  const char* at_;
  uint32_t n_, stride_;
};

inline Strided<flhal_tensor_v1> operands_of(const flhal_op_call_v1& call) {
  return {call.tensors, call.n_outputs + call.n_inputs, call.tensor_stride};
}
inline Strided<flhal_attr_v1> attributes_of(const flhal_op_call_v1& call) { return {call.attrs, call.n_attrs, call.attr_stride}; }
inline Strided<flhal_p_arg> arguments_of(const flhal_p_launch_v1& launch) { return {launch.args, launch.n_args, launch.arg_stride}; }

inline bool in_memory(const flhal_tensor_v1& t) { return (t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR)) == 0; }
inline bool has_elements(const flhal_tensor_v1& t) {
  for (uint16_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] == 0) return false;
  return true;
}

}  // namespace flhal::layers

// tests/dispatch/call.h: device tensors and op calls in one line each.
#pragma once

#include <flhal/flhal.h>

#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/test_world.h"

namespace flhal::test {

inline flhal_device* device_named(const char* name) {
  uint32_t index;
  return flhal_device_find(name, &index) == FLHAL_OK ? flhal_device_at(index) : nullptr;
}
inline flhal_stream* stream_of(const char* name) { return flhal_stream_default(device_named(name)); }

inline std::string last_text() {
  char text[2048];
  flhal_last_error(text, sizeof text, nullptr);
  return text;
}

// A view: sizes, strides, dtype and address. Copies share memory.
struct Tensor {
  std::shared_ptr<uint64_t> memory;      // freed with the last copy
  flhal_stream* stream = nullptr;
  uint64_t address = 0;
  std::vector<int64_t> sizes, strides;
  flhal_dtype dtype = FLHAL_F32;
  uint32_t flags = 0;

  int64_t elements() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()); }
  Tensor view(std::vector<int64_t> new_sizes, std::vector<int64_t> new_strides, int64_t offset = 0) const {
    Tensor t = *this;
    t.sizes = std::move(new_sizes);
    t.strides = std::move(new_strides);
    t.address += static_cast<uint64_t>(offset) * FLHAL_DTYPE_BYTES(dtype);
    return t;
  }
  Tensor transposed() const { return view({sizes.rbegin(), sizes.rend()}, {strides.rbegin(), strides.rend()}); }
  flhal_tensor raw() const {
    flhal_tensor t{};
    t.address = address;
    t.sizes = sizes.data();
    t.strides = strides.data();
    t.dtype = dtype;
    t.rank = static_cast<uint16_t>(sizes.size());
    t.flags = flags;
    return t;
  }
};

inline std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

inline Tensor empty(flhal_stream* stream, std::vector<int64_t> sizes, flhal_dtype dtype = FLHAL_F32) {
  Tensor t;
  t.stream = stream;
  t.strides = dense_strides(sizes);
  t.sizes = std::move(sizes);
  t.dtype = dtype;
  uint64_t bytes = static_cast<uint64_t>(t.elements()) * FLHAL_DTYPE_BYTES(dtype);
  if (flhal_alloc(stream, bytes, &t.address) != FLHAL_OK) throw std::runtime_error(last_text());
  t.memory = std::shared_ptr<uint64_t>(new uint64_t(t.address), [](uint64_t* a) {
    flhal_free(*a);
    delete a;
  });
  return t;
}

template <typename T>
constexpr flhal_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return FLHAL_F32;
  else if constexpr (std::is_same_v<T, double>) return FLHAL_F64;
  else if constexpr (std::is_same_v<T, int64_t>) return FLHAL_I64;
  else if constexpr (std::is_same_v<T, int32_t>) return FLHAL_I32;
  else return FLHAL_BOOL;
}

template <typename T>
Tensor make(flhal_stream* stream, std::vector<int64_t> sizes, const std::vector<T>& values) {
  Tensor t = empty(stream, std::move(sizes), dtype_of<T>());
  if (!values.empty() && flhal_copy(stream, t.address, reinterpret_cast<uint64_t>(values.data()),
                                    values.size() * sizeof(T), 0) != FLHAL_OK)
    throw std::runtime_error(last_text());
  return t;
}
inline Tensor floats(flhal_stream* stream, std::vector<int64_t> sizes, float first = 1, float step = 1) {
  std::vector<float> values(static_cast<size_t>(
      std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>())));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<float>(i);
  return make(stream, std::move(sizes), values);
}
inline Tensor absent() {
  Tensor t;
  t.flags = FLHAL_TENSOR_ABSENT;
  t.dtype = 0;
  return t;
}
template <typename T>
Tensor scalar(const T* value) {
  Tensor t;
  t.address = reinterpret_cast<uint64_t>(value);
  t.dtype = dtype_of<T>();
  t.flags = FLHAL_TENSOR_HOST_SCALAR;
  return t;
}

// The elements of a dense tensor. Throws the stream's failure.
template <typename T = float>
std::vector<T> values(const Tensor& t) {
  std::vector<T> out(static_cast<size_t>(t.elements()));
  if (out.empty()) return out;
  if (flhal_copy(t.stream, reinterpret_cast<uint64_t>(out.data()), t.address, out.size() * sizeof(T), 0) != FLHAL_OK ||
      flhal_stream_synchronize(t.stream) != FLHAL_OK)
    throw std::runtime_error(last_text());
  return out;
}

struct Call {
  uint32_t op;
  std::vector<Tensor> outputs, inputs;
  std::vector<flhal_attr> attrs{};
  flhal_dtype compute = 0;
  uint32_t flags = 0;

  template <typename Fn>
  flhal_status with(Fn&& fn) const {
    std::vector<flhal_tensor> tensors;
    for (const Tensor& t : outputs) tensors.push_back(t.raw());
    for (const Tensor& t : inputs) tensors.push_back(t.raw());
    flhal_op_call call{};
    call.struct_size = sizeof call;
    call.struct_type = 10;   // FLHAL_ST_OP_CALL
    call.op = op;
    call.tensors = tensors.data();
    call.tensor_stride = sizeof(flhal_tensor);
    call.n_outputs = static_cast<uint32_t>(outputs.size());
    call.n_inputs = static_cast<uint32_t>(inputs.size());
    call.attrs = attrs.data();
    call.attr_stride = sizeof(flhal_attr);
    call.n_attrs = static_cast<uint32_t>(attrs.size());
    call.compute_dtype = compute;
    call.flags = flags;
    return fn(&call);
  }
  flhal_status run(flhal_stream* stream) const {
    return with([&](const flhal_op_call* c) { return flhal_op_run(stream, c); });
  }
  flhal_status run() const { return run(outputs[0].stream); }
  std::string route(flhal_device* device, std::string* reason = nullptr) const {
    uint32_t route = 99;
    const char* why = "";
    flhal_status status = with([&](const flhal_op_call* c) { return flhal_op_route(device, c, &route, &why); });
    if (status != FLHAL_OK) return last_text();
    if (reason) *reason = why;
    static const char* const names[] = {"none", "native", "kernel", "composite", "host", "declined"};
    return names[route];
  }
};

inline flhal_attr integer(uint32_t key, int64_t value) {
  flhal_attr a{};
  a.key = key;
  a.kind = FLHAL_ATTR_INT;
  a.v.i = value;
  return a;
}
inline flhal_attr number(uint32_t key, double value) {
  flhal_attr a{};
  a.key = key;
  a.kind = FLHAL_ATTR_FLOAT;
  a.v.f = value;
  return a;
}
inline flhal_attr ints(uint32_t key, const std::vector<int64_t>& values) {
  flhal_attr a{};
  a.key = key;
  a.kind = FLHAL_ATTR_INTS;
  a.count = static_cast<uint32_t>(values.size());
  a.v.p = values.data();
  return a;
}

inline std::string report(const char* which) {
  std::string text;
  flhal_report(which, [](void* ctx, const char* utf8, uint64_t n) { static_cast<std::string*>(ctx)->assign(utf8, n); },
               &text);
  return text;
}

// A setting for one scope.
class Setting {
 public:
  Setting(const char* key, const char* value, const char* back) : Setting(key, value) { old_ = back; }
  Setting(const char* key, const char* value) : key_(key) {
    flhal_config_get(key, [](void* ctx, const char* utf8, uint64_t n) { static_cast<std::string*>(ctx)->assign(utf8, n); },
                     &old_);
    status = flhal_config_set(key, value);
  }
  ~Setting() { flhal_config_set(key_.c_str(), old_.c_str()); }
  flhal_status status;

 private:
  std::string key_, old_;
};

}  // namespace flhal::test

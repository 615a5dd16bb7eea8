// examples/cpp/layer.cc: relu(x w + b) on every chip that is found, in C++20 over the C interface.
//
// Idea: flhal's handles and addresses go into RAII types of a dozen lines; nothing else of C++ is needed. A call's outputs are the
// caller's memory, so the shapes are worked out before the call.
#include <flhal/flhal.h>

#include <cstdio>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

void must(flhal_status status, const char* what) {
  if (status >= 0 && status != FLHAL_DECLINED) return;
  char text[4096];
  flhal_last_error(text, sizeof text, nullptr);
  throw std::runtime_error(std::string(what) + ": " + (status == FLHAL_DECLINED ? flhal_last_decline() : text));
}

// Dense float32 on the chip of a stream; the memory goes back in stream order.
class Tensor {
 public:
  Tensor(flhal_stream* stream, std::initializer_list<int64_t> sizes) : stream_(stream), sizes_(sizes), strides_(sizes.size()) {
    std::exclusive_scan(sizes_.rbegin(), sizes_.rend(), strides_.rbegin(), int64_t{1}, std::multiplies<>());
    must(flhal_alloc(stream_, bytes(), &address_), "flhal_alloc");
  }
  Tensor(flhal_stream* stream, std::initializer_list<int64_t> sizes, std::span<const float> values) : Tensor(stream, sizes) {
    must(flhal_copy(stream_, address_, reinterpret_cast<flhal_addr>(values.data()), bytes(), 0), "flhal_copy");
  }
  Tensor(Tensor&& other) noexcept
      : stream_(other.stream_), sizes_(std::move(other.sizes_)), strides_(std::move(other.strides_)), address_(std::exchange(other.address_, 0)) {}
  Tensor& operator=(Tensor&&) = delete;
  ~Tensor() { flhal_free(address_); }              // address 0 is legal

  flhal_tensor operand() const {
    flhal_tensor t{};
    t.address = address_;
    t.sizes = sizes_.data();
    t.strides = strides_.data();
    t.dtype = FLHAL_F32;
    t.rank = static_cast<uint16_t>(sizes_.size());
    return t;
  }
  std::vector<float> read() const {
    std::vector<float> values(bytes() / sizeof(float));
    must(flhal_copy(stream_, reinterpret_cast<flhal_addr>(values.data()), address_, bytes(), 0), "flhal_copy");
    must(flhal_stream_synchronize(stream_), "flhal_stream_synchronize");
    return values;
  }

 private:
  uint64_t bytes() const {
    return static_cast<uint64_t>(std::accumulate(sizes_.begin(), sizes_.end(), int64_t{1}, std::multiplies<>())) * sizeof(float);
  }
  flhal_stream* stream_;
  std::vector<int64_t> sizes_, strides_;           // in elements
  flhal_addr address_ = 0;
};

// `operands`: the output first.
void run(flhal_stream* stream, uint32_t op, std::initializer_list<flhal_tensor> operands) {
  flhal_op_call call{};
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = op;
  call.tensors = operands.begin();
  call.tensor_stride = sizeof(flhal_tensor);
  call.n_outputs = 1;
  call.n_inputs = static_cast<uint32_t>(operands.size() - 1);
  call.compute_dtype = FLHAL_F32;
  must(flhal_op_run(stream, &call), "flhal_op_run");
}

void layer(flhal_device* device, const flhal_device_info& info) {
  flhal_stream* stream = flhal_stream_default(device);
  if (!stream) must(flhal_last_error(nullptr, 0, nullptr), "flhal_stream_default");
  const std::vector<float> x = {1, 2, 3, 4}, w = {1, 0, -1, 2, 1, -2}, b = {-9, 0.5f, 1};
  Tensor at_x(stream, {2, 2}, x), at_w(stream, {2, 3}, w), at_b(stream, {3}, b), y(stream, {2, 3});
  run(stream, FLHAL_OP_MATMUL, {y.operand(), at_x.operand(), at_w.operand(), at_b.operand()});   // the row b is added to each row
  run(stream, FLHAL_OP_RELU, {y.operand(), y.operand()});
  std::printf("[%u] %s:", info.index, info.name);
  for (float value : y.read()) std::printf(" %g", value);
  std::printf("\n");
}

}  // namespace

int main() {
  try {
    for (uint32_t i = 0; i < flhal_device_count(); ++i) {
      flhal_device_info info{};
      info.struct_size = sizeof info;
      must(flhal_device_get_info(flhal_device_at(i), &info), "flhal_device_get_info");
      layer(flhal_device_at(i), info);
    }
    if (flhal_device_count() == 0) must(flhal_last_error(nullptr, 0, nullptr), "flhal_device_count");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// csrc/factories.h: fresh device tensors without torch's guards and dispatch. Memory comes from the current stream of `device`.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_fl {

at::Tensor empty_contiguous(at::IntArrayRef sizes, at::ScalarType dtype, c10::DeviceIndex device);
// A dense result of the sizes, dtype and device of `model`, a tensor of ours: nothing has to be checked again.
at::Tensor empty_like_model(const c10::TensorImpl* model);
at::Tensor empty_like_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, c10::DeviceIndex device);
// Sizes and strides of a tensor anew; its storage grows when it must, and keeps its bytes.
void reshape_tensor(c10::TensorImpl* self, at::IntArrayRef sizes, at::OptionalIntArrayRef strides);
// An out= tensor gets the sizes of the result, with torch's warning when it had elements; strides contiguous when it grew.
void resize_output(const at::Tensor& out, at::IntArrayRef sizes);
// The dtype itself, or what stands for it where the chip cannot hold it (set_float64). Else raises: one sentence for every door
// into the device (TYPE-02, TYPE-05).
at::ScalarType storable(at::ScalarType dtype, c10::DeviceIndex device);

}  // namespace torch_fl

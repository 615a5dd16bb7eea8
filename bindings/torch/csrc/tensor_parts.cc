// csrc/tensor_parts.cc: see tensor_parts.h.
#include "tensor_parts.h"

#include <c10/core/InferenceMode.h>

#include "device.h"

namespace torch_fl {
namespace {

// The keys that torch's own constructor gives a new tensor of ours, outside of inference mode and in it.
constexpr c10::BackendComponent kComponent = c10::BackendComponent::PrivateUse1Bit;
const c10::DispatchKeySet kInferenceKeys =
    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) | c10::getAutocastRelatedKeySetFromBackend(kComponent);
const c10::DispatchKeySet kKeys = kInferenceKeys | c10::getAutogradRelatedKeySetFromBackend(kComponent);
const c10::DispatchKeySet kHostInferenceKeys =
    c10::DispatchKeySet(c10::DispatchKey::CPU) | c10::getAutocastRelatedKeySetFromBackend(c10::BackendComponent::CPUBit);
const c10::DispatchKeySet kHostKeys = kHostInferenceKeys | c10::getAutogradRelatedKeySetFromBackend(c10::BackendComponent::CPUBit);

// Exactly those that set_dense gives; a contiguous tensor may have others where a size is 1.
bool has_dense_strides(const c10::TensorImpl* base) {
  const c10::IntArrayRef sizes = base->sizes(), strides = base->strides();
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (strides[d] != next) return false;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

c10::VariableVersion new_counter() {
  ThreadState* state = t_state;
  if (C10_LIKELY(state != nullptr && state->parts.n_counters != 0)) {
    c10::VariableVersion counter = std::move(state->parts.counters[--state->parts.n_counters]);
    counter.set_version(0);
    return counter;
  }
  return c10::VariableVersion(0);
}

}  // namespace

void* FlStorage::operator new(size_t) { return thread_state().parts.storages.take(); }
void FlStorage::operator delete(void* block) {
  if (C10_LIKELY(t_state != nullptr)) t_state->parts.storages.give(block);
  else ::operator delete(block);
}

void* FlTensor::operator new(size_t) { return thread_state().parts.tensors.take(); }
void FlTensor::operator delete(void* block) {
  if (C10_LIKELY(t_state != nullptr)) t_state->parts.tensors.give(block);
  else ::operator delete(block);
}

// Without autograd's keys torch's constructor makes no version counter: they are added here, with a kept counter.
FlTensor::FlTensor(c10::Storage&& storage, caffe2::TypeMeta type, c10::IntArrayRef sizes, int64_t numel)
    : TensorImpl(VIEW, std::move(storage), kInferenceKeys, type) {
  if (C10_LIKELY(!c10::InferenceMode::is_enabled())) {
    key_set_ = kKeys;
    version_counter_ = new_counter();
  }
  set_dense(sizes, numel);
}

FlTensor::FlTensor(const c10::TensorImpl* base, c10::IntArrayRef sizes)
    : TensorImpl(VIEW, c10::Storage(base->storage()), kInferenceKeys, base->dtype()) {
  key_set_ = base->key_set();
  version_counter_ = base->version_counter();
  storage_offset_ = base->storage_offset();
  set_dense(sizes, base->numel());
}

FlTensor::FlTensor(OnHost, c10::Storage&& storage, const c10::TensorImpl* base, int64_t offset)
    : TensorImpl(VIEW, std::move(storage), kHostInferenceKeys, base->dtype()) {
  if (C10_LIKELY(!c10::InferenceMode::is_enabled())) {
    key_set_ = kHostKeys;
    version_counter_ = new_counter();
  }
  if (C10_LIKELY(has_dense_strides(base))) {
    storage_offset_ = offset;
    set_dense(base->sizes(), base->numel());
  } else {
    set_sizes_and_strides(base->sizes(), base->strides(), offset);
  }
}

FlTensor::~FlTensor() {
  ThreadState* state = t_state;
  if (C10_LIKELY(state != nullptr && version_counter_.enabled() && version_counter_.unique() &&
                 state->parts.n_counters < TensorParts::kKeptCounters))
    state->parts.counters[state->parts.n_counters++] = std::move(version_counter_);
}

void FlTensor::set_dense(c10::IntArrayRef sizes, int64_t numel) {
  numel_ = numel;
  if (C10_LIKELY(sizes.size() == 1)) {           // the constructor has written one dimension with stride 1
    sizes_and_strides_.size_at_unchecked(0) = sizes[0];
    return;
  }
  sizes_and_strides_.resize(sizes.size());
  int64_t *size = sizes_and_strides_.sizes_data(), *stride = sizes_and_strides_.strides_data(), next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    size[d] = sizes[d];
    stride[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  if (sizes.size() == 4 || sizes.size() == 5) refresh_contiguous();   // may count as channels last too
}

}  // namespace torch_fl

// csrc/tensor_parts.h: the TensorImpl and StorageImpl of our tensors: torch's own, in memory that the thread keeps.
//
// Idea: a small operator spends more on the three heap blocks of its result (tensor, storage, version counter) than on its
// arithmetic. A thread keeps up to kKept of each when tensors die and makes the next ones of them. Nothing else differs from
// torch's classes: what torch makes itself (detach, shallow copies) stays its own.
// The counter of a dying tensor is kept only when nothing else (a view, a saved variable) holds it.
// Threads: a tensor may die in another thread; its memory then stays there. A thread that has ended, or has none of our state
// yet, uses the heap. Figures: docs/why/adapter.md.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

namespace torch_fl {

// Blocks of one size that a thread has left over.
template <size_t kBytes>
class KeptBlocks {
 public:
  static constexpr uint32_t kKept = 64;
  ~KeptBlocks() {
    while (count_ != 0) ::operator delete(blocks_[--count_]);
  }
  void* take() { return C10_LIKELY(count_ != 0) ? blocks_[--count_] : ::operator new(kBytes); }
  void give(void* block) {
    if (C10_LIKELY(count_ < kKept)) blocks_[count_++] = block;
    else ::operator delete(block);
  }

 private:
  uint32_t count_ = 0;
  void* blocks_[kKept];
};

struct FlStorage final : c10::StorageImpl {
  FlStorage(size_t bytes, c10::DataPtr data, c10::Allocator* allocator)
      : StorageImpl(use_byte_size_t(), static_cast<int64_t>(bytes), std::move(data), allocator, /*resizable=*/true) {}
  static void* operator new(size_t bytes);
  static void operator delete(void* block);
};

struct FlTensor final : c10::TensorImpl {
  // Dense, row-major; the caller has multiplied the sizes.
  FlTensor(c10::Storage&& storage, caffe2::TypeMeta type, c10::IntArrayRef sizes, int64_t numel);
  // A dense view of `base`, with its version counter and its keys.
  FlTensor(const c10::TensorImpl* base, c10::IntArrayRef sizes);
  // A CPU tensor with the sizes and strides of `base`, over memory that the host borrows from its device for one call.
  struct OnHost {};
  FlTensor(OnHost, c10::Storage&& storage, const c10::TensorImpl* base, int64_t offset);
  ~FlTensor() override;
  static void* operator new(size_t bytes);
  static void operator delete(void* block);

 private:
  void set_dense(c10::IntArrayRef sizes, int64_t numel);
};

// What a thread keeps; a member of its ThreadState (device.h).
struct TensorParts {
  static constexpr uint32_t kKeptCounters = 64;
  KeptBlocks<sizeof(FlTensor)> tensors;
  KeptBlocks<sizeof(FlStorage)> storages;
  uint32_t n_counters = 0;
  c10::VariableVersion counters[kKeptCounters];
};

}  // namespace torch_fl

// reference_plugins/host/plan.h: what a native plan is, and how its makers look at a call.
//
// A maker answers nullptr and fills `out`, or answers why not: static text that reports show. Each op is a row of the
// table in ops.cc; a maker lives in the file of its family.
#pragma once

#include <flhal/ops.h>
#include <flhal/plugin.h>
#include <omp.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "host_plugin.h"

// Immutable after it is made: run() may be called on several threads at once.
struct flhal_p_plan {
  flhal_p_device* device = nullptr;
  virtual ~flhal_p_plan() = default;
  virtual void belong_to(flhal_p_device* d) { device = d; }   // once, by plan_create
  virtual flhal_status run(const flhal_op_call_v1& call, void* workspace) const = 0;
};

namespace flhal::host {

using PlanMaker = const char* (*)(const flhal_op_call_v1& proto, flhal_plan_info_v1& info,
                                  std::unique_ptr<flhal_p_plan>& out);

inline const flhal_tensor_v1& tensor_of(const flhal_op_call_v1& call, uint32_t i) {
  return *reinterpret_cast<const flhal_tensor_v1*>(reinterpret_cast<const char*>(call.tensors) + size_t{i} * call.tensor_stride);
}
inline bool given(const flhal_tensor_v1& t) { return !(t.flags & FLHAL_TENSOR_ABSENT); }
inline void* pointer_of(const flhal_tensor_v1& t) {
  if (t.address) return reinterpret_cast<void*>(t.address);
  return t.memory ? t.memory->base + t.offset : nullptr;
}
inline int64_t element_count(const flhal_tensor_v1& t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t.rank; ++d) n *= t.sizes[d];
  return n;
}

inline const flhal_attr_v1* find_attr(const flhal_op_call_v1& call, uint32_t key) {
  const char* at = reinterpret_cast<const char*>(call.attrs);
  for (uint32_t i = 0; i < call.n_attrs; ++i, at += call.attr_stride) {
    auto* attr = reinterpret_cast<const flhal_attr_v1*>(at);
    if (attr->key == key) return attr;
  }
  return nullptr;
}
inline double number_attr(const flhal_op_call_v1& call, uint32_t key, double otherwise) {
  const flhal_attr_v1* a = find_attr(call, key);
  if (!a) return otherwise;
  return a->kind == FLHAL_ATTR_INT ? static_cast<double>(a->v.i) : a->v.f;
}
inline int64_t integer_attr(const flhal_op_call_v1& call, uint32_t key, int64_t otherwise) {
  const flhal_attr_v1* a = find_attr(call, key);
  return a ? a->v.i : otherwise;
}
// Element i of an INTS attribute.
inline int64_t element_attr(const flhal_op_call_v1& call, uint32_t key, uint32_t i, int64_t otherwise) {
  const flhal_attr_v1* a = find_attr(call, key);
  return a && i < a->count ? static_cast<const int64_t*>(a->v.p)[i] : otherwise;
}

// The number of threads a primitive made or run now has. oneDNN fixes it when a primitive is made.
inline int threads_now() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

// oneDNN divides for omp_get_max_threads() even inside a parallel region, where it gets one thread. While one of these
// lives there, both agree.
class SerialWhenNested {
 public:
  SerialWhenNested() : before_(omp_in_parallel() ? omp_get_max_threads() : 0) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~SerialWhenNested() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  SerialWhenNested(const SerialWhenNested&) = delete;
  SerialWhenNested& operator=(const SerialWhenNested&) = delete;

 private:
  int before_;
};

// The workspace of one run: core's, or one of our own when this run needs more than the plan declared (another number of
// threads, or a program that the first call did not need).
class Workspace {
 public:
  Workspace(void* given, uint64_t given_bytes, uint64_t needed) : p_(given) {
    if (needed > given_bytes || (needed && !given)) p_ = own_ = std::aligned_alloc(64, (needed + 63) / 64 * 64);
  }
  ~Workspace() { std::free(own_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* get() const { return p_; }

 private:
  void* p_;
  void* own_ = nullptr;
};

// One T per number of threads, because a oneDNN primitive divides its work for the number it was made with: after
// torch.set_num_threads the same plan needs another primitive.
// Threads: any; a new number of threads is built once, under a lock; finding is lock-free.
template <class T>
class PerThreadCount {
 public:
  ~PerThreadCount() {
    for (Node* n = head_.load(); n;) delete std::exchange(n, n->next);
  }
  // make(): a unique_ptr<T>, null on failure. The result is null only then.
  template <class Make>
  const T* get(Make&& make) const {
    const int threads = threads_now();
    for (Node* n = head_.load(std::memory_order_acquire); n; n = n->next)
      if (n->threads == threads) return n->value.get();
    const SerialWhenNested guard;
    std::lock_guard lock(mutex_);
    for (Node* n = head_.load(std::memory_order_acquire); n; n = n->next)
      if (n->threads == threads) return n->value.get();
    std::unique_ptr<T> value = make();
    if (!value) return nullptr;
    Node* node = new Node{threads, std::move(value), head_.load()};
    head_.store(node, std::memory_order_release);
    return node->value.get();
  }

 private:
  struct Node {
    int threads;
    std::unique_ptr<T> value;
    Node* next;
  };
  mutable std::atomic<Node*> head_{nullptr};
  mutable std::mutex mutex_;
};

}  // namespace flhal::host

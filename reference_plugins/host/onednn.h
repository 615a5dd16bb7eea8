// reference_plugins/host/onednn.h: oneDNN, found when the first native plan needs it.
//
// Idea: a table of function pointers, filled by dlopen and dlsym. A hard link would make the whole plugin fail to load
// where libdnnl.so.3 is missing, and would run its 400 static constructors in every process that only counts devices.
// Cost: 0.3 s once (50 MB are mapped), one indirect call more per run.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <utility>

namespace flhal::host {

#define FLHAL_ONEDNN_FUNCTIONS(X)                                                                                     \
  X(version) X(engine_create) X(stream_create)                                                                        \
  X(memory_desc_create_with_strides) X(memory_desc_create_with_tag) X(memory_desc_destroy) X(memory_desc_get_size)    \
  X(memory_desc_equal) X(memory_desc_clone) X(memory_create) X(memory_destroy) X(memory_set_data_handle)                                   \
  X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_scratchpad_mode)                            \
  X(primitive_attr_set_fpmath_mode) X(primitive_attr_set_post_ops) X(post_ops_create) X(post_ops_destroy)             \
  X(post_ops_append_binary)                                                                                           \
  X(matmul_primitive_desc_create) X(convolution_forward_primitive_desc_create)                                        \
  X(convolution_backward_data_primitive_desc_create) X(convolution_backward_weights_primitive_desc_create)            \
  X(pooling_forward_primitive_desc_create) X(reorder_primitive_desc_create)                                           \
  X(primitive_desc_query) X(primitive_desc_query_md) X(primitive_desc_destroy)                                        \
  X(primitive_create) X(primitive_execute) X(primitive_destroy)

struct OneDnn {
#define FLHAL_ONEDNN_MEMBER(name) decltype(&::dnnl_##name) name;
  FLHAL_ONEDNN_FUNCTIONS(FLHAL_ONEDNN_MEMBER)
#undef FLHAL_ONEDNN_MEMBER
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;   // a processor's stream has no state with OpenMP, so all threads share it
  const char* missing = nullptr;    // why there is no oneDNN: static text with the remedy; nullptr when there is
};

// Loads it on the first call. Threads: any; the others wait.
const OneDnn& onednn();

// Owners of oneDNN's handles. The library's destroy functions take null.
#define FLHAL_ONEDNN_OWNER(Name, handle, destroy)                                         \
  class Name {                                                                            \
   public:                                                                                \
    Name() = default;                                                                     \
    Name(Name&& o) noexcept : h_(std::exchange(o.h_, nullptr)) {}                         \
    Name& operator=(Name&& o) noexcept { std::swap(h_, o.h_); return *this; }             \
    ~Name() { if (h_) onednn().destroy(h_); }                                             \
    handle get() const { return h_; }                                                     \
    handle* out() { if (h_) onednn().destroy(h_); h_ = nullptr; return &h_; }             \
    explicit operator bool() const { return h_ != nullptr; }                              \
   private:                                                                               \
    handle h_ = nullptr;                                                                  \
  }
FLHAL_ONEDNN_OWNER(MemoryDesc, dnnl_memory_desc_t, memory_desc_destroy);
FLHAL_ONEDNN_OWNER(PrimitiveDesc, dnnl_primitive_desc_t, primitive_desc_destroy);
FLHAL_ONEDNN_OWNER(Primitive, dnnl_primitive_t, primitive_destroy);
FLHAL_ONEDNN_OWNER(PrimitiveAttr, dnnl_primitive_attr_t, primitive_attr_destroy);
FLHAL_ONEDNN_OWNER(PostOps, dnnl_post_ops_t, post_ops_destroy);
#undef FLHAL_ONEDNN_OWNER

}  // namespace flhal::host

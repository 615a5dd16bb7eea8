// csrc/host_allocator.h: pinned host memory, as torch's pin_memory() wants it.
#pragma once

#include <c10/core/Allocator.h>

namespace torch_fl {

c10::Allocator* host_allocator();
bool is_pinned(const void* pointer) noexcept;         // true for interior pointers too (COPY-04)

}  // namespace torch_fl

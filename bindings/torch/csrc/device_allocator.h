// csrc/device_allocator.h: torch's allocator over flhal's pool. The DataPtr's context is the address itself: no allocation besides.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

namespace torch_fl {

c10::Allocator* device_allocator();
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);     // on the thread's current stream of that device
void free_address(void* address);                                   // the deleter
// Grows or shrinks; keeps the bytes both sizes have. In stream order.
void resize_storage(c10::StorageImpl* storage, size_t bytes);

}  // namespace torch_fl

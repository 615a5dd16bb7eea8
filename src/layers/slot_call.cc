// src/layers/slot_call.cc: what a flat call is about.
#include "layers/slot_call.h"

#include "layers/op_operands.h"

namespace flhal::layers {

uint64_t bytes_of(const SlotCall& call) {
  switch (call.slot) {
    case SlotId::memory_alloc: return call.argument<const flhal_p_slab_v1*>(1)->bytes;
    case SlotId::copy: {
      auto* what = call.argument<const flhal_p_copy_v1*>(2);
      return what->bytes * (what->rows ? what->rows : 1);
    }
    case SlotId::fill: return call.argument<uint64_t>(3);
    case SlotId::host_begin:
    case SlotId::host_end: return call.argument<uint64_t>(2);
    case SlotId::module_load: return call.argument<const flhal_p_source_v1*>(1)->bytes;
    case SlotId::plan_run: {
      uint64_t bytes = 0;
      for (const flhal_tensor_v1& t : operands_of(*call.argument<const flhal_op_call_v1*>(2)))
        if (in_memory(t)) bytes += t.extent;
      return bytes;
    }
    default: return 0;
  }
}

}  // namespace flhal::layers

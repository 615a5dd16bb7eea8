// src/dispatch/launch.h: one launch of an application's function, inlined into flhal_launch.
#pragma once

#include <fmt/format.h>  // fmt::ptr

#include <memory>

#include "dispatch/app_module.h"

namespace flhal {

inline constexpr uint32_t kInlineArgs = 24;

[[gnu::always_inline]] inline Status launch_function(Stream* stream, AppFunction* f, const uint64_t groups[3],
                                                     const uint32_t group_size[3], const flhal_kernel_arg* args,
                                                     uint32_t n_args) {
  // One product finds the zeros; one that wraps to 0 has 2^64 work-items or more, which no chip would finish.
  const uint64_t items = groups[0] * groups[1] * groups[2] * group_size[0] * group_size[1] * group_size[2];
  if (__builtin_expect(!f->handle || f->device != stream->device || items == 0, 0))
    return bad_launch(*f, stream, groups, group_size);
  flhal_p_arg inline_args[kInlineArgs];
  std::unique_ptr<flhal_p_arg[]> more;
  flhal_p_arg* out = inline_args;
  if (__builtin_expect(n_args > kInlineArgs, 0)) {
    more = std::make_unique_for_overwrite<flhal_p_arg[]>(n_args);
    out = more.get();
  }
  uint32_t local_bytes = 0;
  for (uint32_t i = 0; i < n_args; ++i) {
    const flhal_kernel_arg& a = args[i];
    flhal_p_arg& o = out[i];
    o.kind = a.kind;
    o.size = a.size;
    o.value = a.value;
    o.memory = nullptr;
    o.offset = o.address = 0;
    if (a.kind == FLHAL_KERNEL_ARG_MEMORY) {
      if (a.address == 0) continue;                   // a null pointer, on purpose
      Located place = AddressMap::locate(a.address);
      if (__builtin_expect(!place.slab || place.slab->device != f->device, 0))
        return argument_out_of_place(*f, i, a.address, place.slab);
      o.memory = place.slab->memory;
      o.offset = place.offset;
      o.address = place.slab->device_address ? place.slab->device_address + place.offset : 0;
    } else if (a.kind == FLHAL_KERNEL_ARG_LOCAL) {
      local_bytes += a.size;
    } else if (__builtin_expect(a.kind != FLHAL_KERNEL_ARG_VALUE || !a.value, 0)) {
      return fail(FLHAL_E_INVALID, "flhal_launch: {}: argument {} has kind {} and value {}", f->name, i, a.kind,
                  fmt::ptr(a.value));
    }
  }
  if (__builtin_expect(stream->asynchronous && f->module->only_stream.load(std::memory_order_relaxed) != stream, 0))
    f->module->note_stream(stream);
  struct Work {                       // one object, so that the closure is one pointer
    flhal_p_launch_v1 launch;
    Device* device;
  } work;
  work.device = f->device;
  flhal_p_launch_v1& launch = work.launch;
  launch.struct_size = sizeof launch;
  launch.struct_type = FLHAL_ST_LAUNCH;
  launch.next = nullptr;
  launch.function = f->handle;
  for (uint32_t d = 0; d < 3; ++d) {
    launch.groups[d] = groups[d];
    launch.group_size[d] = group_size[d];
  }
  launch.local_bytes = local_bytes;
  launch.args = out;
  launch.n_args = n_args;
  launch.arg_stride = sizeof(flhal_p_arg);
  Status done = stream->submit("flhal_launch", [&work](flhal_p_stream* s) {
    return plugin_call(work.device->plugin->table.launch, work.device->handle, s, &work.launch);
  });
  return __builtin_expect(done.code() == kQueueInstead, 0) ? queue_launch(stream, f, launch) : done;
}

}  // namespace flhal

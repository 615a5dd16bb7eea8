// src/layers/validate_arguments.cc: what core gives: ranges against their slabs, operands, arguments, and what is given back.
#include "layers/op_operands.h"
#include "layers/validate_state.h"

namespace flhal::layers {
namespace {

Object* device_of(const SlotCall& call) {
  return call.info().kinds[0] == Kind::kDevice ? validation(call).objects.find(Kind::kDevice, from_word<const void*>(call.words[0])) : nullptr;
}

// A slab that a struct names: alive, of this device, and `bytes` from `offset` lie inside.
Object* check_range(const SlotCall& call, const Object* device, const flhal_p_memory* memory, uint64_t offset, uint64_t bytes, const char* what) {
  Object* slab = known(call, Kind::kMemory, memory);
  if (slab == nullptr) return nullptr;
  if (device != nullptr && slab->owner != nullptr && slab->owner != device)
    found(Finding::handle_of_another_device, call, fmt::format("{} lies in {} of {}, the call is for {}", what, name_of(*slab), name_of(*slab->owner), name_of(*device)));
  if (slab->bytes != 0 && (offset > slab->bytes || bytes > slab->bytes - offset))
    found(Finding::out_of_bounds, call, fmt::format("{} is [{}, {}) of {}, which has {} bytes", what, offset, offset + bytes, name_of(*slab), slab->bytes));
  return slab;
}

void check_place(const SlotCall& call, const Object* device, const flhal_p_place& place, uint64_t bytes, const char* what) {
  if (place.memory != nullptr) {
    check_range(call, device, place.memory, place.offset, bytes, what);
  } else if (place.host == nullptr && bytes != 0) {
    found(Finding::argument_wrong, call, fmt::format("{} is neither memory nor a host pointer", what));
  }
}

void check_copy(const SlotCall& call) {
  auto* c = call.argument<const flhal_p_copy_v1*>(2);
  const Object* device = device_of(call);
  if (c->rows == 0) return found(Finding::argument_wrong, call, "rows is 0");
  if (c->rows > 1 && (c->dst_pitch < c->bytes || c->src_pitch < c->bytes))
    found(Finding::argument_wrong, call, fmt::format("rows of {} bytes are {} and {} bytes apart", c->bytes, c->dst_pitch, c->src_pitch));
  check_place(call, device, c->dst, c->bytes ? (c->rows - 1) * c->dst_pitch + c->bytes : 0, "the target");
  check_place(call, device, c->src, c->bytes ? (c->rows - 1) * c->src_pitch + c->bytes : 0, "the source");
}

void check_fill(const SlotCall& call) {
  const uint64_t bytes = call.argument<uint64_t>(3);
  const uint32_t width = call.argument<uint32_t>(5);
  if ((width != 1 && width != 2 && width != 4 && width != 8 && width != 16) || bytes % width != 0)
    found(Finding::argument_wrong, call, fmt::format("{} bytes of a pattern of {}", bytes, width));
  check_place(call, device_of(call), *call.argument<const flhal_p_place*>(2), bytes, "the target");
}

void check_launch(const SlotCall& call) {
  auto* l = call.argument<const flhal_p_launch_v1*>(2);
  const Object* device = device_of(call);
  if (l->function == nullptr) return found(Finding::handle_null, call, "the function is NULL");
  Object* function = known(call, Kind::kFunction, l->function);
  if (function && function->owner && function->owner->owner && device && function->owner->owner != device)
    found(Finding::handle_of_another_device, call, fmt::format("{} belongs to {}", name_of(*function), name_of(*function->owner->owner)));
  uint32_t i = 0;
  for (const flhal_p_arg& a : arguments_of(*l)) {
    if (a.kind == FLHAL_ARG_MEMORY && a.memory != nullptr) {
      const Object* slab = check_range(call, device, a.memory, a.offset, 0, "an argument");
      if (slab && slab->address != 0 && a.address != slab->address + a.offset)
        found(Finding::address_of_operand, call, fmt::format("argument {} has address {:#x}, its slab and offset give {:#x}", i, a.address, slab->address + a.offset));
    } else if (a.kind == FLHAL_ARG_VALUE ? a.value == nullptr : a.kind != FLHAL_ARG_LOCAL && a.kind != FLHAL_ARG_MEMORY) {
      found(Finding::argument_wrong, call, fmt::format("argument {} has kind {} and value {}", i, a.kind, a.value));
    }
    ++i;
  }
}

// Bytes from the first element to behind the last one.
uint64_t span_of(const flhal_tensor_v1& t) {
  int64_t last = 0;
  for (uint16_t d = 0; d < t.rank; ++d) last += (t.sizes[d] - 1) * t.strides[d];
  return static_cast<uint64_t>(last + 1) * FLHAL_DTYPE_BYTES(t.dtype);
}

void check_plan_run(const SlotCall& call) {
  auto* c = call.argument<const flhal_op_call_v1*>(2);
  auto* workspace = call.argument<const flhal_p_place*>(3);
  const Object* plan = validation(call).objects.find(Kind::kPlan, from_word<const void*>(call.words[0]));
  const Object* device = plan ? plan->owner : nullptr;
  uint32_t i = 0;
  for (const flhal_tensor_v1& t : operands_of(*c)) {
    const uint32_t number = i++;
    if (!in_memory(t) || !has_elements(t)) continue;
    if (t.memory == nullptr) {
      found(Finding::handle_null, call, fmt::format("operand {} of {} has no memory", number, c->name));
      continue;
    }
    const Object* slab = check_range(call, device, t.memory, t.offset, t.extent, "an operand");
    if (slab && slab->address != 0 && t.address != slab->address + t.offset)
      found(Finding::address_of_operand, call, fmt::format("operand {} of {} has address {:#x}, its slab and offset give {:#x}", number, c->name, t.address, slab->address + t.offset));
    if (const uint64_t span = span_of(t); t.layout == 0 && span > t.extent)
      found(Finding::out_of_bounds, call, fmt::format("operand {} of {} spans {} bytes of an extent of {}", number, c->name, span, t.extent));
  }
  if (plan == nullptr || plan->adopted) return;
  if ((workspace != nullptr) != (plan->workspace_bytes != 0))
    return found(Finding::workspace_wrong, call, fmt::format("the plan asked for {} bytes, and the workspace is {}", plan->workspace_bytes, workspace ? "given" : "NULL"));
  if (workspace == nullptr) return;
  const Object* slab = check_range(call, device, workspace->memory, workspace->offset, plan->workspace_bytes, "the workspace");
  const uint64_t align = plan->workspace_align;
  if (slab && slab->address && align > 1 && (slab->address + workspace->offset) % align != 0)
    found(Finding::workspace_wrong, call, fmt::format("its address {:#x} is not a multiple of {}", slab->address + workspace->offset, align));
}

void check_view(const SlotCall& call) {
  auto* place = call.argument<const flhal_p_place*>(1);
  const uint64_t bytes = call.argument<uint64_t>(2);
  const uint32_t access = call.argument<uint32_t>(3);
  if ((access & (FLHAL_READ | FLHAL_WRITE)) == 0 || access > (FLHAL_READ | FLHAL_WRITE | FLHAL_DISCARD))
    found(Finding::argument_wrong, call, fmt::format("access is {}", access));
  if (place->memory == nullptr) return found(Finding::handle_null, call, "the place has no memory");
  Object* slab = check_range(call, device_of(call), place->memory, place->offset, bytes, "the place");
  if (slab == nullptr || call.slot == SlotId::host_begin) return;
  const void* host = call.argument<const void*>(4);
  for (auto view = slab->views.begin(); view != slab->views.end(); ++view) {
    if (view->host != host || view->offset != place->offset || view->bytes != bytes) continue;
    slab->views.erase(view);
    return;
  }
  if (call.frame->since_init) found(Finding::view_unknown, call, fmt::format("[{}, {}) of {} at {}", place->offset, place->offset + bytes, name_of(*slab), host));
}

void check_unfinished(const SlotCall& call, const Object& object, const Uses& uses) {
  if (uses.unfinished()) found(Finding::freed_in_use, call, fmt::format("{}, by work that nobody has seen to end", name_of(object)));
}

// What still lives when its device or plugin ends.
void check_left(const SlotCall& call, const Object* device) {
  std::string left;
  for (Kind kind : {Kind::kMemory, Kind::kStream, Kind::kEvent, Kind::kModule, Kind::kPlan}) {
    uint64_t n = 0;
    validation(call).objects.each(kind, [&](Object& o) {
      if (!o.alive || (device != nullptr && o.owner != device)) return;
      ++n;
      validation(call).objects.end(o, call.number);
      if (kind == Kind::kStream && o.clock >= 0) clocks().give_back(o.clock);
    });
    if (n != 0) left += fmt::format("{}{} {}{}", left.empty() ? "" : ", ", n, handle_noun(kind), n > 1 ? "s" : "");
  }
  if (device == nullptr) {
    uint64_t open = 0;
    validation(call).objects.each(Kind::kDevice, [&](Object& o) { open += o.alive; });
    if (open != 0) left += fmt::format("{}{} device{}", left.empty() ? "" : ", ", open, open > 1 ? "s" : "");
  }
  if (!left.empty()) found(Finding::handle_left, call, left);
}

}  // namespace

void check_arguments(const SlotCall& call, ValidateCall& checked) {
  const void* stream = call.first(Kind::kStream);
  if (const Object* s = stream ? validation(call).objects.find(Kind::kStream, stream) : nullptr; s && s->clock >= 0)
    checked.submitted = clocks().submitted.at(s->clock);
  if (call.slot == SlotId::plan_run && stream != nullptr) {
    Objects& objects = validation(call).objects;
    const Object *plan = objects.find(Kind::kPlan, from_word<const void*>(call.words[0])), *s = objects.find(Kind::kStream, stream);
    if (plan && s && plan->owner && s->owner && plan->owner != s->owner)
      found(Finding::handle_of_another_device, call, fmt::format("{} is of {}, {} of {}", name_of(*plan), name_of(*plan->owner), name_of(*s), name_of(*s->owner)));
  }
  switch (call.slot) {
    case SlotId::copy: return check_copy(call);
    case SlotId::fill: return check_fill(call);
    case SlotId::launch: return check_launch(call);
    case SlotId::plan_run: return check_plan_run(call);
    case SlotId::host_begin:
    case SlotId::host_end: return check_view(call);
    case SlotId::event_query:
    case SlotId::event_synchronize:
    case SlotId::event_wait:
    case SlotId::event_signal: {
      const Object* event = validation(call).objects.find(Kind::kEvent, from_word<const void*>(call.words[0]));
      if (event == nullptr) return;
      checked.recorded = event->recorded;
      checked.event_said_done = event->said_done;
      if (event->stream) {
        checked.idle_at = event->stream->idle_at;
        checked.idle_by = event->stream->idle_by;
      }
      if (call.slot == SlotId::event_signal && !event->adopted && !(event->flags & FLHAL_EVENT_HOST_SIGNALED))
        found(Finding::signal_out_of_place, call, name_of(*event));
      if (call.slot == SlotId::event_wait && !event->adopted && !event->recorded && !(event->flags & FLHAL_EVENT_HOST_SIGNALED))
        found(Finding::wait_for_nothing, call, name_of(*event));
      return;
    }
    case SlotId::stream_query: {
      const Object* s = validation(call).objects.find(Kind::kStream, stream);
      if (s == nullptr) return;
      checked.idle_at = s->idle_at;
      checked.idle_by = s->idle_by;
      return;
    }
    default: return;
  }
}

// Before the call: the plugin may give the same value to somebody else while it runs.
void check_end(const SlotCall& call) {
  Objects& objects = validation(call).objects;
  const SlotInfo& info = call.info();
  const size_t last = info.n - 1u;
  Object* object = objects.find(info.kinds[last], call.argument<const void*>(last));
  if (object == nullptr || !object->alive || --object->times_given > 0) return;
  check_unfinished(call, *object, object->uses);
  switch (object->kind) {
    case Kind::kMemory:
      if (object->accesses.in_use()) found(Finding::freed_in_use, call, fmt::format("{}, by work that nobody has seen to end", name_of(*object)));
      if (!object->views.empty()) found(Finding::freed_in_use, call, fmt::format("{} with {} open views", name_of(*object), object->views.size()));
      break;
    case Kind::kStream:
      if (object->clock < 0) break;
      if (!clocks().over(object->clock, clocks().submitted.at(object->clock)))
        found(Finding::freed_in_use, call, fmt::format("{}, whose work nobody has seen to end", name_of(*object)));
      clocks().give_back(object->clock);
      object->clock = -1;
      break;
    case Kind::kModule:
      objects.each(Kind::kFunction, [&](Object& f) {
        if (f.owner == object && f.alive) objects.end(f, call.number);
      });
      break;
    case Kind::kDevice:
      check_left(call, object);
      break;
    case Kind::kPlugin:
      check_left(call, nullptr);
      for (auto& [index, chip] : validation(call).chips) chip.texts.clear();
      break;
    default: break;
  }
  objects.end(*object, call.number);
}

}  // namespace flhal::layers

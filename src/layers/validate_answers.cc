// src/layers/validate_answers.cc: what a plugin answers, slot by slot.
#include <cstring>

#include "layers/op_operands.h"
#include "layers/validate_state.h"

namespace flhal::layers {
namespace {

bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) { return a != 0 && b != 0 && a < b + b_bytes && b < a + a_bytes; }

void check_slab(const SlotCall& call) {
  auto* s = call.argument<const flhal_p_slab_v1*>(1);
  if (call.answer == FLHAL_E_OUT_OF_MEMORY) found(Finding::full_is_an_error, call, fmt::format("{} bytes of kind {}", s->bytes, s->kind));
  if (call.answer != FLHAL_OK) return;
  Validation& v = validation(call);
  Object* device = v.objects.find(Kind::kDevice, from_word<const void*>(call.words[0]));
  if (s->kind > FLHAL_MEM_SHARED) found(Finding::kind_unknown, call, fmt::format("kind {}", s->kind));
  if (s->memory == nullptr) return found(Finding::gives_no_handle, call, "memory is NULL");
  Object* before = v.objects.find(Kind::kMemory, s->memory);
  if (before != nullptr && before->alive) {
    ++before->times_given;
    return found(Finding::slabs_are_one, call, fmt::format("{} is the handle of {}, which is alive", static_cast<const void*>(s->memory), name_of(*before)));
  }
  if (s->align > 1 && (s->address % s->align != 0 || (s->address == 0 && to_word(s->host) % s->align != 0 && s->host != nullptr)))
    found(Finding::address_misaligned, call, fmt::format("address {:#x}, host {}, align {}", s->address, s->host, s->align));
  if (const KnownChip* chip = chip_of(v, device); chip != nullptr && s->kind == FLHAL_MEM_DEVICE) {
    const bool addresses = (chip->caps & FLHAL_CAP_ADDRESSES) != 0, visible = (chip->caps & FLHAL_CAP_HOST_VISIBLE) != 0;
    if ((s->address != 0) != addresses) found(Finding::address_unexpected, call, fmt::format("address {:#x}, and ADDRESSES is {}claimed", s->address, addresses ? "" : "not "));
    if (s->host != nullptr && !visible) found(Finding::address_unexpected, call, fmt::format("host pointer {}, and HOST_VISIBLE is not claimed", static_cast<void*>(s->host)));
  }
  v.objects.each(Kind::kMemory, [&](Object& o) {
    if (!o.alive || o.owner != device) return;
    if (overlaps(o.address, o.bytes, s->address, s->bytes) || overlaps(to_word(o.host), o.bytes, to_word(s->host), s->bytes))
      found(Finding::slabs_overlap, call, fmt::format("[{:#x}, {:#x}) and {} at {:#x}", s->address ? s->address : to_word(s->host),
                                                      (s->address ? s->address : to_word(s->host)) + s->bytes, name_of(o), o.address ? o.address : to_word(o.host)));
  });
  Object& made = v.objects.make(Kind::kMemory, s->memory);
  made.owner = device;
  made.bytes = s->bytes;
  made.address = s->address;
  made.host = static_cast<const char*>(s->host);
  made.memory_kind = s->kind;
}

void check_view(const SlotCall& call) {
  if (call.answer != FLHAL_OK) return;
  auto* place = call.argument<const flhal_p_place*>(1);
  const char* host = *call.argument<const char**>(4);
  if (host == nullptr) return found(Finding::gives_no_handle, call, "the view is NULL");
  Validation& v = validation(call);
  Object* slab = v.objects.find(Kind::kMemory, place->memory);
  if (slab == nullptr) return;
  slab->views.push_back({host, place->offset, call.argument<uint64_t>(2)});
  const KnownChip* chip = chip_of(v, slab->owner);
  if (chip == nullptr || !(chip->caps & FLHAL_CAP_HOST_VISIBLE)) return;
  const char* start = slab->host ? slab->host : slab->first_view;   // the memory itself, so every view of it is at one place
  if (start == nullptr) slab->first_view = host - place->offset;
  else if (host != start + place->offset)
    found(Finding::view_elsewhere, call, fmt::format("offset {} of {} is shown at {}, and offset 0 is at {}", place->offset, name_of(*slab),
                                                     static_cast<const void*>(host), static_cast<const void*>(start)));
}

void check_module(const SlotCall& call) {
  if (call.answer != FLHAL_OK) return;
  auto* source = call.argument<const flhal_p_source_v1*>(1);
  Validation& v = validation(call);
  const Object* device = v.objects.find(Kind::kDevice, from_word<const void*>(call.words[0]));
  Object* module = v.objects.find(Kind::kModule, *call.argument<flhal_p_module**>(2));
  if (module && std::strcmp(source->dialect, FLHAL_DIALECT_HOST) == 0) module->functions = static_cast<const flhal_host_module*>(source->data);
  const KnownChip* chip = chip_of(v, device);
  if (chip == nullptr) return;
  const std::string listed = " " + chip->dialects + " ";
  if (listed.find(" " + std::string(source->dialect) + " ") == std::string::npos)
    found(Finding::dialect_accepted, call, fmt::format("{}; the chip lists \"{}\"", source->dialect, chip->dialects));
}

void check_function(const SlotCall& call) {
  if (call.answer != FLHAL_OK) return;
  const Object* module = validation(call).objects.find(Kind::kModule, from_word<const void*>(call.words[0]));
  const char* name = call.argument<const char*>(1);
  if (module == nullptr || module->functions == nullptr) return;
  for (uint32_t i = 0; i < module->functions->n_functions; ++i)
    if (std::strcmp(module->functions->functions[i].name, name) == 0) return;
  found(Finding::function_invented, call, fmt::format("\"{}\"", name));
}

void check_plan(const SlotCall& call) {
  auto* info = call.argument<const flhal_plan_info_v1*>(2);
  if (call.answer == FLHAL_DECLINED && (info->reason == nullptr || info->reason[0] == 0))
    found(Finding::declined_without_reason, call, fmt::format("operation {}", call.argument<const flhal_op_call_v1*>(1)->name));
  if (call.answer != FLHAL_OK) return;
  Object* plan = validation(call).objects.find(Kind::kPlan, *call.argument<flhal_p_plan**>(3));
  if (plan == nullptr) return;
  plan->workspace_bytes = info->workspace_bytes;
  plan->workspace_align = info->workspace_align;
}

void check_run(const SlotCall& call) {
  if (call.answer >= 0) return;
  auto* c = call.argument<const flhal_op_call_v1*>(2);
  if (call.answer == FLHAL_E_UNSUPPORTED) return found(Finding::yes_and_then_no, call, fmt::format("operation {}", c->name));
  if (call.answer != FLHAL_E_INVALID) return;
  for (const flhal_tensor_v1& t : operands_of(*c))
    if (!(t.flags & FLHAL_TENSOR_ABSENT) && !has_elements(t)) return found(Finding::empty_is_refused, call, fmt::format("operation {}", c->name));
}

void check_empty(const SlotCall& call) {
  if (call.answer < 0 && call.answer != FLHAL_E_DEVICE_LOST && call.answer != FLHAL_E_OP_FAILED && bytes_of(call) == 0)
    found(Finding::nothing_is_refused, call, fmt::format("it answered {}", call.answer));
}

}  // namespace

void check_answer(const SlotCall& call, ValidateCall&) {
  switch (call.slot) {
    case SlotId::memory_alloc: return check_slab(call);
    case SlotId::host_begin: return check_view(call);
    case SlotId::copy:
    case SlotId::fill: return check_empty(call);
    case SlotId::module_load: return check_module(call);
    case SlotId::function_get: return check_function(call);
    case SlotId::plan_create: return check_plan(call);
    case SlotId::plan_run: return check_run(call);
    case SlotId::event_create:
      if (call.answer == FLHAL_OK)
        if (Object* event = validation(call).objects.find(Kind::kEvent, *call.argument<flhal_p_event**>(2))) event->flags = call.argument<uint32_t>(1);
      return;
    case SlotId::memory_budget: {
      if (call.answer != FLHAL_OK) return;
      const uint64_t free = *call.argument<uint64_t*>(1), total = *call.argument<uint64_t*>(2);
      if (free > total || total == 0) found(Finding::budget_implausible, call, fmt::format("{} of {} bytes are free", free, total));
      return;
    }
    case SlotId::op_describe:
      if (call.answer == FLHAL_OK && call.argument<uint32_t>(1) > 10000) found(Finding::list_without_end, call, fmt::format("number {}", call.argument<uint32_t>(1)));
      return;
    default: return;
  }
}

}  // namespace flhal::layers

// src/layers/validate_guards.cc: memory_alloc, plan_create and the build log of module_load. device_info is core's own to watch.
#include <memory>

#include "layers/validate_state.h"
#include "layers/validate_guards.h"

namespace flhal::layers {
namespace {

constexpr size_t kLogWatch = 64;

template <typename T>
void take_back(SlotCall& call, size_t i, Guarded<T>& guarded, T* theirs) {
  if (!guarded.intact()) found(Finding::wrote_past_struct, call, fmt::format("the struct has {} bytes", theirs->struct_size));
  if (guarded.value.struct_size != theirs->struct_size || guarded.value.struct_type != theirs->struct_type || guarded.value.next != theirs->next)
    found(Finding::changed_head, call, fmt::format("struct_size {} and struct_type {} became {} and {}", theirs->struct_size, theirs->struct_type,
                                                   guarded.value.struct_size, guarded.value.struct_type));
  *theirs = guarded.value;
  call.words[i] = to_word(theirs);
}

}  // namespace

void GuardsDeleter::operator()(Guards* guards) const { delete guards; }

void put_guards(SlotCall& call, ValidateCall& checked) {
  if (call.slot == SlotId::memory_alloc) {
    auto* slab = call.argument<flhal_p_slab_v1*>(1);
    if (slab->struct_size != sizeof *slab) return;
    checked.guards.reset(new Guards);
    checked.guards->word = call.words[1];
    checked.guards->slab = std::make_unique<Guarded<flhal_p_slab_v1>>(*slab);
    call.words[1] = to_word(&checked.guards->slab->value);
  } else if (call.slot == SlotId::plan_create) {
    auto* info = call.argument<flhal_plan_info_v1*>(2);
    if (info->struct_size != sizeof *info) return;
    checked.guards.reset(new Guards);
    checked.guards->word = call.words[2];
    checked.guards->plan = std::make_unique<Guarded<flhal_plan_info_v1>>(*info);
    call.words[2] = to_word(&checked.guards->plan->value);
  } else if (call.slot == SlotId::module_load) {
    auto* source = call.argument<const flhal_p_source_v1*>(1);
    if (source->build_log == nullptr || source->build_log_capacity == 0) return;
    checked.guards.reset(new Guards);
    checked.guards->word = call.words[1];
    checked.guards->log.assign(source->build_log_capacity + kLogWatch, char(0xa5));
    std::memcpy(checked.guards->log.data(), source->build_log, source->build_log_capacity);
    checked.guards->source = std::make_unique<flhal_p_source_v1>(*source);
    checked.guards->source->build_log = checked.guards->log.data();
    call.words[1] = to_word(checked.guards->source.get());
  }
}

void take_guards_back(SlotCall& call, ValidateCall& checked) {
  if (!checked.guards) return;
  Guards& g = *checked.guards;
  if (g.slab) take_back(call, 1, *g.slab, from_word<flhal_p_slab_v1*>(g.word));
  if (g.plan) take_back(call, 2, *g.plan, from_word<flhal_plan_info_v1*>(g.word));
  if (g.source) {
    auto* theirs = from_word<const flhal_p_source_v1*>(g.word);
    const uint64_t capacity = theirs->build_log_capacity;
    for (size_t i = 0; i < kLogWatch; ++i) {
      if (g.log[capacity + i] == char(0xa5)) continue;
      found(Finding::log_past_capacity, call, fmt::format("byte {} of a log of {} bytes was written", capacity + i, capacity));
      break;
    }
    std::memcpy(theirs->build_log, g.log.data(), capacity);
    call.words[1] = g.word;
  }
  checked.guards.reset();
}

}  // namespace flhal::layers

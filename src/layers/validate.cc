// src/layers/validate.cc: the checks that hold for every slot, from the kinds of its parameters.
#include "layers/validate.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>

#include "core/device.h"
#include "core/host_services.h"
#include "layers/rules.h"
#include "layers/validate_guards.h"
#include "layers/validate_state.h"

namespace flhal::layers {
namespace {

std::mutex& g_mutex = *new std::mutex;         // everything that validate knows
Validation* const g_validations = new Validation[kFrames];

constexpr uint64_t kLongQuery_ns = 10'000'000, kLongSubmission_ns = 20'000'000;

bool is_rare(SlotId slot) {
  switch (slot) {
    case SlotId::init:
    case SlotId::shutdown:
    case SlotId::device_count:
    case SlotId::device_info:
    case SlotId::device_open:
    case SlotId::device_close:
    case SlotId::module_load: return true;
    default: return false;
  }
}

bool may_be_null(SlotId slot, Kind kind) { return kind == Kind::kStream && is_submission(slot); }

// The two on the way in and out, whose work the host may not wait for.
bool is_measured(const SlotCall& call) {
  switch (call.slot) {
    case SlotId::stream_query:
    case SlotId::event_query:
    case SlotId::event_record:
    case SlotId::event_wait:
    case SlotId::stream_synchronize: return true;
    default: return is_submission(call.slot) && call.first(Kind::kStream) != nullptr;
  }
}

void check_handles(const SlotCall& call) {
  const SlotInfo& info = call.info();
  Object* device = nullptr;
  for (size_t i = 0; i < info.n; ++i) {
    const Kind kind = info.kinds[i];
    if (!is_handle(kind)) continue;
    const void* handle = from_word<const void*>(call.words[i]);
    if (handle == nullptr) {
      if (!may_be_null(call.slot, kind)) found(Finding::handle_null, call, fmt::format("the argument {} is NULL", argument_name(info, i)));
      continue;
    }
    Object* object = known(call, kind, handle);
    if (object == nullptr) continue;
    if (kind == Kind::kDevice) {
      device = object;
    } else if (device != nullptr && object->owner == nullptr) {
      object->owner = device;                   // adopted: now it is known
    } else if (device != nullptr && object->owner != device) {
      found(Finding::handle_of_another_device, call, fmt::format("{} belongs to {}, and {} is given", name_of(*object), name_of(*object->owner), name_of(*device)));
    }
  }
}

void enter(const SlotCall& call, ValidateCall& checked) {
  checked.entered = true;
  Validation& v = validation(call);
  const uint64_t me = static_cast<uint64_t>(pthread_self());
  if (v.inside.fetch_add(1) == 0) v.inside_thread = me;
  else if (call.frame->plugin != nullptr && call.frame->plugin->serialize_all && v.inside_thread.load() != me)
    found(Finding::serialize_all_ignored, call, fmt::format("another thread is in another slot, this is thread {}", gettid()));
  const void* handle = call.first(Kind::kStream);
  Object* stream = handle ? v.objects.find(Kind::kStream, handle) : nullptr;
  if (stream == nullptr) return;
  if (call.frame->plugin != nullptr && !call.frame->plugin->has_streams)
    found(Finding::null_stream_only, call, fmt::format("{} is given", name_of(*stream)));
  if (stream->inside != nullptr && stream->times_given == 1) found(Finding::stream_in_two_calls, call, fmt::format("{} is in {}", name_of(*stream), stream->inside));
  stream->inside = call.info().name;
}

void leave(const SlotCall& call, ValidateCall& checked) {
  if (!std::exchange(checked.entered, false)) return;
  Validation& v = validation(call);
  v.inside.fetch_sub(1);
  const void* handle = call.first(Kind::kStream);
  if (Object* stream = handle ? v.objects.find(Kind::kStream, handle) : nullptr) stream->inside = nullptr;
}

// What the slot was to give.
const void** place_of_handle(const SlotCall& call, Kind* kind) {
  const SlotInfo& info = call.info();
  for (size_t i = 0; i < info.n; ++i) {
    if (!is_out_handle(info.kinds[i])) continue;
    *kind = made_by(info.kinds[i]);
    return call.argument<const void**>(i);
  }
  return nullptr;
}

Finding none_given(Kind kind) {
  return kind == Kind::kPlugin ? Finding::init_gives_no_handle : kind == Kind::kDevice ? Finding::open_gives_no_handle : Finding::gives_no_handle;
}
Finding given_twice(Kind kind) { return kind == Kind::kStream ? Finding::streams_are_one : Finding::handle_twice; }

void take_handle(const SlotCall& call, const ValidateCall& checked) {
  Kind kind{};
  const void** place = place_of_handle(call, &kind);
  if (place == nullptr) return;
  if (call.answer != FLHAL_OK) {
    if (call.answer < 0 && *place != checked.handle_before)
      found(Finding::refusal_gives_handle, call, fmt::format("{} was written and the answer is {}", *place, call.answer));
    return;
  }
  if (*place == nullptr) return found(none_given(kind), call, "*out is NULL");
  Objects& objects = validation(call).objects;
  Object* before = objects.find(kind, *place);
  // A function is the module's: asking twice for one name gives it twice.
  if (before != nullptr && before->alive && kind != Kind::kFunction)
    found(given_twice(kind), call, fmt::format("{} is the handle of {}, which is alive", *place, name_of(*before)));
  if (before != nullptr && before->alive) {
    before->times_given += kind != Kind::kFunction;
    return;
  }
  Object& made = objects.make(kind, *place);
  const Kind first = call.info().kinds[0];
  if (first == Kind::kDevice || first == Kind::kModule) made.owner = objects.find(first, from_word<const void*>(call.words[0]));
  if (kind == Kind::kStream) made.clock = clocks().take();
}

void check_status(const SlotCall& call, const ValidateCall& checked) {
  if (!call.info().answers) return;
  const flhal_status s = call.answer;
  if (status_text(s) == nullptr && s > FLHAL_E_VENDOR_LAST) return found(Finding::status_unknown, call, fmt::format("it answered {}", s));
  if (s > 0) {
    const bool fits = (s == FLHAL_NOT_READY && (call.slot == SlotId::stream_query || call.slot == SlotId::event_query || call.slot == SlotId::event_elapsed_ns)) ||
                      (s == FLHAL_EXHAUSTED && (call.slot == SlotId::memory_alloc || call.slot == SlotId::plan_run || call.slot == SlotId::plan_create)) ||
                      (s == FLHAL_DECLINED && call.slot >= SlotId::plan_create);
    if (!fits) found(Finding::status_out_of_place, call, fmt::format("it answered FLHAL_{}", status_text(s)));
  }
  const bool left = plugin_texts_left() != checked.texts_left;
  if (s >= 0 && left) found(Finding::text_without_refusal, call, fmt::format("the answer is {}", s));
  if (s < 0 && !left) found(Finding::refusal_without_text, call, fmt::format("the answer is FLHAL_{}", status_text(s) ? status_text(s) : std::to_string(s)));
  if (s < 0 && left && last_plugin_status() != s)
    found(Finding::text_of_another_status, call, fmt::format("it answered {}, and the sentence is for {}", s, last_plugin_status()));
}

void check_time(const SlotCall& call, const ValidateCall& checked) {
  if (!checked.measured || call.slot == SlotId::stream_synchronize) return;
  const bool submission = is_submission(call.slot);
  if (call.ns() < (submission ? kLongSubmission_ns : kLongQuery_ns)) return;
  const uint64_t slept = times_slept() - checked.slept;
  if (slept == 0) return;                       // a busy machine: it was not the plugin that waited
  const Finding what = submission                               ? Finding::submission_waits
                       : call.slot == SlotId::stream_query      ? Finding::stream_query_waits
                       : call.slot == SlotId::event_query       ? Finding::event_query_waits
                                                                : Finding::event_call_waits;
  found(what, call, fmt::format("{:.1f} ms, and the thread slept {} times", static_cast<double>(call.ns()) / 1e6, slept));
}

void check_surroundings(const SlotCall& call, const ValidateCall& checked) {
  if (unsigned now = floating_point_control(); now != checked.floating_point)
    found(Finding::floating_point_changed, call, fmt::format("the control word was {:#x} and is {:#x}", checked.floating_point, now));
  if (!checked.around) return;
  const Surroundings now = look_around();
  if (now.locale != checked.around->locale) found(Finding::locale_changed, call, fmt::format("it was {} and is {}", checked.around->locale, now.locale));
  if (int s = changed_signal(*checked.around, now)) found(Finding::signal_changed, call, fmt::format("signal {}", s));
  Validation& v = validation(call);
  const std::vector<int> fresh = new_threads(*checked.around, now);
  for (int thread : fresh) v.threads.emplace_back(thread, call.slot);
  // A thread that has just begun still blocks everything, by the C library: each is looked at again at later calls.
  for (const auto& [thread, slot] : v.threads)
    if (takes_signals(thread)) found(Finding::thread_takes_signals, call, fmt::format("thread {}, which began during {}", thread, info_of(slot).name));
  const bool counting = call.slot == SlotId::init || call.slot == SlotId::device_count || call.slot == SlotId::device_info;
  if (counting && !fresh.empty() && call.frame->plugin != nullptr && (call.frame->plugin->flags & FLHAL_PLUGIN_FORK_SAFE_PROBE))
    found(Finding::probe_starts_thread, call, fmt::format("thread {}", fresh[0]));
  if (call.slot == SlotId::shutdown) {
    for (int thread : now.threads)
      for (const auto& [ours, slot] : v.threads)
        if (thread == ours) found(Finding::thread_left, call, fmt::format("thread {}, which began during {}", thread, info_of(slot).name));
    v.threads.clear();
  }
}

}  // namespace

Validation& validation(int frame) { return g_validations[frame]; }

bool is_submission(SlotId slot) { return slot == SlotId::copy || slot == SlotId::fill || slot == SlotId::launch || slot == SlotId::plan_run; }

Object* known(const SlotCall& call, Kind kind, const void* handle) {
  Validation& v = validation(call);
  Object* object = v.objects.find(kind, handle);
  if (object != nullptr && object->alive) return object;
  if (object != nullptr) {
    found(Finding::handle_dead, call, fmt::format("{} was given back by call {}", name_of(*object), object->ended));
    return nullptr;
  }
  if (!call.frame->since_init) {
    Object& adopted = v.objects.adopt(kind, handle);
    if (kind == Kind::kStream) adopted.clock = clocks().take();
    return &adopted;
  }
  if (auto [other, of_kind] = v.objects.other_kind(kind, handle); other) {
    found(Finding::handle_of_another_kind, call, fmt::format("{} is a {}, and a {} is needed", handle, handle_noun(of_kind), handle_noun(kind)));
    return nullptr;
  }
  for (int i = 0; i < frames_used(); ++i) {
    Object* elsewhere = i == call.frame->index ? nullptr : validation(i).objects.find(kind, handle);
    if (elsewhere == nullptr || !elsewhere->alive) continue;
    found(Finding::handle_unknown, call, fmt::format("{} is a {} of plugin {}", handle, handle_noun(kind), frame(i).id));
    return nullptr;
  }
  found(Finding::handle_unknown, call, fmt::format("{} is no {} of this plugin", handle, handle_noun(kind)));
  return nullptr;
}

const KnownChip* chip_of(Validation& v, const Object* device) {
  if (device == nullptr) return nullptr;
  auto at = v.chips.find(device->index);
  return at == v.chips.end() ? nullptr : &at->second;
}

void validate_begins() {
  std::lock_guard lock(g_mutex);
  for (int i = 0; i < kFrames; ++i) {
    g_validations[i].objects.clear();
    g_validations[i].inside = 0;
  }
  clocks() = Clocks();
  host_accesses() = Accesses();
}

void forget_validation(int f) {
  std::lock_guard lock(g_mutex);
  Validation& v = g_validations[f];
  v.objects.clear();
  v.chips.clear();
  v.counted = false;
  v.threads.clear();
  v.inside = 0;
}

void validate_before(SlotCall& call, ValidateCall& checked) {
  if (is_rare(call.slot)) checked.around = std::make_unique<Surroundings>(look_around());
  {
    std::lock_guard lock(g_mutex);
    check_handles(call);
    enter(call, checked);
    check_arguments(call, checked);
    if (!call.info().answers) check_end(call);
  }
  Kind kind{};
  if (const void** place = place_of_handle(call, &kind)) checked.handle_before = *place;
  put_guards(call, checked);
  checked.measured = is_measured(call);
  if (checked.measured) checked.slept = times_slept();
  checked.texts_left = plugin_texts_left();
  checked.floating_point = floating_point_control();
}

void validate_after(SlotCall& call, ValidateCall& checked) {
  check_surroundings(call, checked);
  check_status(call, checked);
  check_time(call, checked);
  std::lock_guard lock(g_mutex);
  take_guards_back(call, checked);
  take_handle(call, checked);
  check_device_call(call);
  check_answer(call, checked);
  note_order(call, checked);
  leave(call, checked);
}

void validate_threw(SlotCall& call, ValidateCall& checked) {
  found(Finding::threw, call, "core answers FLHAL_E_INTERNAL for it");
  std::lock_guard lock(g_mutex);
  take_guards_back(call, checked);
  leave(call, checked);
}

void validate_injected(const SlotCall& call) {
  if (call.answer >= 0) return;
  std::lock_guard lock(g_mutex);
  Clocks& all = clocks();
  all.ended.join(all.submitted);
}

}  // namespace flhal::layers

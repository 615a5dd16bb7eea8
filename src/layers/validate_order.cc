// src/layers/validate_order.cc: streams and events: what is ordered behind what, what was said about it, and missing waits.
//
// What is looked at, always bytes that are touched for sure: copy and fill with their ranges (of a rectangle the first row), plan_run with
// every operand (one with gaps: its first element) and the workspace, host_begin and host_end as the host's own access. Of a launch only where each argument begins is known, not how far
// it goes or whether it is written: it counts as a reader of its first byte. So of two kernels without a wait between them nothing is
// said, of a kernel that reads what a copy still writes all is.
#include <cstdlib>

#include "layers/op_operands.h"
#include "layers/validate_state.h"

namespace flhal::layers {
namespace {

struct Touch {
  Object* slab;                          // nullptr: host memory
  uint64_t low, bytes;                   // bytes that are touched for sure
  bool writes;
  Accesses& where() const { return slab ? slab->accesses : host_accesses(); }
  std::string name() const { return slab ? name_of(*slab) : "host memory"; }
};

void touch_place(const SlotCall& call, std::vector<Touch>& touches, const flhal_p_place& p, uint64_t bytes, bool writes) {
  if (bytes == 0) return;
  if (p.memory == nullptr) return touches.push_back({nullptr, to_word(p.host) + p.offset, bytes, writes});
  if (Object* slab = validation(call).objects.find(Kind::kMemory, p.memory)) touches.push_back({slab, p.offset, bytes, writes});
}

// A view with gaps may lie between the elements of another: then only its first element is sure.
uint64_t sure_bytes(const flhal_tensor_v1& t) {
  const uint64_t element = FLHAL_DTYPE_BYTES(t.dtype);
  uint64_t elements = 1, span = 1;
  for (uint16_t d = 0; d < t.rank; ++d) {
    if (t.strides[d] == 0) continue;
    elements *= static_cast<uint64_t>(t.sizes[d]);
    span += static_cast<uint64_t>(t.sizes[d] - 1) * static_cast<uint64_t>(t.strides[d]);
  }
  return t.layout == 0 && elements == span ? elements * element : element;
}

std::vector<Touch> touches_of(const SlotCall& call) {
  std::vector<Touch> touches;
  switch (call.slot) {
    case SlotId::copy: {
      auto* c = call.argument<const flhal_p_copy_v1*>(2);
      touch_place(call, touches, c->dst, c->bytes, true);      // of a rectangle the first row: others' bytes lie between
      touch_place(call, touches, c->src, c->bytes, false);
      break;
    }
    case SlotId::fill: touch_place(call, touches, *call.argument<const flhal_p_place*>(2), call.argument<uint64_t>(3), true); break;
    case SlotId::launch:
      for (const flhal_p_arg& a : arguments_of(*call.argument<const flhal_p_launch_v1*>(2)))
        if (a.kind == FLHAL_ARG_MEMORY && a.memory != nullptr) touch_place(call, touches, {a.memory, a.offset, nullptr}, 1, false);
      break;
    case SlotId::plan_run: {
      auto* c = call.argument<const flhal_op_call_v1*>(2);
      uint32_t i = 0;
      for (const flhal_tensor_v1& t : operands_of(*c)) {
        if (in_memory(t) && t.memory != nullptr && has_elements(t)) touch_place(call, touches, {t.memory, t.offset, nullptr}, sure_bytes(t), i < c->n_outputs);
        ++i;
      }
      const Object* plan = validation(call).objects.find(Kind::kPlan, from_word<const void*>(call.words[0]));
      if (auto* workspace = call.argument<const flhal_p_place*>(3); workspace && plan) touch_place(call, touches, *workspace, plan->workspace_bytes, true);
      break;
    }
    case SlotId::host_begin:
    case SlotId::host_end:
      touch_place(call, touches, *call.argument<const flhal_p_place*>(1), call.argument<uint64_t>(2), (call.argument<uint32_t>(3) & FLHAL_WRITE) != 0);
      break;
    default: break;
  }
  return touches;
}

// `stream` nullptr: the host, or a call that ends before it returns.
void check_touches(const SlotCall& call, Object* stream, uint64_t count) {
  const int clock = stream ? stream->clock : -1;
  for (const Touch& t : touches_of(call)) {
    const Access mine{t.low, t.low + t.bytes, clock, count, call.number, call.slot, t.writes};
    if (const Access* other = t.where().conflict(mine))
      found(Finding::wait_missing, call, fmt::format("{} {} [{}, {}) of {} on {}, while {} (call {}) {} [{}, {}) on another stream", call.info().name, t.writes ? "writes" : "reads",
                                                     mine.low, mine.high, t.name(), stream ? name_of(*stream) : "no stream", info_of(other->slot).name, other->call,
                                                     other->writes ? "writes" : "reads", other->low, other->high));
    if (stream != nullptr) t.where().add(mine);
  }
}

void note_submission(const SlotCall& call) {
  if (call.answer != FLHAL_OK) return;
  Objects& objects = validation(call).objects;
  const void* handle = call.first(Kind::kStream);
  Object* stream = handle ? objects.find(Kind::kStream, handle) : nullptr;
  if (stream == nullptr || stream->clock < 0) {
    if (call.frame->plugin == nullptr || call.frame->plugin->has_streams) check_touches(call, nullptr, 0);
    return;
  }
  const uint64_t count = clocks().submit(stream->clock);
  check_touches(call, stream, count);
  if (call.slot == SlotId::plan_run)
    if (Object* plan = objects.find(Kind::kPlan, from_word<const void*>(call.words[0]))) plan->uses.add(stream->clock, count);
  if (call.slot == SlotId::launch)
    if (Object* f = objects.find(Kind::kFunction, call.argument<const flhal_p_launch_v1*>(2)->function); f && f->owner) f->owner->uses.add(stream->clock, count);
}

void note_record(const SlotCall& call, Object& event, Object& stream) {
  if (call.answer != FLHAL_OK || stream.clock < 0) return;
  event.at = clocks().submit(stream.clock);
  event.recorded = true;
  event.said_done = false;
  event.stream = &stream;
  event.clock_then = clocks().behind[static_cast<size_t>(stream.clock)];
  event.clock_then.raise(stream.clock, event.at);
  event.recorded_ns = call.begin_ns;
  event.done_ns = 0;
}

void note_wait(const SlotCall& call, const Object& event, const Object& stream) {
  if (call.answer != FLHAL_OK || stream.clock < 0) return;
  (void)clocks().submit(stream.clock);
  Clock& behind = clocks().behind[static_cast<size_t>(stream.clock)];
  // What the host will signal, it signals when it pleases: nothing behind such a wait is held against the program.
  if (event.adopted || ((event.flags & FLHAL_EVENT_HOST_SIGNALED) && !event.recorded)) behind.join(clocks().submitted);
  else behind.join(event.clock_then);
}

void note_event_done(const SlotCall& call, const ValidateCall& checked, Object& event) {
  const bool asked = call.slot == SlotId::event_query;
  if (call.answer == FLHAL_NOT_READY) {
    if (!event.adopted && !checked.recorded && !(event.flags & FLHAL_EVENT_HOST_SIGNALED)) found(Finding::new_event_pending, call, name_of(event));
    if (checked.event_said_done) found(Finding::event_synchronize_early, call, fmt::format("{} is unfinished after event_synchronize returned", name_of(event)));
    if (event.recorded && checked.idle_at >= event.at)
      found(checked.idle_by == SlotId::stream_synchronize ? Finding::synchronize_early : Finding::stream_done_early, call,
            fmt::format("{} is unfinished, and {} said before that its stream was done", name_of(event), info_of(checked.idle_by).name));
    if (event.signalled_ns != 0 && call.begin_ns > event.signalled_ns + 1'000'000'000)
      found(Finding::signal_late, call, fmt::format("{} was signalled {} ms ago", name_of(event), (call.begin_ns - event.signalled_ns) / 1000000));
    return;
  }
  if (event.recorded && checked.recorded) {
    clocks().ended.join(event.clock_then);
    if (call.answer < 0 && event.stream && event.stream->clock >= 0)          // a failed queue runs nothing more
      clocks().saw_end(event.stream->clock, clocks().submitted.at(event.stream->clock));
    if (event.done_ns == 0) event.done_ns = call.end_ns;
    if (asked && call.answer == FLHAL_OK && event.stream) event.stream->events_done_at = std::max(event.stream->events_done_at, event.at);
    if (!asked && call.answer == FLHAL_OK) event.said_done = true;
  }
}

void note_stream_done(const SlotCall& call, const ValidateCall& checked, Object& stream) {
  if (stream.clock < 0) return;
  if (call.answer == FLHAL_NOT_READY) {
    if (checked.idle_by == SlotId::stream_synchronize && checked.idle_at >= checked.submitted && checked.submitted != 0)
      found(Finding::synchronize_early, call, fmt::format("{} is unfinished after stream_synchronize returned, and nothing came since", name_of(stream)));
    return;
  }
  if (call.slot == SlotId::stream_synchronize && stream.events_done_at >= checked.submitted && checked.submitted != 0 && call.ns() > 20'000'000 &&
      times_slept() > checked.slept)
    found(Finding::event_done_early, call, fmt::format("an event behind everything on {} was done, and stream_synchronize still took {:.1f} ms", name_of(stream), static_cast<double>(call.ns()) / 1e6));
  clocks().saw_end(stream.clock, checked.submitted);
  if (call.answer != FLHAL_OK) return;
  stream.idle_at = std::max(stream.idle_at, checked.submitted);
  stream.idle_by = call.slot;
}

void check_elapsed(const SlotCall& call) {
  if (call.answer != FLHAL_OK) return;
  Objects& objects = validation(call).objects;
  const Object *from = objects.find(Kind::kEvent, from_word<const void*>(call.words[0])), *to = objects.find(Kind::kEvent, from_word<const void*>(call.words[1]));
  if (!from || !to || !from->recorded || !to->recorded) return;
  const uint64_t ns = *call.argument<uint64_t*>(2);
  constexpr uint64_t kClearly = 5'000'000;     // clocks of chips may differ, but not by so much
  const uint64_t least = from->done_ns && to->recorded_ns > from->done_ns ? to->recorded_ns - from->done_ns : 0;
  if (least > kClearly && ns < least / 2) return found(Finding::elapsed_wrong, call, fmt::format("{} ns, and the host saw at least {} ns pass", ns, least));
  if (to->done_ns > from->recorded_ns && ns > 2 * (to->done_ns - from->recorded_ns) + kClearly)
    found(Finding::elapsed_wrong, call, fmt::format("{} ns, and the host saw at most {} ns pass", ns, to->done_ns - from->recorded_ns));
}

}  // namespace

void note_order(const SlotCall& call, ValidateCall& checked) {
  Objects& objects = validation(call).objects;
  auto event_at = [&](size_t i) { return objects.find(Kind::kEvent, from_word<const void*>(call.words[i])); };
  const void* handle = call.first(Kind::kStream);
  Object* stream = handle ? objects.find(Kind::kStream, handle) : nullptr;
  if (call.answer == FLHAL_E_DEVICE_LOST) clocks().ended.join(clocks().submitted);   // a lost device ends all it had
  switch (call.slot) {
    case SlotId::copy:
    case SlotId::fill:
    case SlotId::launch:
    case SlotId::plan_run:
    case SlotId::host_begin:
    case SlotId::host_end: return note_submission(call);
    case SlotId::event_record:
      if (Object* event = event_at(0); event && stream) note_record(call, *event, *stream);
      return;
    case SlotId::event_wait:
      if (Object* event = event_at(0); event && stream) note_wait(call, *event, *stream);
      return;
    case SlotId::event_query:
    case SlotId::event_synchronize:
      if (Object* event = event_at(0)) note_event_done(call, checked, *event);
      return;
    case SlotId::event_signal:
      if (Object* event = event_at(0); event && call.answer == FLHAL_OK) {
        event->signalled = true;
        event->signalled_ns = call.end_ns;
      }
      return;
    case SlotId::event_elapsed_ns: return check_elapsed(call);
    case SlotId::stream_query:
    case SlotId::stream_synchronize:
      if (stream != nullptr) note_stream_done(call, checked, *stream);
      return;
    default: return;
  }
}

}  // namespace flhal::layers

// src/core/stream.cc: submitting, waiting and failing on one stream.
//
// Idea: completed_ only grows. On an asynchronous plugin it is moved by marks (plugin events recorded on demand) and by
// waits; a lost device counts as having completed everything, so that memory can be given back.
// Threads and locks: see stream.h. No plugin slot is called under poison_mutex_.
#include "core/stream.h"

#include <algorithm>

#include "core/event.h"
#include "core/fork_guard.h"
#include "core/serial.h"
#include "core/worker.h"

namespace flhal {

Stream::Stream(Device* device, uint64_t id, flhal_p_stream* handle)
    : device(device), id(id), asynchronous(handle != nullptr), handle(handle) {}

void Stream::completed_up_to(uint64_t sequence) {
  uint64_t seen = completed_.load(std::memory_order_relaxed);
  while (seen < sequence && !completed_.compare_exchange_weak(seen, sequence, std::memory_order_acq_rel)) {
  }
}

// ---- failures -----------------------------------------------------------------------------------------------------

void Stream::poison(flhal_status code, std::string text, uint64_t sequence) {
  std::lock_guard lock(poison_mutex_);
  if (poisoned()) return;                   // the first failure is the one that explains the others
  poison_code_ = code;
  poison_text_ = std::move(text);
  poison_sequence_ = sequence;
  attention_.fetch_or(kPoisoned, std::memory_order_release);
}

Status Stream::failure() {
  hear();
  if (device->lost()) return unusable_failure("synchronize");
  if (!poisoned()) return FLHAL_OK;
  std::lock_guard lock(poison_mutex_);
  if (!poisoned()) return FLHAL_OK;
  return fail_text(poison_code_, poison_text_);
}

flhal_status Stream::failure_before(uint64_t sequence, std::string* text) {
  hear();
  if (device->lost()) {
    *text = fmt::format("device {} is lost", device->name);
    return FLHAL_E_DEVICE_LOST;
  }
  if (!poisoned()) return FLHAL_OK;
  std::lock_guard lock(poison_mutex_);
  if (!poisoned() || poison_sequence_ > sequence) return FLHAL_OK;
  *text = poison_text_;
  return poison_code_;
}

Status Stream::unusable_failure(const char* what) {
  if (device->lost()) {
    std::string why;
    {
      std::lock_guard lock(device->lost_mutex);
      if (!device->lost_reason.empty()) why = " (" + device->lost_reason + ")";
    }
    return fail(FLHAL_E_DEVICE_LOST,
                "{}: device {} is lost{}, nothing on it can be trusted; choose another device, or call "
                "flhal_device_reset_error, in Python torch_fl.clear_error() (its memory stays invalid)",
                what, device->name, why);
  }
  std::lock_guard lock(poison_mutex_);
  // Another thread has cleared it between the caller's look and here: the call has not run all the same.
  if (poison_code_ == FLHAL_OK)
    return fail(FLHAL_E_OP_FAILED, "{}: not run, because stream {} of {} had failed before; another thread has cleared that meanwhile, so "
                "call again", what, id, device->name);
  return fail(poison_code_,
              "{}: not run, because stream {} of {} failed before: {}; flhal_stream_clear_error, in Python torch_fl.clear_error(), "
              "makes the stream usable again (what failed work should have written is undefined)",
              what, id, device->name, poison_text_);
}

Status Stream::not_now(const char* what) {
  return usable() ? Status(kQueueInstead) : unusable_failure(what);
}

// Codes after which the device's contents on this stream are in doubt. A refusal (wrong argument, unsupported) queued
// nothing: the caller knows, and the stream is well.
static bool spoils_stream(flhal_status answer) {
  return answer == FLHAL_E_OP_FAILED || answer == FLHAL_E_INTERNAL || answer <= FLHAL_E_VENDOR_LAST;
}

Status Stream::submission_failed(const char* what, flhal_status answer, uint64_t number) {
  if (answer > 0) return answer;
  Status failed = plugin_answer(*device->plugin, what, answer);
  prefix_last_error(fmt::format("{}, call {} on stream {} of {}: ", what, number, id, device->name));
  if (failed.code() == FLHAL_E_DEVICE_LOST) {
    device->mark_lost(last_error_text().c_str());
  } else if (spoils_stream(failed.code())) {
    poison(failed.code(), last_error_text(), number);
  }
  return failed;
}

void Stream::asynchronous_failure(flhal_status answer, const char* slot) {
  uint64_t last = sequence_.load(std::memory_order_acquire);
  uint64_t first = std::min(completed_.load(std::memory_order_acquire) + 1, last);
  Status failed = plugin_answer(*device->plugin, slot, answer);
  std::string calls;
  if (first == last) {
    const char* name = names_[last % kNames];
    calls = fmt::format("{}, call {}", name ? name : "work", last);
  } else {
    for (uint64_t i = std::max(first, last >= kNames ? last - kNames + 1 : 0); i <= last; ++i) {
      const char* name = names_[i % kNames];
      if (i != 0 && name) calls += fmt::format("{}{} {}", calls.empty() ? "" : ", ", name, i);
    }
    calls = fmt::format("one of the calls {} to {} ({})", first, last, calls);
  }
  prefix_last_error(fmt::format("{} on stream {} of {} failed after it was queued: ", calls, id, device->name));
  if (failed.code() == FLHAL_E_DEVICE_LOST) device->mark_lost(last_error_text().c_str());
  else poison(failed.code(), last_error_text(), first);
}

void Stream::depend_on(Point source) {
  std::lock_guard lock(poison_mutex_);
  for (Source& known : sources_) {
    if (known.point.stream == source.stream) {
      known.point.sequence = std::max(known.point.sequence, source.sequence);
      return;
    }
  }
  sources_.push_back({source, here().sequence + 1});
  has_sources_.store(true, std::memory_order_release);
}

namespace {

// The streams whose sources this thread is asking about. Streams may wait for each other in turn: whoever comes by again on the
// way round is being asked already.
struct Asking {
  const Stream* stream;
  const Asking* outer;
};
thread_local constinit const Asking* t_asking = nullptr;

}  // namespace

bool Stream::take_failures_of_sources(uint64_t sequence, bool wait) {
  if (!has_sources_.load(std::memory_order_acquire)) return true;
  for (const Asking* asked = t_asking; asked != nullptr; asked = asked->outer)
    if (asked->stream == this) return true;
  struct Restore {
    Asking here;
    explicit Restore(const Stream* s) : here{s, t_asking} { t_asking = &here; }
    ~Restore() { t_asking = here.outer; }
  } asking(this);
  std::vector<Source> sources;
  {
    std::lock_guard lock(poison_mutex_);
    sources = sources_;
  }
  bool known = true;
  for (const Source& source : sources) {
    if (source.since > sequence) continue;
    Stream* from = source.point.stream;
    if (wait) {
      (void)from->wait_for(source.point.sequence);
    } else {
      (void)from->query();                  // its failure may not have been seen by anybody yet
      if (!from->reached(source.point.sequence) || !from->take_failures_of_sources(source.point.sequence, false)) known = false;
    }
    std::string text;
    flhal_status code = from->failure_before(source.point.sequence, &text);
    if (code != FLHAL_OK && from->device == device && code == FLHAL_E_DEVICE_LOST) continue;
    if (code != FLHAL_OK) {
      poison(code == FLHAL_E_DEVICE_LOST ? FLHAL_E_OP_FAILED : code,
             fmt::format("stream {} of {} waited for stream {} of {}, which failed: {}", id, device->name, from->id, from->device->name, text),
             source.since);
    } else if (known && from->known_reached(source.point.sequence)) {
      std::lock_guard lock(poison_mutex_);
      std::erase_if(sources_, [&](const Source& s) { return s.point.stream == from && s.point.sequence == source.point.sequence; });
      has_sources_.store(!sources_.empty(), std::memory_order_release);
    }
  }
  return known;
}

void Stream::clear_error() {
  if (!asynchronous) (void)wait_for(here().sequence);   // what is queued behind the failure is skipped, not run after all
  {
    std::lock_guard lock(poison_mutex_);
    attention_.fetch_and(~kPoisoned, std::memory_order_release);
    poison_code_ = FLHAL_OK;
    poison_text_.clear();
    sources_.clear();
    has_sources_.store(false, std::memory_order_release);
  }
  if (!asynchronous || device->lost()) return;
  std::lock_guard lock(mutex_);
  flhal_status answer;
  {
    auto serial = device->plugin->lock();
    (void)plugin_call(device->plugin->table.stream_synchronize, handle);   // many tell their failure once and forget it
    answer = plugin_call(device->plugin->table.stream_query, handle);
  }
  // A plugin may remember its stream's failure for ever; the table has no slot to forget it, so the queue is made anew.
  if (answer < 0) (void)recreate_handle();
}

Status Stream::recreate_handle() {          // mutex_ is held
  Plugin& plugin = *device->plugin;
  flhal_p_stream* fresh = nullptr;
  {
    auto serial = plugin.lock();
    (void)plugin_call(plugin.table.stream_synchronize, handle);
    FLHAL_TRY(plugin_answer(plugin, "stream_create", plugin_call(plugin.table.stream_create, device->handle, priority, 0, &fresh)));
    plugin_call(plugin.table.stream_destroy, handle);
  }
  handle = fresh;
  completed_up_to(sequence_.load(std::memory_order_acquire));
  progress();
  return FLHAL_OK;
}

// ---- points -------------------------------------------------------------------------------------------------------

Status Stream::mark(uint32_t flags, PluginEvent** out_event, uint64_t* out_sequence) {
  std::lock_guard lock(mutex_);
  return mark_locked(flags, out_event, out_sequence);
}

Status Stream::mark_locked(uint32_t flags, PluginEvent** out_event, uint64_t* out_sequence) {
  uint64_t sequence = sequence_.load(std::memory_order_acquire);
  {
    std::lock_guard lock(marks_mutex_);
    if (flags == 0 && !marks_.empty() && marks_.back().sequence == sequence) {  // nothing came since: the same point
      hold(marks_.back().event);
      *out_event = marks_.back().event;
      *out_sequence = sequence;
      return FLHAL_OK;
    }
  }
  FLHAL_ASSIGN(PluginEvent * event, take_plugin_event(family_of(device), flags));
  flhal_status answer;
  {
    auto serial = device->plugin->lock();
    answer = plugin_call(device->plugin->table.event_record, event->handle, handle);
  }
  if (answer != FLHAL_OK) {
    drop(event);
    Status failed = plugin_answer(*device->plugin, "event_record", answer);
    if (failed.code() == FLHAL_E_DEVICE_LOST) device->mark_lost(last_error_text().c_str());
    return failed.ok() ? Status(FLHAL_E_INTERNAL) : failed;
  }
  {
    std::lock_guard lock(event->mutex);
    event->points.push_back({this, sequence});
  }
  hold(event);
  {
    std::lock_guard lock(marks_mutex_);
    marks_.push_back({event, sequence});
  }
  *out_event = event;
  *out_sequence = sequence;
  return FLHAL_OK;
}

Status Stream::wait_on_chip(PluginEvent* event, Point source) {
  depend_on(source);
  Status queued = submit("event wait", [&](flhal_p_stream* queue) {
    return plugin_call(device->plugin->table.event_wait, event->handle, queue);
  });
  std::lock_guard lock(event->mutex);
  event->points.push_back(here());
  return queued;
}

void Stream::progress() {
  if (!asynchronous) return;
  if (device->lost()) completed_up_to(sequence_.load(std::memory_order_acquire));
  std::vector<PluginEvent*> done;           // dropped after the lock: the last reference goes to retire()
  flhal_status failed = FLHAL_OK;
  {
    std::unique_lock lock(marks_mutex_, std::try_to_lock);
    if (!lock.owns_lock() || marks_.empty()) return;
    TrySerial serial(*device->plugin);
    if (!serial.entered()) return;
    uint64_t completed = completed_.load(std::memory_order_acquire);
    while (!marks_.empty()) {
      Mark& mark = marks_.front();
      if (mark.sequence > completed && mark.event->handle) {
        flhal_status answer = plugin_call(device->plugin->table.event_query, mark.event->handle);
        if (answer == FLHAL_NOT_READY) break;
        if (answer < 0 && failed == FLHAL_OK) failed = answer;
      }
      done.push_back(mark.event);
      if (failed == FLHAL_OK) completed_up_to(mark.sequence);
      else break;
      marks_.pop_front();
    }
    if (failed != FLHAL_OK) {               // over for all of them: a failed queue runs nothing that can be trusted
      done.pop_back();
      for (Mark& mark : marks_) done.push_back(mark.event);
      marks_.clear();
    }
  }
  if (failed != FLHAL_OK) {
    asynchronous_failure(failed, "event_query");
    completed_up_to(sequence_.load(std::memory_order_acquire));
  }
  for (PluginEvent* event : done) drop(event);
}

bool Stream::reached_slowly(uint64_t sequence) {
  progress();
  if (completed_.load(std::memory_order_acquire) >= sequence) return true;
  {
    std::unique_lock lock(marks_mutex_, std::try_to_lock);
    if (!lock.owns_lock() || (!marks_.empty() && marks_.back().sequence >= sequence)) return false;
  }
  // Nobody has asked for this point yet: mark it now, so that a later question finds an answer.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  TrySerial serial(*device->plugin);
  if (!serial.entered()) return false;
  PluginEvent* event = nullptr;
  uint64_t marked = 0;
  if (!mark_locked(0, &event, &marked).ok()) {
    if (plugin_call(device->plugin->table.stream_query, handle) != FLHAL_NOT_READY) {
      completed_up_to(sequence_.load(std::memory_order_acquire));
      return true;
    }
    return false;
  }
  lock.unlock();
  drop(event);
  return false;
}

// ---- looks --------------------------------------------------------------------------------------------------------

Status Stream::look_after(uint64_t sequence, void (*look)(void*), void* ctx) {
  constexpr size_t kMany = 64;              // of somebody who never waits
  uint64_t oldest;
  bool many;
  {
    std::lock_guard lock(looks_mutex_);
    looks_.push_back({sequence, look, ctx});
    has_looks_.store(true, std::memory_order_release);
    oldest = looks_.front().sequence;
    many = looks_.size() > kMany;
  }
  if (many) (void)reached(oldest);
  if (many) hear();
  if (!known_reached(sequence)) return FLHAL_OK;
  std::string text;
  flhal_status code = known_reached(sequence) ? failure_before(sequence, &text) : FLHAL_OK;
  return code == FLHAL_OK ? Status() : fail_text(code, std::move(text));
}

void Stream::hear() {
  if (!has_looks_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(looks_mutex_);
  std::erase_if(looks_, [&](const Look& l) {
    if (!known_reached(l.sequence) && !device->lost()) return false;
    l.look(l.ctx);
    return true;
  });
  has_looks_.store(!looks_.empty(), std::memory_order_release);
}

// ---- waits --------------------------------------------------------------------------------------------------------

Status Stream::finish_locked() {
  auto serial = device->plugin->lock();
  flhal_status answer = plugin_call(device->plugin->table.stream_synchronize, handle);
  if (answer < 0) {
    asynchronous_failure(answer, "stream_synchronize");
    completed_up_to(sequence_.load(std::memory_order_acquire));
    return failure();
  }
  completed_up_to(sequence_.load(std::memory_order_acquire));
  return FLHAL_OK;
}

// A question to the plugin is a tenth of an event that is recorded, waited for and given back: small work has often ended by the
// time somebody waits for it. Never waits itself: others may be using the stream.
bool Stream::ended_well_already() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  TrySerial serial(*device->plugin);
  if (!serial.entered()) return false;
  uint64_t sequence = sequence_.load(std::memory_order_acquire);
  flhal_status answer = plugin_call(device->plugin->table.stream_query, handle);
  if (answer < 0 && usable()) asynchronous_failure(answer, "stream_query");   // some tell it once
  if (answer == FLHAL_OK) completed_up_to(sequence);
  return answer == FLHAL_OK;
}

bool Stream::rests() {
  if (!asynchronous || device->lost() || known_reached(sequence_.load(std::memory_order_acquire))) return true;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  TrySerial serial(*device->plugin);
  return serial.entered() && (handle == nullptr || plugin_call(device->plugin->table.stream_query, handle) != FLHAL_NOT_READY);
}

Status Stream::wait_for(uint64_t sequence) {
  if (!asynchronous && !known_reached(sequence)) worker_->wait(sequence);
  if (asynchronous && !known_reached(sequence) && !device->lost() && ended_well_already()) {
    progress();
  } else if (asynchronous && !known_reached(sequence) && !device->lost()) {
    PluginEvent* event = nullptr;
    uint64_t marked = 0;
    if (mark(0, &event, &marked).ok()) {
      flhal_status answer = FLHAL_OK;
      if (event->handle) {
        auto serial = device->plugin->lock();
        answer = plugin_call(device->plugin->table.event_synchronize, event->handle);
      }
      if (answer < 0) {
        asynchronous_failure(answer, "event_synchronize");
        marked = sequence_.load(std::memory_order_acquire);
      } else {
        // The event tells that the work ended, the stream tells whether it went well.
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock.owns_lock()) {
          auto serial = device->plugin->lock();
          answer = plugin_call(device->plugin->table.stream_query, handle);
          if (answer < 0) asynchronous_failure(answer, "stream_query");
        }
      }
      completed_up_to(marked);
      drop(event);
      progress();
    } else {
      std::lock_guard lock(mutex_);
      (void)finish_locked();
    }
  }
  std::string text;
  flhal_status code = failure_before(sequence, &text);
  // What it relied on has ended before it, on the chips; here it may not have been looked at yet.
  if (code == FLHAL_OK) {
    (void)take_failures_of_sources(sequence, true);
    code = failure_before(sequence, &text);
  }
  return code == FLHAL_OK ? Status() : fail_text(code, std::move(text));
}

Status Stream::query() {
  if (!asynchronous && !worker_idle()) return FLHAL_NOT_READY;
  if (asynchronous && !device->lost()) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      progress();
      return known_reached(here().sequence) ? failure() : Status(FLHAL_NOT_READY);
    }
    uint64_t sequence = sequence_.load(std::memory_order_acquire);
    TrySerial serial(*device->plugin);
    if (!serial.entered()) return FLHAL_NOT_READY;
    flhal_status answer = plugin_call(device->plugin->table.stream_query, handle);
    // A plugin may complete an event a little before it says that the stream is idle: what was waited for is done.
    if (answer == FLHAL_NOT_READY && !known_reached(sequence)) return FLHAL_NOT_READY;
    if (answer < 0 && usable()) asynchronous_failure(answer, "stream_query");
    completed_up_to(sequence);
    lock.unlock();
    progress();
  }
  if (!take_failures_of_sources(here().sequence, false) && usable()) return FLHAL_NOT_READY;
  return failure();
}

Status Stream::synchronize() {
  if (worker_idle() && attention_.load(std::memory_order_acquire) == 0 && !device->lost() &&
      !has_sources_.load(std::memory_order_acquire)) {
    retire_poll();
    return FLHAL_OK;
  }
  if (asynchronous && !device->lost()) {
    bool well = usable() && ended_well_already();
    if (!well) {
      (void)wait_for(sequence_.load(std::memory_order_acquire));   // without the lock: others may go on submitting
      well = usable() && ended_well_already();
    }
    if (!well && !device->lost()) {                                // failures that no event told; also ends what a failed queue still does
      std::lock_guard lock(mutex_);
      if (!device->lost()) (void)finish_locked();
    }
    progress();
  } else if (!asynchronous) {
    (void)wait_for(sequence_.load(std::memory_order_acquire));
  }
  (void)take_failures_of_sources(here().sequence, usable());
  retire_poll();
  return failure();
}

}  // namespace flhal

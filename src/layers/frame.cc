// src/layers/frame.cc: the wrappers, made from the rows of slots.def and ops_slots.def, and turning them on and off.
#include "layers/frame.h"

#include <array>
#include <atomic>
#include <mutex>

#include "core/config.h"
#include "core/config_follow.h"
#include "core/event.h"
#include "core/log.h"
#include "core/slot_watch.h"
#include "layers/fault.h"
#include "layers/rules.h"
#include "layers/stats.h"
#include "layers/trace.h"
#include "layers/validate.h"

namespace flhal {
namespace layers {
namespace {

Frame g_frames[kFrames];
std::atomic<int> g_used{0};
std::atomic<uint32_t> g_on{0};
std::atomic<uint64_t> g_calls{0};
std::mutex& g_mutex = *new std::mutex;          // attach, detach and follow; never taken by a call

// ---- from words to the plugin's slot ------------------------------------------------------------------------------

template <typename R, typename... A, size_t... I>
flhal_status call_with(R (*slot)(A...), const uint64_t* words, std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>) {
    slot(from_word<A>(words[I])...);
    return FLHAL_OK;
  } else {
    return slot(from_word<A>(words[I])...);
  }
}
template <typename R, typename... A>
flhal_status call_with(R (*slot)(A...), const uint64_t* words) {
  return call_with(slot, words, std::index_sequence_for<A...>{});
}

using Invoke = flhal_status (*)(const Frame&, const uint64_t*);
constexpr Invoke kInvoke[kSlots] = {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  [](const Frame& f, const uint64_t* words) { return call_with(f.table.name, words); },
#include "core/slots.def"
#undef FLHAL_SLOT
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  [](const Frame& f, const uint64_t* words) { return call_with(f.ops.name, words); },
#include "core/ops_slots.def"
#undef FLHAL_SLOT
};

// ---- through the layers -------------------------------------------------------------------------------------------

struct WatchEntry {
  SlotRecord* record = nullptr;
  ~WatchEntry() {
    if (record) watch_leave(record);
  }
};

[[gnu::noinline]] flhal_status through(Frame& frame, SlotId slot, uint64_t* words) {
  const uint32_t on = g_on.load(std::memory_order_relaxed);
  const Invoke invoke = kInvoke[static_cast<size_t>(slot)];
  if (on == 0) return invoke(frame, words);
  SlotCall call;
  call.frame = &frame;
  call.slot = slot;
  call.words = words;
  call.number = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
  WatchEntry watch;
  if (on & kWatch) watch.record = watch_enter(frame.plugin, call.info().name, from_word<const void*>(words[0]));
  if (on & kTrace) trace_before(call);
  if (on & kFault) fault_before(call);
  ValidateCall checked;
  const bool validate = (on & kValidate) && !call.injected;
  if (validate) validate_before(call, checked);
  else if (on & kValidate) validate_injected(call);
  call.begin_ns = now_ns();
  try {
    if (!call.injected) call.answer = invoke(frame, words);
  } catch (...) {
    call.end_ns = now_ns();
    call.answer = FLHAL_E_INTERNAL;             // as which core answers it
    if (validate) validate_threw(call, checked);
    if (on & kStats) stats_after(call);
    if (on & kTrace) trace_after(call, g_calls.load(std::memory_order_relaxed));
    throw;
  }
  call.end_ns = now_ns();
  if (validate) validate_after(call, checked);
  if (on & kFault) fault_after(call);
  if (on & kStats) stats_after(call);
  if (on & kTrace) trace_after(call, g_calls.load(std::memory_order_relaxed));
  return call.answer;
}

template <int P>
struct Wrapper {
  template <typename R, typename... A>
  [[gnu::always_inline]] static R enter(SlotId slot, A... arguments) {
    uint64_t words[kWords] = {to_word(arguments)...};
    if constexpr (std::is_void_v<R>) (void)through(g_frames[P], slot, words);
    else return through(g_frames[P], slot, words);
  }
#define FLHAL_ARGUMENTS(...) __VA_ARGS__
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  static result name parameters { return enter<result>(SlotId::name, FLHAL_ARGUMENTS arguments); }
#include "core/slots.def"
#include "core/ops_slots.def"
#undef FLHAL_SLOT
#undef FLHAL_ARGUMENTS
  static constexpr flhal_plugin_table_v1 table() {
    flhal_plugin_table_v1 t{};
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) t.name = name;
#include "core/slots.def"
#undef FLHAL_SLOT
    return t;
  }
  static constexpr flhal_ops_v1 ops() {
    flhal_ops_v1 t{};
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) t.name = name;
#include "core/ops_slots.def"
#undef FLHAL_SLOT
    return t;
  }
};

template <size_t... P>
constexpr auto all_tables(std::index_sequence<P...>) { return std::array{Wrapper<P>::table()...}; }
template <size_t... P>
constexpr auto all_ops(std::index_sequence<P...>) { return std::array{Wrapper<P>::ops()...}; }
constexpr auto kTables = all_tables(std::make_index_sequence<kFrames>{});
constexpr auto kOps = all_ops(std::make_index_sequence<kFrames>{});

template <typename F>
void put(F* entry, F value) { __atomic_store_n(entry, value, __ATOMIC_RELEASE); }

// Points core's copy to the wrappers, or back to the plugin's own slots. g_mutex is held.
void wrap(Frame& f, bool wrapped) {
  if (f.plugin == nullptr || f.wrapped == wrapped) return;
  const flhal_plugin_table_v1& table = wrapped ? kTables[size_t(f.index)] : f.table;
  const flhal_ops_v1& ops = wrapped ? kOps[size_t(f.index)] : f.ops;
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) put(&f.plugin->table.name, table.name);
#include "core/slots.def"
#undef FLHAL_SLOT
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) put(&f.plugin->ops.name, ops.name);
#include "core/ops_slots.def"
#undef FLHAL_SLOT
  f.wrapped = wrapped;
}

// Makes the layers those of the settings. g_mutex is held.
void follow_locked() {
  const uint32_t watch = g_on.load(std::memory_order_relaxed) & kWatch;
  const uint32_t before = g_on.load(std::memory_order_relaxed);
  const uint32_t wanted = parse_layers(config_text("layers")).value_or(0) | watch;
  if (wanted & kFault) set_faults(*parse_faults(config_text("faults")));
  if (wanted & kTrace) set_trace(config_text("trace_file"), config_text("trace_payload") == "on");
  if ((wanted & kValidate) && !(before & kValidate)) validate_begins();
  if (wanted & kStats) stats_begin();
  for (int i = 0; i < kFrames; ++i) wrap(g_frames[i], wanted != 0);
  g_on.store(wanted, std::memory_order_release);
  if (!(wanted & kTrace) && (before & kTrace)) close_trace();
  if (!(wanted & kValidate))
    for (Frame& f : g_frames) f.since_init = false;
}

void follow() {
  std::lock_guard lock(g_mutex);
  follow_locked();
}

}  // namespace

Frame& frame(int index) { return g_frames[index]; }
int frames_used() { return g_used.load(std::memory_order_acquire); }
uint32_t layers_on() { return g_on.load(std::memory_order_acquire); }

void forget_frame(Frame& f) {
  forget_stats(f.index);
  forget_validation(f.index);
  forget_faults(f.index);
  forget_trace(f.index);
}

}  // namespace layers

using namespace layers;

void layers_attach(Plugin& plugin) {
  std::lock_guard lock(g_mutex);
  config_on_layers(follow);
  Frame* free = nullptr;
  for (int i = kFrames - 1; i >= 0; --i) {
    if (g_frames[i].plugin == &plugin) return;
    if (g_frames[i].plugin == nullptr) free = &g_frames[i];
  }
  if (free == nullptr) {
    log(kLogWarn, "layers: only the first {} plugins can be watched, {} is not", kFrames, plugin.id);
    return;
  }
  free->index = static_cast<int>(free - g_frames);
  forget_frame(*free);
  free->id = plugin.id;
  free->table = plugin.table;
  free->ops = plugin.ops;
  free->wrapped = false;
  free->plugin = &plugin;
  if (free->index >= g_used.load(std::memory_order_relaxed)) g_used.store(free->index + 1, std::memory_order_release);
  follow_locked();
  free->since_init = (g_on.load(std::memory_order_relaxed) & kValidate) != 0;
}

void layers_detach(Plugin& plugin) {
  std::lock_guard lock(g_mutex);
  for (Frame& f : g_frames) {
    if (f.plugin != &plugin) continue;
    wrap(f, false);
    f.plugin = nullptr;
  }
}

void layers_watch() {
  std::lock_guard lock(g_mutex);
  g_on.fetch_or(kWatch, std::memory_order_release);
  follow_locked();
}

}  // namespace flhal

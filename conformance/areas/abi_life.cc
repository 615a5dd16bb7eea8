// conformance/areas/abi_life.cc: init, shutdown, and what a plugin may not change in its process.
#include <fenv.h>
#include <locale.h>
#include <signal.h>

#include <cstring>

#include "areas/surroundings.h"
#include "runner/context.h"

namespace flhal::conformance {
namespace {

// A bit of everything that ten slots can do, small enough that no pool of threads is worth starting.
void use_everything(Context& ctx) {
  Device& device = ctx.device();
  Slab a(device, 4096), b(device, 4096);
  auto bytes = ctx.random_bytes(4096);
  a.write(bytes);
  device.move(b, 0, a, 0, 4096);
  uint32_t pattern = 0x01020304;
  device.fill(a, 0, 4096, &pattern, 4);
  expect_equal(b.read(), bytes, "the slab that was copied to");
  const flhal_plugin_table_v1& t = device.table;
  if (ctx.plugin().has_streams()) {
    flhal_p_stream* stream = nullptr;
    flhal_p_event* event = nullptr;
    auto serial = ctx.plugin().lock();
    expect_ok(t.stream_create(device.handle, 0, 0, &stream), "stream_create");
    expect_ok(t.event_create(device.handle, 0, &event), "event_create");
    flhal_p_place place = a.place(0);
    expect_ok(t.fill(device.handle, stream, &place, 4096, &pattern, 4), "fill on a stream");
    expect_ok(t.event_record(event, stream), "event_record");
    expect_ok(t.stream_synchronize(stream), "stream_synchronize");
    t.event_destroy(event);
    t.stream_destroy(stream);
  }
}

bool open_and_close(Context& ctx) {
  use_everything(ctx);
  ctx.close();
  return true;
}

}  // namespace

FLHAL_CASE("abi.init.gives_handle", Profile::kSync, "FLP-021") {
  ctx.close();
  ctx.handle();
}

FLHAL_CASE("abi.init.again_after_shutdown", Profile::kSync, "FLP-021") {
  for (int i = 0; i < 3; ++i) open_and_close(ctx);
}

FLHAL_CASE("abi.init.longer_structs", Profile::kSync, "FLP-006") {
  ctx.close();
  struct { flhal_init_v1 init; uint64_t behind[8]; } start{};
  start.init = plain_init();
  start.init.struct_size = sizeof start;
  struct { flhal_host_v1 host; uint64_t behind[8]; } longer{};
  longer.host = *host_table();
  longer.host.struct_size = sizeof longer;
  Plugin& plugin = ctx.plugin();
  flhal_p_plugin* handle = nullptr;
  host_life_begins();
  expect_ok(plugin.table().init(&longer.host, &start.init, &handle), "init with longer structs whose tails are zero");
  plugin.stop(handle);
}

FLHAL_CASE("abi.init.unknown_extension", Profile::kSync, "FLP-022") {
  ctx.close();
  struct Extension { uint32_t struct_size, struct_type; const void* next; } extension = {sizeof(Extension), 0x00777777, nullptr};
  flhal_init_v1 start = plain_init();
  start.next = &extension;
  Plugin& plugin = ctx.plugin();
  flhal_p_plugin* handle = nullptr;
  host_life_begins();
  expect_ok(plugin.table().init(host_table(), &start, &handle), "init with an unknown extension that may be ignored");
  plugin.stop(handle);
}

FLHAL_CASE_LIMITED("abi.shutdown.returns", Profile::kSync, "FLP-023", 6000) { open_and_close(ctx); }

FLHAL_CASE("abi.shutdown.joins_threads", Profile::kSync, "FLP-023") {
  ctx.close();
  ctx.plugin();
  auto before = thread_ids();
  open_and_close(ctx);
  size_t left = threads_beyond(before).size();
  FLHAL_EXPECT(left == 0, "{} threads that the plugin started live on after shutdown", left);
}

FLHAL_CASE("abi.shutdown.gives_memory_back", Profile::kSync, "FLP-024") {
  ctx.close();
  uint64_t before = host_live_blocks();
  open_and_close(ctx);
  uint64_t after = host_live_blocks();
  FLHAL_EXPECT(after == before, "{} blocks of host->alloc were not given back by the end of shutdown", after - before);
}

FLHAL_CASE("abi.shutdown.leaves_host_alone", Profile::kSync, "FLP-024") {
  open_and_close(ctx);
  uint64_t before = host_late_calls();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  FLHAL_EXPECT(host_late_calls() == before, "the plugin called the host table after shutdown had returned");
}

FLHAL_CASE("abi.shutdown.leaves_no_files", Profile::kSync, "FLP-033") {
  open_and_close(ctx);                        // what is opened once per process has been opened now
  size_t before = open_files();
  for (int i = 0; i < 5; ++i) open_and_close(ctx);
  FLHAL_EXPECT(open_files() <= before, "5 times init and shutdown leave {} files open", open_files() - before);
}

FLHAL_CASE("abi.shutdown.heap_is_flat", Profile::kSync, "FLP-033 FLP-024") {
  for (int i = 0; i < 3; ++i) open_and_close(ctx);
  uint64_t before = heap_bytes();
  constexpr int kRounds = 40;
  for (int i = 0; i < kRounds; ++i) open_and_close(ctx);
  int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(before);
  FLHAL_EXPECT(grown < kRounds * 1024, "{} times init and shutdown leave {} bytes on the heap", kRounds, grown);
}

FLHAL_CASE("abi.boundary.no_exception", Profile::kSync, "FLP-013") {
  open_and_close(ctx);                        // an exception that leaves a slot ends the case with its text
  Device& device = ctx.device();
  flhal_p_slab_v1 slab = slab_request(uint64_t{1} << 60, 64);
  auto serial = ctx.plugin().lock();
  device.table.memory_alloc(device.handle, &slab);
  flhal_p_device_info_v1 info = empty_device_info();
  device.table.device_info(ctx.handle(), 0xfffffffe, &info);
}

FLHAL_CASE("abi.boundary.floating_point", Profile::kSync, "FLP-014") {
  ctx.close();
  fenv_t before, after;
  fesetround(FE_TONEAREST);
  feclearexcept(FE_ALL_EXCEPT);
  auto control = [](const fenv_t& e) { return std::make_pair(e.__control_word, e.__mxcsr & ~0x3fu); };   // without the sticky flags
  fegetenv(&before);
  use_everything(ctx);
  fegetenv(&after);
  bool same = control(before) == control(after);
  ctx.close();
  fegetenv(&after);
  same = same && control(before) == control(after);
  fesetenv(&before);
  FLHAL_EXPECT(same, "the plugin changed the floating point environment (rounding, traps or flush to zero) of the thread that called it");
}

FLHAL_CASE("abi.boundary.locale", Profile::kSync, "FLP-014") {
  std::string before = setlocale(LC_ALL, nullptr);
  open_and_close(ctx);
  std::string after = setlocale(LC_ALL, nullptr);
  setlocale(LC_ALL, before.c_str());
  FLHAL_EXPECT(before == after, "the plugin changed the locale from {} to {}", before, after);
}

FLHAL_CASE("abi.boundary.signals", Profile::kSync, "FLP-014") {
  ctx.close();
  sigset_t mask_before, mask_after;
  struct sigaction before[65]{}, after[65]{};
  auto read = [](sigset_t* mask, struct sigaction* actions) {
    pthread_sigmask(SIG_SETMASK, nullptr, mask);
    for (int s = 1; s <= 64; ++s) sigaction(s, nullptr, &actions[s]);
  };
  read(&mask_before, before);
  use_everything(ctx);
  read(&mask_after, after);
  for (int s = 1; s <= 64; ++s)
    FLHAL_EXPECT(before[s].sa_handler == after[s].sa_handler, "the plugin changed the handler of signal {} ({})", s, strsignal(s));
  for (int s = 1; s <= 64; ++s)
    FLHAL_EXPECT(sigismember(&mask_before, s) == sigismember(&mask_after, s), "the plugin changed whether the calling thread blocks signal {} ({})", s, strsignal(s));
}

FLHAL_CASE("abi.boundary.threads_block_signals", Profile::kSync, "FLP-015") {
  ctx.close();
  ctx.plugin();
  auto before = thread_ids();
  use_everything(ctx);
  // Streams may have threads of their own while they live.
  Device& device = ctx.device();
  flhal_p_stream* stream = nullptr;
  if (ctx.plugin().has_streams()) {
    auto serial = ctx.plugin().lock();
    expect_ok(device.table.stream_create(device.handle, 0, 0, &stream), "stream_create");
  }
  // The C library starts threads with everything blocked and lifts that in the thread itself: give it time to.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::string open;
  for (const std::string& id : thread_ids()) {
    if (before.count(id)) continue;
    uint64_t blocked = blocked_signals(id);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGALRM, SIGUSR1, SIGUSR2})
      if (!(blocked >> (s - 1) & 1) && open.empty()) open = fmt::format("thread {} does not block signal {} ({})", id, s, strsignal(s));
  }
  if (stream != nullptr) {
    auto serial = ctx.plugin().lock();
    device.table.stream_destroy(stream);
  }
  FLHAL_EXPECT(open.empty(), "{}; block all signals around the creation of threads", open);
}

}  // namespace flhal::conformance

// conformance/areas/process.cc: forks, and processes that end with everything still alive.
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>

#include "areas/queue.h"
#include "areas/surroundings.h"

namespace flhal::conformance {
namespace {

// Forks; the child runs `work` and ends as it says. Gives how the child ended, in words; "" for exit status 0.
std::string in_fork(const std::function<void()>& work, int limit_ms = 2500) {
  std::fflush(nullptr);
  pid_t child = fork();
  FLHAL_EXPECT(child >= 0, "internal: fork failed");
  if (child == 0) {
    work();
    _exit(96);
  }
  for (int waited = 0; waited < limit_ms; waited += 5) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
      return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with exit status {}", WEXITSTATUS(status));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return fmt::format("did not end within {} ms", limit_ms);
}

}  // namespace

FLHAL_CASE("process.fork.child_exits", Profile::kSync, "FLP-075") {
  Slab slab(ctx.device(), 100000);
  std::string how = in_fork([] { std::exit(0); });
  FLHAL_EXPECT(how.empty(), "a forked child that calls exit while the parent has a device open {}", how);
}
FLHAL_CASE("process.fork.parent_works_on", Profile::kSync, "FLP-075") {
  Device& device = ctx.device();
  Slab slab(device, 100000);
  auto content = ctx.random_bytes(100000);
  slab.write(content);
  for (int i = 0; i < 3; ++i) {
    std::string how = in_fork([] { std::exit(0); });
    FLHAL_EXPECT(how.empty(), "a forked child that calls exit {}", how);
    expect_equal(slab.read(), content, fmt::format("a slab of the parent, after {} forks", i + 1));
    Slab another(device, 5000);
    another.write(ctx.random_bytes(5000));
  }
}
FLHAL_CASE("process.fork.with_queued_work", Profile::kAsync, "FLP-075") {
  Device& device = gated_device(ctx);
  Slab slab(device, 1 << 20);
  Queue queue(device);
  Gate gate(device, queue);
  uint8_t one = 1;
  device.fill(slab, 0, 1 << 20, &one, 1, queue.stream);
  std::string how = in_fork([] { std::exit(0); });
  FLHAL_EXPECT(how.empty(), "a forked child that calls exit while the parent's stream has work {}", how);
  gate.open();
  queue.finish();
  FLHAL_EXPECT(slab.read()[(1 << 20) - 1] == 1, "the parent's queued work is not there after a fork");
}

FLHAL_CASE("process.probe.starts_nothing", Profile::kSync, "FLP-034") {
  if (!(ctx.plugin().info().flags & FLHAL_PLUGIN_FORK_SAFE_PROBE)) not_supported("the plugin does not claim FORK_SAFE_PROBE; core asks it in a child process");
  ctx.close();
  auto threads = thread_ids();
  size_t files = open_files();
  uint32_t count = ctx.device_count();
  for (uint32_t i = 0; i < count; ++i) {
    flhal_p_device_info_v1 info = empty_device_info();
    auto serial = ctx.plugin().lock();
    expect_ok(ctx.plugin().table().device_info(ctx.handle(), i, &info), "device_info");
  }
  size_t started = 0;
  for (const std::string& id : thread_ids()) started += !threads.count(id);
  FLHAL_EXPECT(started == 0, "the plugin claims FORK_SAFE_PROBE, and init, device_count or device_info started {} threads", started);
  FLHAL_EXPECT(open_files() <= files, "the plugin claims FORK_SAFE_PROBE, and init, device_count or device_info keep {} files open", open_files() - files);
}

FLHAL_CASE("process.probe.works_in_a_forked_child", Profile::kSync, "FLP-034") {
  if (!(ctx.plugin().info().flags & FLHAL_PLUGIN_FORK_SAFE_PROBE)) not_supported("the plugin does not claim FORK_SAFE_PROBE; core asks it in a child process");
  ctx.close();
  ctx.device_count();
  ctx.close();
  std::string how = in_fork([&] {
    try {
      // The child starts the plugin anew, as a data loader's worker that uses the chip itself would.
      if (ctx.device_count() == 0) _exit(1);
      Slab slab(ctx.device(), 10000);
      auto content = ctx.random_bytes(10000);
      slab.write(content);
      _exit(slab.read() == content ? 0 : 2);
    } catch (...) {
      _exit(3);
    }
  });
  FLHAL_EXPECT(how.empty(), "the plugin claims FORK_SAFE_PROBE; after counting and shutdown, a forked child that opens a device {}", how);
}

FLHAL_CASE("process.exit.with_everything_alive", Profile::kSync, "FLP-076") {
  ctx.close();
  std::string how = in_fork([&] {           // the fork is before init: this is a process of its own that ends
    try {
      auto* slab = new Slab(ctx.device(), 100000);
      slab->write(std::vector<uint8_t>(100000, 1));
    } catch (...) {
      _exit(3);
    }
    std::exit(0);
  });
  FLHAL_EXPECT(how.empty(), "a process that calls exit with an open device and a live slab {}", how);
}
FLHAL_CASE("process.exit.after_shutdown", Profile::kSync, "FLP-076") {
  ctx.close();
  std::string how = in_fork([&] {
    try {
      { Slab slab(ctx.device(), 100000); }
      ctx.close();
    } catch (...) {
      _exit(3);
    }
    std::exit(0);
  });
  FLHAL_EXPECT(how.empty(), "a process that calls exit after shutdown {}", how);
}
FLHAL_CASE("process.exit.with_queued_work", Profile::kAsync, "FLP-076") {
  ctx.need_streams();
  ctx.close();
  std::string how = in_fork([&] {
    try {
      Device& device = ctx.device();
      auto* slab = new Slab(device, 16 << 20);
      auto* queue = new Queue(device);
      for (uint8_t i = 0; i < 20; ++i) device.fill(*slab, 0, 16 << 20, &i, 1, queue->stream);
    } catch (...) {
      _exit(3);
    }
    std::exit(0);
  });
  FLHAL_EXPECT(how.empty(), "a process that calls exit with work in a stream {}", how);
}

}  // namespace flhal::conformance

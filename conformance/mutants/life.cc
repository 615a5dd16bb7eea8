// conformance/mutants/life.cc: wrong when the plugin starts, ends, or lives beside others in its process.
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "mutant.h"

namespace flhal::mutants {

MUTATION(init_gives_no_handle) {
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    flhal_status s = base.init(h, in, out);
    *out = nullptr;
    return s;
  };
}
MUTATION(init_works_once) {
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    static int calls = 0;
    return calls++ == 0 ? base.init(h, in, out) : refuse(FLHAL_E_INTERNAL, "mutant: init: the driver was started before in this process");
  };
}
MUTATION(init_refuses_extensions) {
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    return in->next == nullptr ? base.init(h, in, out) : refuse(FLHAL_E_ABI, "mutant: init: `next` is not NULL");
  };
}
MUTATION(shutdown_hangs) {
  table.shutdown = [](Plugin) { for (;;) pause(); };
}
MUTATION(shutdown_leaves_a_thread) {
  table.shutdown = [](Plugin p) {
    start_thread([] { for (;;) pause(); });
    base.shutdown(p);
  };
}
MUTATION(shutdown_keeps_host_memory) {
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    if (h->alloc(64, 16) == nullptr) return FLHAL_E_HOST_MEMORY;
    return base.init(h, in, out);
  };
}
MUTATION(host_is_called_after_shutdown) {
  table.shutdown = [](Plugin p) {
    base.shutdown(p);
    start_thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      host->config("mutant.setting");
    });
  };
}
MUTATION(slot_throws) {
  table.device_info = [](Plugin p, uint32_t i, flhal_p_device_info_v1* out) {
    uint32_t n = 0;
    base.device_count(p, &n);
    if (i >= n) throw std::out_of_range("mutant: there is no such chip");
    return base.device_info(p, i, out);
  };
}
MUTATION(flushes_small_numbers) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    _mm_setcsr(_mm_getcsr() | 0x8040);       // flush to zero, denormals are zero
    return base.fill(d, s, to, n, pattern, width);
  };
}
MUTATION(changes_the_locale) {
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    setlocale(LC_ALL, "C.UTF-8");
    return base.init(h, in, out);
  };
}
MUTATION(takes_a_signal) {
  table.device_open = [](Plugin p, uint32_t i, Device* out) {
    signal(SIGTERM, SIG_IGN);
    return base.device_open(p, i, out);
  };
}
MUTATION(thread_takes_signals) {
  table.device_open = [](Plugin p, uint32_t i, Device* out) {
    static std::atomic<bool> runs{false};        // before that the C library blocks its signals
    std::thread([] { runs = true; for (;;) pause(); }).detach();
    while (!runs) sched_yield();
    return base.device_open(p, i, out);
  };
}
MUTATION(counting_starts_a_thread) {
  table.device_count = [](Plugin p, uint32_t* out) {
    start_thread([] { for (;;) pause(); });
    return base.device_count(p, out);
  };
}

namespace {
pid_t g_started_in = 0;
std::atomic<int> g_open{0};
}  // namespace

MUTATION(hangs_in_a_forked_child) {
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    if (g_started_in == 0) atexit([] { while (getpid() != g_started_in) pause(); });   // joins threads the child does not have
    g_started_in = getpid();
    return base.init(h, in, out);
  };
}
MUTATION(aborts_at_exit) {
  table.device_open = [](Plugin p, uint32_t i, Device* out) {
    static const int once = atexit([] { if (g_open > 0) abort(); });
    (void)once;
    ++g_open;
    return base.device_open(p, i, out);
  };
  table.device_close = [](Device d) {
    --g_open;
    base.device_close(d);
  };
}
MUTATION(works_on_its_own_thread_only) {
  static std::atomic<pid_t> owner{0};
  table.device_open = [](Plugin p, uint32_t i, Device* out) {
    owner = gettid();
    return base.device_open(p, i, out);
  };
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) {
    return gettid() == owner ? base.memory_alloc(d, slab) : refuse(FLHAL_E_INVALID, "mutant: memory_alloc: the device was opened on another thread");
  };
}

}  // namespace flhal::mutants

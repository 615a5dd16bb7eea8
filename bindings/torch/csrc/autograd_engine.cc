// csrc/autograd_engine.cc: worker threads of torch's autograd engine for late devices.
//
// The engine makes one queue and thread per device at the first backward of the process, also a CPU-only one. When torch_fl is
// imported after that, its devices have none, and backward would stop at an internal assertion. The queues are protected members
// of the engine, so a derived class may name them; what is missing is added as Engine::start_device_threads does it.
// Threads: one caller at a time. Other backwards only read the queues of devices; ours have none in flight yet.
#include "autograd_engine.h"

#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace torch_fl {
namespace {

struct EngineQueues : torch::autograd::Engine {
  static auto queues() { return &EngineQueues::device_ready_queues_; }
};

std::atomic<size_t> g_ready{0};
std::mutex g_mutex;

}  // namespace

void ensure_engine_threads(int n_devices) {
  const auto wanted = static_cast<size_t>(n_devices);
  if (g_ready.load(std::memory_order_acquire) >= wanted) return;
  std::lock_guard lock(g_mutex);
  auto& engine = torch::autograd::Engine::get_default_engine();
  engine.initialize_device_threads_pool();            // does nothing when it has run
  auto& queues = engine.*EngineQueues::queues();
  const size_t have = queues.size();
  if (have < wanted) {
    queues.resize(wanted);
    for (size_t i = have; i < wanted; ++i) {
      queues[i] = std::make_shared<torch::autograd::ReadyQueue>();
      std::thread([&engine, i, queue = queues[i]] { engine.thread_init(static_cast<int>(i), queue, true); }).detach();
    }
  }
  g_ready.store(wanted, std::memory_order_release);
}

}  // namespace torch_fl

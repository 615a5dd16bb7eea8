// csrc/call_site.cc: where in the user's Python a fallback was first met.
#include "call_site.h"

namespace torch_fl {

std::string (*g_python_call_site)() = nullptr;
void (*g_python_clear_error)() = nullptr;
std::atomic<uint32_t> g_report_epoch{1};

std::string call_site_once(std::atomic<uint32_t>& seen_epoch) {
  const uint32_t epoch = g_report_epoch.load(std::memory_order_relaxed);
  if (seen_epoch.load(std::memory_order_relaxed) == epoch || g_python_call_site == nullptr) return {};
  seen_epoch.store(epoch, std::memory_order_relaxed);
  return g_python_call_site();
}

}  // namespace torch_fl

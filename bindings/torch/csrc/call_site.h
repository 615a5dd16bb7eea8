// csrc/call_site.h: where in the user's Python a fallback was first met. Asked once per operator and report, since it needs the GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace torch_fl {

// Set by bindings.cc; nullptr in a process without Python.
extern std::string (*g_python_call_site)();
extern void (*g_python_clear_error)();                 // forgets this thread's Python error, if one is set
extern std::atomic<uint32_t> g_report_epoch;          // grows with every reset of the report

// "file:line" the first time since the last reset, "" afterwards.
std::string call_site_once(std::atomic<uint32_t>& seen_epoch);

}  // namespace torch_fl

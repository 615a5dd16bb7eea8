// src/core/exit.h: the end of the process, which must not tear drivers down under running work.
//
// A driver compiles and runs in threads of its own; exit() destroys the statics of its libraries meanwhile, and such a thread then
// crashes the process (seen: LLVM compiling a kernel in PoCL's thread). So exit() first waits for what is queued.
#pragma once

#include <cstdint>

namespace flhal {

// How many times a library was loaded into this process. An exit handler that was registered before a library was loaded runs
// after that library's destructors: who needs it alive registers anew when this number has grown.
uint64_t libraries_loaded();

// Lets exit() wait until the queues of all plugins rest. Registers itself anew when libraries have been loaded since, or when asked
// to be `first` (handlers run in reverse order). Called when a stream, a module or a plan was made, which is when plugins load what
// they need.
void rest_before_exit(bool first = false);

}  // namespace flhal

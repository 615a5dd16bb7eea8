// src/layers/trace.h: the layer that writes every call down, as it begins to matter: for the eye, and to run it again.
//
// Two forms, by the end of the file's name. "*.txt": a line per call. Else Chrome's trace events (chrome://tracing, Perfetto), whose
// `args` hold the flat call: handles as numbers in the order they were made, structs as objects, so that flhal-replay can make
// the same calls of any plugin. With the payload also the bytes that went to the chip, and those that came back at once.
// Each call is written when it has ended, and at once: what a crash leaves in the file is complete up to the call before it.
// Threads: any; one lock around the file and the numbers of handles.
#pragma once

#include <string>

#include "core/json_text.h"
#include "layers/slot_call.h"

namespace flhal::layers {

// `path`: %p becomes the process number. The same file as before goes on; another one is begun.
void set_trace(const std::string& path, bool payload);
void close_trace();
void trace_before(SlotCall& call);
void trace_after(SlotCall& call, uint64_t calls_begun);
void forget_trace(int frame);
void add_trace(cJSON* root);                    // file, calls, what went wrong with the file

}  // namespace flhal::layers

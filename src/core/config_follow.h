// src/core/config_follow.h: who hears of a setting that has changed. Called without locks, in the thread that changed it.
#pragma once

namespace flhal {

void config_on_layers(void (*follow)());    // after each setting of layers, faults, trace_file and trace_payload

}  // namespace flhal

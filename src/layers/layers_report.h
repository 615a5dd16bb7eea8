// src/layers/layers_report.h: the report "layers": what is on, what was counted, injected, written and found.
#pragma once

#include <string>

namespace flhal {

std::string layers_json();
void reset_layers();           // counts and findings back to nothing

}  // namespace flhal

// src/dispatch/report.h: flhal_report's texts.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace flhal {

Result<std::string> report_json(std::string_view which);
Status report_reset(std::string_view which);
std::string fallback_summary();                // calls by route and the dearest ops that left the chip; "" when nothing ran
void log_summary();                            // logs it for log_level info, once; called when the process ends

}  // namespace flhal

// src/dispatch/report.h: flhal_report's texts.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace flhal {

Result<std::string> report_json(std::string_view which);
Status report_reset(std::string_view which);
std::string fallback_summary();                // some lines for log_level info at shutdown; "" when nothing ran

}  // namespace flhal

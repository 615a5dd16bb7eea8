// src/layers/layers_report.cc
#include "layers/layers_report.h"

#include "core/config.h"
#include "layers/fault.h"
#include "layers/findings.h"
#include "layers/frame.h"
#include "layers/stats.h"
#include "layers/trace.h"

namespace flhal {

using namespace layers;

std::string layers_json() {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "layers");
  json_add(root.get(), "layers", config_text("layers"));
  add_stats(cJSON_AddArrayToObject(root.get(), "stats"));
  add_findings(cJSON_AddArrayToObject(root.get(), "findings"));
  add_faults(cJSON_AddArrayToObject(root.get(), "faults"));
  add_trace(root.get());
  return json_print(root.get(), true);
}

void reset_layers() {
  reset_stats();
  reset_findings();
}

}  // namespace flhal

// reference_plugins/host/ops.cc: the optional table "ops".
#include "host_plugin.h"

namespace flhal::host {

const flhal_ops_v1* ops_table() { return nullptr; }

}  // namespace flhal::host

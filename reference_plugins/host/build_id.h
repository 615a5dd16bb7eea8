// reference_plugins/host/build_id.h: the linker's build id of this library as hexadecimal text.
#pragma once

namespace flhal::host {

// Static text, "unknown" when the library was linked without --build-id. Pure: reads the mapped file's own notes.
const char* build_id();

}  // namespace flhal::host

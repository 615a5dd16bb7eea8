// src/tools/probe_build_path.cc: tells programs of the build tree that have libflhal inside where flhal-probe lies.
namespace flhal {
extern const char* const flhal_probe_build_path;
const char* const flhal_probe_build_path = FLHAL_PROBE_BUILD_PATH;
}  // namespace flhal

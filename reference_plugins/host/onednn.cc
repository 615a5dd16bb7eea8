// reference_plugins/host/onednn.cc: finds libdnnl.so.3 by its name: LD_LIBRARY_PATH, this library's own run path (in a
// virtual environment ../../.. is <venv>/lib), the system's folders.
#include "onednn.h"

#include <dlfcn.h>

#include <cstdio>

namespace flhal::host {
namespace {

OneDnn load() {
  OneDnn d{};
  // Static, for a plan's reason must be; written once, before anyone can read it.
  static char text[512];
  void* library = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::snprintf(text, sizeof text, "oneDNN did not load (%s); install the Python package onednn-cpu-gomp==2023.2.0, or put "
                  "a folder with libdnnl.so.3 into LD_LIBRARY_PATH", dlerror());
    d.missing = text;
    return d;
  }
#define FLHAL_ONEDNN_LOAD(name)                                                      \
  d.name = reinterpret_cast<decltype(d.name)>(dlsym(library, "dnnl_" #name));        \
  if (!d.name) {                                                                     \
    d.missing = "oneDNN lacks dnnl_" #name "; install onednn-cpu-gomp==2023.2.0";    \
    return d;                                                                        \
  }
  FLHAL_ONEDNN_FUNCTIONS(FLHAL_ONEDNN_LOAD)
#undef FLHAL_ONEDNN_LOAD
  const dnnl_version_t* v = d.version();
  if (v->major != 3 || v->minor < 2) {
    std::snprintf(text, sizeof text, "oneDNN is version %d.%d; 3.2 or a later 3.x is needed: install onednn-cpu-gomp==2023.2.0",
                  v->major, v->minor);
    d.missing = text;
  } else if (v->cpu_runtime != DNNL_RUNTIME_OMP) {
    d.missing = "oneDNN was built without OpenMP and would bring a second thread pool; install onednn-cpu-gomp==2023.2.0";
  } else if (d.engine_create(&d.engine, dnnl_cpu, 0) != dnnl_success ||
             d.stream_create(&d.stream, d.engine, dnnl_stream_default_flags) != dnnl_success) {
    d.missing = "oneDNN has no engine for this processor";
  }
  return d;   // the library, the engine and the stream stay until the process ends: plans of any device use them
}

}  // namespace

const OneDnn& onednn() {
  static const OneDnn instance = load();
  return instance;
}

}  // namespace flhal::host

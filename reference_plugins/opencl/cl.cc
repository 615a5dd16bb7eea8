// reference_plugins/opencl/cl.cc: see cl.h. The loader stays open for the life of the process: its drivers have threads.
#include "cl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

namespace flhal::opencl {

ClFunctions cl;

namespace {

std::string open_now(const std::string& name) {
  void* loader = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loader)
    return fmt::format("the OpenCL loader {} cannot be opened ({}); install one (Debian: ocl-icd-libopencl1) and the driver of "
                       "the chip, or name its path in FLHAL_OPENCL_LOADER", name, dlerror());
#define X(function)                                                                                                    \
  cl.function = reinterpret_cast<decltype(cl.function)>(dlsym(loader, #function));                                     \
  if (!cl.function)                                                                                                    \
    return fmt::format("the OpenCL loader {} has no " #function ", so it is older than OpenCL 1.2; install a newer one "  \
                       "(Debian: ocl-icd-libopencl1)", name);
  FLHAL_CL_NEEDED(X)
#undef X
#define X(function) cl.function = reinterpret_cast<decltype(cl.function)>(dlsym(loader, #function));
  FLHAL_CL_NEWER(X)
#undef X
  return "";
}

}  // namespace

std::string open_loader(const char* name) {
  static std::once_flag once;
  static std::string& failure = *new std::string;   // never destroyed
  std::call_once(once, [&] { failure = open_now(name && *name ? name : "libOpenCL.so.1"); });
  return failure;
}

}  // namespace flhal::opencl

// reference_plugins/opencl/module.h: a program, and its kernels.
//
// clSetKernelArg is not safe on one kernel object from two threads, so a launch takes a kernel object for itself and puts it
// back: one exchange of a pointer each, and as many objects as threads ever launched at once.
#pragma once

#include "opencl_plugin.h"

struct flhal_p_function {
  flhal_p_module* module;
  std::string name;
  uint32_t n_args = 0;
  std::atomic<cl_kernel> idle{nullptr};   // the object nobody sets arguments of, mostly the only one
  std::mutex mutex;                       // guards `more`
  std::vector<cl_kernel> more;            // further idle ones

  ~flhal_p_function();
  cl_kernel take(cl_int* code);           // nullptr and why
  void give(cl_kernel kernel);
};

struct flhal_p_module {
  flhal_p_device* device;
  cl_program program;
  std::mutex mutex;                       // guards `functions`
  std::map<std::string, std::unique_ptr<flhal_p_function>> functions;
};

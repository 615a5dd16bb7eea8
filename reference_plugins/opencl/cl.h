// reference_plugins/opencl/cl.h: OpenCL's functions, looked up in the ICD loader when the plugin starts.
//
// Idea: the loader is opened, not linked, so that the wheel loads on a machine without one and says what is missing, and
// so that a loader of OpenCL 1.2 (no SVM entry points) serves too. The headers give the types; no symbol of libOpenCL is
// undefined in this library. docs/why/opencl.md says more.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS   // clCreateCommandQueue, for loaders without the later form
#include <CL/cl.h>

#include <string>

// Of OpenCL 1.2: without one of these the loader is of no use.
#define FLHAL_CL_NEEDED(X)                                                                                              \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clReleaseContext) \
  X(clCreateCommandQueue) X(clReleaseCommandQueue) X(clFlush) X(clFinish)                                              \
  X(clCreateBuffer) X(clCreateSubBuffer) X(clReleaseMemObject) X(clEnqueueMigrateMemObjects)                           \
  X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueReadBufferRect)                     \
  X(clEnqueueWriteBufferRect) X(clEnqueueCopyBufferRect) X(clEnqueueFillBuffer) X(clEnqueueMapBuffer)                  \
  X(clEnqueueUnmapMemObject) X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram)               \
  X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel)                \
  X(clGetKernelInfo) X(clGetKernelWorkGroupInfo) X(clSetKernelArg) X(clEnqueueNDRangeKernel)                           \
  X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) X(clCreateUserEvent) X(clSetUserEventStatus)          \
  X(clSetEventCallback) X(clGetEventInfo) X(clGetEventProfilingInfo) X(clWaitForEvents) X(clRetainEvent)               \
  X(clReleaseEvent)
// Of OpenCL 2.0: shared virtual memory. nullptr in an older loader.
#define FLHAL_CL_NEWER(X)                                                                                              \
  X(clSVMAlloc) X(clSVMFree) X(clEnqueueSVMMemcpy) X(clEnqueueSVMMemFill) X(clEnqueueSVMMap) X(clEnqueueSVMUnmap)      \
  X(clSetKernelArgSVMPointer)

namespace flhal::opencl {

struct ClFunctions {
#define X(name) decltype(&::name) name = nullptr;
  FLHAL_CL_NEEDED(X)
  FLHAL_CL_NEWER(X)
#undef X
};

extern ClFunctions cl;   // filled by open_loader(), never changed afterwards

// Opens the loader `name` (nullptr: libOpenCL.so.1) once per process; later calls answer what the first one found.
// "" when all is well, else cause and remedy.
std::string open_loader(const char* name);

}  // namespace flhal::opencl

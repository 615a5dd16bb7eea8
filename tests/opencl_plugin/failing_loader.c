/* tests/opencl_plugin/failing_loader.c: an ICD loader that answers what a test wants, for failures no healthy driver shows.
 *
 * Everything but the functions below is the real loader's, on which this library depends. A function fails with the code in
 * the environment variable FAIL_<function>, for as long as it is set. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>

static int fails(const char* name, cl_int* code) {
  const char* value = getenv(name);
  if (value) *code = atoi(value);
  return value != NULL;
}
#define REAL(name) ((__typeof__(&name))dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), #name))

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint d, const size_t* o, const size_t* g, const size_t* l, cl_uint n,
                              const cl_event* w, cl_event* e) {
  cl_int code;
  return fails("FAIL_clEnqueueNDRangeKernel", &code) ? code : REAL(clEnqueueNDRangeKernel)(q, k, d, o, g, l, n, w, e);
}
cl_int clFinish(cl_command_queue q) {
  cl_int code;
  return fails("FAIL_clFinish", &code) ? code : REAL(clFinish)(q);
}
cl_int clGetEventInfo(cl_event e, cl_event_info i, size_t n, void* to, size_t* out) {
  cl_int code;
  if (i != CL_EVENT_COMMAND_EXECUTION_STATUS || !fails("FAIL_event", &code)) return REAL(clGetEventInfo)(e, i, n, to, out);
  *(cl_int*)to = code;   /* the command ended abnormally */
  return CL_SUCCESS;
}
void* clSVMAlloc(cl_context c, cl_svm_mem_flags f, size_t n, cl_uint a) {
  cl_int code;
  return fails("FAIL_alloc", &code) ? NULL : REAL(clSVMAlloc)(c, f, n, a);
}
cl_mem clCreateBuffer(cl_context c, cl_mem_flags f, size_t n, void* h, cl_int* out) {
  cl_int code;
  if (!fails("FAIL_alloc", &code)) return REAL(clCreateBuffer)(c, f, n, h, out);
  *out = code;
  return NULL;
}

/* examples/c/kernels.c: kernels as a shared object of their own, built by any compiler of any language that can export C functions.
 * It knows nothing of flhal; shared_object.c says what its signatures are. */
#include <stdint.h>

/* y = a x + y for the elements first .. first + count - 1; several threads call it with ranges of their own. */
void saxpy(float a, const float* x, float* y, uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) y[i] = a * x[i] + y[i];
}

/* Called once. */
void sum(const float* x, uint32_t n, double* out) {
  *out = 0;
  for (uint32_t i = 0; i < n; ++i) *out += x[i];
}

/* tests/opencl_plugin/crashing_icd.c: a driver that ends the process when it is opened. */
#include <stdlib.h>
__attribute__((constructor)) static void crash(void) { abort(); }

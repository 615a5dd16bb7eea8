/* tests/host_plugin/more_kernels.c: beside the example's kernels, a function with a variable of its own and one that is not exported. */
static int calls;
void counter(int* out) { *out = ++calls; }
__attribute__((visibility("hidden"))) void hidden(int* out) { *out = 0; }

/* tests/host_plugin/undefined_kernels.c: calls what no library has. */
void nobody_has_this(void);
void f(void) { nobody_has_this(); }

/* tests/core/dependent_library.c: built twice under one soname, with other answers. */
__attribute__((visibility("default"))) const char* flhal_test_dependency(void);
const char* flhal_test_dependency(void) { return WHICH; }

/* tests/support/hostile_absent.c: a library that a hostile plugin needs and that no loader will find. */
int flhal_hostile_absent_library(void) { return 1; }

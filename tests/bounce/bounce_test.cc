// tests/bounce/bounce_test.cc: the same tests as in tests/memory, with an OpenCL chip in the world.
#include "memory/bounce_test.cc"

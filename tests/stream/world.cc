// tests/stream/world.cc: the same world as in tests/memory.
#include "memory/world.cc"

// tests/dispatch/world.cc: ram and both mock chips before the whole program.
#include "support/test_world.h"

static const int entered = flhal::test::TestWorld::enter("chips=ab");

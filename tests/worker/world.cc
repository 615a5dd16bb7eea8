// tests/worker/world.cc: the mock chips without queues, so that their native ops and kernels run on workers; and ram.
#include "support/test_world.h"

static const int entered = flhal::test::TestWorld::enter("chips=ab,no_streams=1");

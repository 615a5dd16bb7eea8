// tests/stream/cycle_test.cc: streams that wait for each other in turn.
#include "stream/chips.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("event: two streams that waited for each other in turn can be synchronized", "[core][event]") {
  Device* d = chip("chip_a");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 64), y = allocate(t, 64);
  uint8_t one = 1;
  Event a(0), b(0);
  {
    MockHold hold;
    REQUIRE_OK(fill_bytes(s, x, 64, &one, 1));
    REQUIRE_OK(a.record(s));
    REQUIRE_OK(a.wait(t));
    REQUIRE_OK(fill_bytes(t, y, 64, &one, 1));
    REQUIRE_OK(b.record(t));
    REQUIRE_OK(b.wait(s));
  }
  REQUIRE_OK(s->synchronize());
  REQUIRE_OK(t->synchronize());
  CHECK(s->query().code() == FLHAL_OK);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

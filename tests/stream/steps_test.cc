// tests/stream/steps_test.cc: what lives after 10,000 steps of a loop like training's is what lived after 1,000.
#include <dirent.h>
#include <flhal/op.h>
#include <flhal/ops.h>

#include "core/bridge.h"
#include "memory/block_pool.h"
#include "stream/level.h"

using namespace flhal;
using namespace flhal::test;

namespace {

uint64_t open_files() {
  uint64_t n = 0;
  DIR* folder = opendir("/proc/self/fd");
  REQUIRE(folder != nullptr);
  while (readdir(folder)) ++n;
  closedir(folder);
  return n;
}

struct Alive {
  uint64_t blocks, bytes, reserved, pinned_blocks, events, streams, slabs, views, threads, files, waiting;
};

Alive alive_now() {
  Alive a{};
  for (const char* name : {"ram", "chip_a"}) {
    REQUIRE_OK(synchronize_device(chip(name)));
    retire_poll();
    flhal_memory_stats s = stats_of(chip(name));
    a.blocks += s.n_live;
    a.bytes += s.requested;
    a.reserved += s.reserved;
    if (Pool* pinned = pinned_pool(chip(name))) {
      s = {};
      s.struct_size = sizeof s;
      pinned->stats(&s);
      a.pinned_blocks += s.n_live;
    }
  }
  flhal_mock_counts counts = mock_counts();
  a.events = counts.live_events;
  a.streams = counts.live_streams;
  a.slabs = counts.live_slabs;
  a.views = host_views_open() + counts.live_host_views;
  a.threads = Worker::running_threads();
  a.files = open_files();
  a.waiting = retire_pending();
  return a;
}

// Adds `n` values in place.
Status add(Stream* stream, uint64_t x, uint64_t y, int64_t n) {
  const int64_t strides[1] = {1};
  flhal_tensor tensors[3] = {};
  for (flhal_tensor& t : tensors) {
    t.address = x;
    t.sizes = &n;
    t.strides = strides;
    t.dtype = FLHAL_F32;
    t.rank = 1;
  }
  tensors[2].address = y;
  flhal_op_call call{};
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = FLHAL_OP_ADD;
  call.tensors = tensors;
  call.tensor_stride = sizeof(flhal_tensor);
  call.n_outputs = 1;
  call.n_inputs = 2;
  return Status(flhal_op_run(handle_of(stream), &call));
}

// A batch goes up, is used on both makers' chips with events between, a result comes down; now and then something fails.
void one_step(int i, Stream* a, Stream* b) {
  static const float kBatch[256] = {};
  const int64_t n = 64 + i % 3 * 64;
  uint64_t x = allocate(a, 1024), w = allocate(a, 1024), y = allocate(b, 1024);
  REQUIRE_OK(copy_bytes(a, x, number(kBatch), 1024, FLHAL_COPY_MAY_RETURN_EARLY));
  REQUIRE_OK(copy_bytes(a, w, x, 1024, 0));
  REQUIRE_OK(add(a, w, x, n));
  Event event(i % 2 ? FLHAL_EVENT_WITH_TIMING : 0);
  REQUIRE_OK(event.record(a));
  REQUIRE_OK(event.wait(b));
  REQUIRE_OK(copy_bytes(b, y, w, 1024, 0));
  REQUIRE_OK(add(b, y, y, n));
  REQUIRE_OK(pool_used_on(w, b));
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(w));
  if (i % 50 == 0) {                             // a caller's mistake, refused at once
    CHECK_FALSE(add(a, y, y, n).ok());
  }
  if (i % 100 == 0) {                            // a failure that comes late
    REQUIRE_OK(a->queue(work_of("dropout", [](Stream*) -> Status { return fail(FLHAL_E_OP_FAILED, "it broke"); })));
    CHECK_FALSE(a->synchronize().ok());
    a->clear_error();
  }
  float loss;
  REQUIRE_OK(copy_bytes(b, number(&loss), y, 4, 0));
  CHECK(loss == 0);
  REQUIRE_OK(pool_free(y));
  if (i % 200 == 0) {
    Stream* side = *make_stream(b->device, 0);
    REQUIRE_OK(event.wait(side));
    REQUIRE_OK(release_stream(side));
  }
}

}  // namespace

TEST_CASE("MEM-05 steps: 10,000 steps over two makers' chips leave nothing behind, also on failing paths", "[core][memory][MEM-05]") {
  Level two("2");
  Stream *a = *make_stream(chip("ram"), 0), *b = *make_stream(chip("chip_a"), 0);
  int i = 0;
  while (i < 1000 / kFewer) one_step(i++, a, b);
  Alive before = alive_now();
  while (i < 10000 / kFewer) one_step(i++, a, b);
  Alive after = alive_now();
  CHECK(after.blocks == before.blocks);
  CHECK(after.bytes == before.bytes);
  CHECK(after.reserved <= before.reserved);
  CHECK(after.pinned_blocks == before.pinned_blocks);
  CHECK(after.events <= before.events + 8);      // a pool of them, not one a step
  CHECK(after.streams <= before.streams + 1);
  CHECK(after.slabs <= before.slabs);
  CHECK(after.views == before.views);
  CHECK(after.threads == before.threads);
  CHECK(after.files == before.files);
  CHECK(after.waiting == 0);
  uint64_t reserved = stats_of(chip("chip_a")).reserved;
  REQUIRE_OK(chip("chip_a")->pool->trim());      // the memory really goes back
  CHECK(stats_of(chip("chip_a")).reserved < reserved);
  REQUIRE_OK(release_stream(a));
  REQUIRE_OK(release_stream(b));
  CHECK(mock_counts().misuse == 0);
}

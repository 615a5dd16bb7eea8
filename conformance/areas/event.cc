// conformance/areas/event.cc: recording, waiting, times and host signals.
#include <cstring>

#include "areas/queue.h"
#include "areas/surroundings.h"

namespace flhal::conformance {

FLHAL_CASE("event.new.is_done", Profile::kAsync, "FLP-066") {
  Event event(queued_device(ctx));
  flhal_status answer = event.query();
  FLHAL_EXPECT(answer == FLHAL_OK, "event_query of an event that was never recorded answered {}; it counts as done", status_text(answer));
}
FLHAL_CASE_LIMITED("event.new.synchronize_returns", Profile::kAsync, "FLP-066", 4000) {
  Event event(queued_device(ctx));
  event.synchronize();
}
FLHAL_CASE_LIMITED("event.new.wait_does_not_hold", Profile::kAsync, "FLP-066", 4000) {
  Device& device = queued_device(ctx);
  Queue queue(device);
  Event event(device);
  event.wait_in(queue);
  queue.finish();
}

FLHAL_CASE("event.record.not_done_early", Profile::kAsync, "FLP-064") {
  Device& device = gated_device(ctx);
  Slab slab(device, 4096);
  Queue queue(device);
  Event event(device);
  Gate gate(device, queue);
  uint8_t one = 1;
  device.fill(slab, 0, 4096, &one, 1, queue.stream);
  event.record(queue);
  FLHAL_EXPECT(stays_undone([&] { return event.query() != FLHAL_NOT_READY; }), "event_query answered {} while the work in front of the record waits; it must be FLHAL_NOT_READY", status_text(event.query()));
  gate.open();
  FLHAL_EXPECT(becomes_done([&] { return event.query() == FLHAL_OK; }), "the event is not done 5 s after the work in front of it could end");
  FLHAL_EXPECT(slab.read()[4095] == 1, "the event is done, and the fill in front of it is not there");
}

FLHAL_CASE("event.record.done_means_done", Profile::kAsync, "FLP-064") {
  Device& device = queued_device(ctx);
  constexpr uint64_t kBytes = 16 << 20;
  Slab slab(device, kBytes);
  Queue queue(device);
  std::vector<uint8_t> host(kBytes);
  Event event(device);
  for (uint8_t i = 1; i <= 4; ++i) {
    device.fill(slab, 0, kBytes, &i, 1, queue.stream);
    device.download(host.data(), slab, 0, kBytes, queue.stream);
    event.record(queue);
    FLHAL_EXPECT(becomes_done([&] { return event.query() == FLHAL_OK; }), "the event is not done after 5 s");
    FLHAL_EXPECT(host[kBytes - 1] == i, "event_query answered FLHAL_OK before the copy in front of the record had ended (round {})", i);
  }
  queue.finish();
}

FLHAL_CASE("event.record.idle_stream", Profile::kAsync, "FLP-064") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  Event event(device);
  event.record(queue);
  FLHAL_EXPECT(becomes_done([&] { return event.query() == FLHAL_OK; }), "an event recorded on an idle stream is not done after 5 s");
}

FLHAL_CASE("event.record.last_one_counts", Profile::kAsync, "FLP-065") {
  Device& device = gated_device(ctx);
  Queue queue(device);
  Event event(device);
  event.record(queue);
  queue.finish();
  Gate gate(device, queue);
  event.record(queue);
  FLHAL_EXPECT(stays_undone([&] { return event.query() == FLHAL_OK; }), "the event was recorded again behind waiting work, and event_query still answers for the first record");
  gate.open();
  event.synchronize();
}

FLHAL_CASE("event.record.on_another_stream", Profile::kAsync, "FLP-065") {
  Device& device = gated_device(ctx);
  Queue first(device), second(device);
  Event event(device);
  event.record(first);
  first.finish();
  Gate gate(device, second);
  event.record(second);
  FLHAL_EXPECT(stays_undone([&] { return event.query() == FLHAL_OK; }), "the event was recorded again on another stream, which waits, and is done");
  gate.open();
  event.synchronize();
}

FLHAL_CASE("event.record.thousand_times", Profile::kAsync, "FLP-065") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  Event event(device);
  for (int i = 0; i < 1000; ++i) event.record(queue);
  event.synchronize();
  FLHAL_EXPECT(event.query() == FLHAL_OK, "an event recorded 1000 times is not done after event_synchronize");
}

FLHAL_CASE("event.wait.orders_streams", Profile::kAsync, "FLP-067") {
  Device& device = gated_device(ctx);
  if (device.info.queues == 1) not_supported("the chip has one queue");
  constexpr uint64_t kBytes = 4096;
  Slab a(device, kBytes), b(device, kBytes);
  uint8_t zero = 0, one = 1;
  device.fill(a, 0, kBytes, &zero, 1);
  device.fill(b, 0, kBytes, &zero, 1);
  Queue producer(device), consumer(device);
  Event event(device);
  Gate gate(device, producer);
  device.fill(a, 0, kBytes, &one, 1, producer.stream);
  event.record(producer);
  event.wait_in(consumer);
  device.move(b, 0, a, 0, kBytes, consumer.stream);
  bool held = stays_undone([&] { return consumer.query() == FLHAL_OK; });
  gate.open();
  consumer.finish();
  producer.finish();
  FLHAL_EXPECT(held, "the work behind event_wait finished before the event's point was reached");
  expect_equal(b.read(), std::vector<uint8_t>(kBytes, 1), "what the waiting stream copied");
}

FLHAL_CASE("event.wait.chain_of_streams", Profile::kAsync, "FLP-067") {
  Device& device = queued_device(ctx);
  constexpr uint64_t kBytes = 1 << 18;
  std::vector<std::unique_ptr<Slab>> slabs;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 8; ++i) {
    slabs.push_back(std::make_unique<Slab>(device, kBytes));
    queues.push_back(std::make_unique<Queue>(device));
    events.push_back(std::make_unique<Event>(device));
  }
  for (uint8_t round = 1; round <= 5; ++round) {
    device.fill(*slabs[0], 0, kBytes, &round, 1, queues[0]->stream);
    for (size_t i = 1; i < 8; ++i) {
      events[i - 1]->record(*queues[i - 1]);
      events[i - 1]->wait_in(*queues[i]);
      device.move(*slabs[i], 0, *slabs[i - 1], 0, kBytes, queues[i]->stream);
    }
    queues[7]->finish();
    expect_equal(slabs[7]->read(), std::vector<uint8_t>(kBytes, round), fmt::format("the end of a chain through 8 streams, round {}", round));
    for (auto& q : queues) q->finish();
  }
}

FLHAL_CASE("event.wait.takes_the_record_of_that_moment", Profile::kAsync, "FLP-068") {
  Device& device = gated_device(ctx);
  if (device.info.queues == 1) not_supported("the chip has one queue");
  Queue producer(device), consumer(device);
  Event event(device);
  event.record(producer);
  event.wait_in(consumer);
  producer.finish();
  Gate gate(device, producer, 2000);
  event.record(producer);
  consumer.finish();
  FLHAL_EXPECT(!gate.opened_by_itself(), "a stream waited for a record that was made after its event_wait");
  gate.open();
}

FLHAL_CASE("event.wait.same_stream", Profile::kAsync, "FLP-067") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  Event event(device);
  event.record(queue);
  event.wait_in(queue);
  queue.finish();
}

FLHAL_CASE("event.wait.across_devices", Profile::kAsync, "FLP-067") {
  Device& first = gated_device(ctx);
  if (ctx.device_count() < 2) not_supported("the plugin has one device");
  Device& second = ctx.device(1);
  Queue producer(first), consumer(second);
  Event event(first);
  Gate gate(first, producer);
  event.record(producer);
  {
    auto serial = second.plugin.lock();
    expect_ok(second.table.event_wait(event.event, consumer.stream), "event_wait for an event of another device of the same plugin");
  }
  Slab slab(second, 4096);
  uint8_t one = 1;
  second.fill(slab, 0, 4096, &one, 1, consumer.stream);
  bool held = stays_undone([&] { return consumer.query() == FLHAL_OK; });
  gate.open();
  consumer.finish();
  FLHAL_EXPECT(held, "a stream did not wait for the event of another device of the same plugin");
}

FLHAL_CASE("event.synchronize.waits", Profile::kAsync, "FLP-069") {
  Device& device = gated_device(ctx);
  if (ctx.plugin().serialized()) not_supported("with SERIALIZE_ALL nobody could open the gate meanwhile");
  Queue queue(device);
  Event event(device);
  Gate gate(device, queue);
  event.record(queue);
  std::atomic<bool> opened{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    opened = true;
    gate.open();
  });
  flhal_status answer = device.table.event_synchronize(event.event);
  bool after = opened;
  opener.join();
  expect_ok(answer, "event_synchronize");
  FLHAL_EXPECT(after, "event_synchronize returned while the event's stream still waited");
}

FLHAL_CASE("event.query.never_blocks", Profile::kAsync, "FLP-064") {
  Device& device = gated_device(ctx);
  Queue queue(device);
  Event event(device);
  Gate gate(device, queue, 1500);
  event.record(queue);
  for (int i = 0; i < 3; ++i) event.query();
  FLHAL_EXPECT(!gate.opened_by_itself(), "event_query did not return while the event's stream waited; a query never blocks");
  gate.open();
  queue.finish();
}

FLHAL_CASE("event.create.cycles_leave_nothing", Profile::kAsync, "FLP-072") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  auto cycle = [&] {
    Event event(device);
    event.record(queue);
    event.synchronize();
  };
  // An event is done before the queue has put away what recorded it: counts are taken when the queue is done, too.
  for (int i = 0; i < 50; ++i) cycle();
  queue.finish();
  size_t files = open_files();
  uint64_t heap = heap_bytes(), blocks = host_live_blocks();
  for (int i = 0; i < 500; ++i) cycle();
  queue.finish();
  FLHAL_EXPECT(open_files() <= files, "500 events were made and destroyed, and {} files are left open", open_files() - files);
  FLHAL_EXPECT(host_live_blocks() <= blocks, "500 events were made and destroyed, and {} blocks of host->alloc are left", host_live_blocks() - blocks);
  int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(heap);
  FLHAL_EXPECT(grown < 500 * 64, "500 events were made and destroyed, and {} bytes are left on the heap", grown);
}

FLHAL_CASE("event.create.many", Profile::kAsync, "FLP-072") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 1000; ++i) {
    events.push_back(std::make_unique<Event>(device));
    events.back()->record(queue);
  }
  queue.finish();
  for (size_t i = 0; i < events.size(); ++i) FLHAL_EXPECT(becomes_done([&] { return events[i]->query() == FLHAL_OK; }, 1000), "event {} of 1000 is not done after its stream was synchronized", i);
}

namespace {
// Timing is optional: a chip that refuses it says so in event_create.
Device& timed_device(Context& ctx) {
  Device& device = queued_device(ctx);
  flhal_p_event* event = nullptr;
  take_error();
  auto serial = device.plugin.lock();
  flhal_status answer = device.table.event_create(device.handle, FLHAL_EVENT_TIMING, &event);
  if (answer == FLHAL_E_UNSUPPORTED) not_supported("the chip has no event times, and says so");
  expect_ok(answer, "event_create with FLHAL_EVENT_TIMING");
  device.table.event_destroy(event);
  return device;
}
flhal_status elapsed(const Event& from, const Event& to, uint64_t* out) {
  auto serial = from.device.plugin.lock();
  return from.device.table.event_elapsed_ns(from.event, to.event, out);
}
}  // namespace

FLHAL_CASE("event.elapsed.grows", Profile::kAsync, "FLP-070") {
  Device& device = timed_device(ctx);
  Queue queue(device);
  Event first(device, FLHAL_EVENT_TIMING), second(device, FLHAL_EVENT_TIMING), third(device, FLHAL_EVENT_TIMING);
  auto began = std::chrono::steady_clock::now();
  first.record(queue);
  queue.finish();
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  second.record(queue);
  queue.finish();
  third.record(queue);
  queue.finish();
  auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
  uint64_t a = 0, b = 0, whole = 0;
  expect_ok(elapsed(first, second, &a), "event_elapsed_ns");
  expect_ok(elapsed(second, third, &b), "event_elapsed_ns");
  expect_ok(elapsed(first, third, &whole), "event_elapsed_ns");
  FLHAL_EXPECT(a >= 20000000, "40 ms passed between two events, and event_elapsed_ns says {} ns", a);
  FLHAL_EXPECT(whole >= a && whole >= b, "event_elapsed_ns says {} ns for a span that contains one of {} ns", whole, std::max(a, b));
  FLHAL_EXPECT(whole <= ns * 2, "event_elapsed_ns says {} ns for a span that took at most {} ns; the unit is nanoseconds", whole, ns);
}

FLHAL_CASE("event.elapsed.needs_timing", Profile::kAsync, "FLP-070 FLP-016") {
  Device& device = timed_device(ctx);
  Queue queue(device);
  Event first(device), second(device);
  first.record(queue);
  second.record(queue);
  queue.finish();
  uint64_t ns = 0;
  take_error();
  flhal_status answer = elapsed(first, second, &ns);
  expect_refused(answer, kAnyFailure, "event_elapsed_ns for events made without FLHAL_EVENT_TIMING");
}

FLHAL_CASE("event.elapsed.not_ready", Profile::kAsync, "FLP-070") {
  gated_device(ctx);
  Device& device = timed_device(ctx);
  Queue queue(device);
  Event first(device, FLHAL_EVENT_TIMING), second(device, FLHAL_EVENT_TIMING);
  first.record(queue);
  Gate gate(device, queue);
  second.record(queue);
  uint64_t ns = 0;
  flhal_status answer = elapsed(first, second, &ns);
  take_error();
  FLHAL_EXPECT(answer == FLHAL_NOT_READY, "event_elapsed_ns answered {} while the second event's stream waits; it must be FLHAL_NOT_READY", status_text(answer));
  gate.open();
  queue.finish();
}

FLHAL_CASE("event.signal.releases", Profile::kAsync, "FLP-071") {
  Device& device = gated_device(ctx);
  Queue queue(device);
  Event event(device, FLHAL_EVENT_HOST_SIGNALED);
  event.wait_in(queue);
  bool held = stays_undone([&] { return queue.query() == FLHAL_OK; });
  event.signal(FLHAL_OK);
  FLHAL_EXPECT(becomes_done([&] { return queue.query() == FLHAL_OK; }, 3000), "event_signal did not release the stream that waits for the event");
  FLHAL_EXPECT(held, "a stream went past a host-signalled event before it was signalled");
}
FLHAL_CASE("event.signal.before_the_wait", Profile::kAsync, "FLP-071") {
  Device& device = gated_device(ctx);
  Queue queue(device);
  Event event(device, FLHAL_EVENT_HOST_SIGNALED);
  event.signal(FLHAL_OK);
  event.wait_in(queue);
  FLHAL_EXPECT(becomes_done([&] { return queue.query() == FLHAL_OK; }, 3000), "a stream waits for an event that had been signalled before");
}
FLHAL_CASE("event.signal.query", Profile::kAsync, "FLP-071") {
  Event event(gated_device(ctx), FLHAL_EVENT_HOST_SIGNALED);
  flhal_status before = event.query();
  event.signal(FLHAL_OK);
  flhal_status after = event.query();
  FLHAL_EXPECT(before == FLHAL_NOT_READY, "event_query of a host-signalled event answered {} before the signal", status_text(before));
  FLHAL_EXPECT(after == FLHAL_OK, "event_query of a host-signalled event answered {} after the signal", status_text(after));
}
FLHAL_CASE("event.signal.several_streams", Profile::kAsync, "FLP-071") {
  Device& device = gated_device(ctx);
  std::vector<std::unique_ptr<Queue>> queues;
  Event event(device, FLHAL_EVENT_HOST_SIGNALED);
  for (int i = 0; i < 4; ++i) {
    queues.push_back(std::make_unique<Queue>(device));
    event.wait_in(*queues.back());
  }
  event.signal(FLHAL_OK);
  for (auto& q : queues) FLHAL_EXPECT(becomes_done([&] { return q->query() == FLHAL_OK; }, 3000), "event_signal did not release all four streams that wait for the event");
}

}  // namespace flhal::conformance

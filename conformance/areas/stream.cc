// conformance/areas/stream.cc: order, independence, queries and waits of streams.
#include <cstring>

#include "areas/queue.h"
#include "areas/surroundings.h"

namespace flhal::conformance {

FLHAL_CASE("stream.create.gives_handle", Profile::kAsync, "FLP-058") {
  Queue queue(queued_device(ctx));
  flhal_status idle = queue.query();
  FLHAL_EXPECT(idle == FLHAL_OK, "stream_query of a new stream answered {}; nothing was submitted, so it is FLHAL_OK", status_text(idle));
}

FLHAL_CASES() {
  for (int priority : {-100, -1, 0, 1, 100})
    add_case(fmt::format("stream.create.priority.{}{}", priority < 0 ? "minus_" : "", std::abs(priority)), Profile::kAsync, "FLP-058", [priority](Context& ctx) {
      Device& device = queued_device(ctx);
      Queue queue(device, priority);
      Slab slab(device, 4096);
      uint32_t pattern = 0xabcd1234;
      device.fill(slab, 0, 4096, &pattern, 4, queue.stream);
      queue.finish();
    });
  return true;
}

FLHAL_CASE("stream.create.many", Profile::kAsync, "FLP-058") {
  Device& device = queued_device(ctx);
  std::vector<std::unique_ptr<Queue>> queues;
  Slab slab(device, 32 * 64);
  for (int i = 0; i < 32; ++i) {
    queues.push_back(std::make_unique<Queue>(device));
    uint8_t pattern = static_cast<uint8_t>(i + 1);
    device.fill(slab, static_cast<uint64_t>(i) * 64, 64, &pattern, 1, queues.back()->stream);
  }
  for (auto& q : queues) q->finish();
  auto content = slab.read();
  for (size_t i = 0; i < 32; ++i) FLHAL_EXPECT(content[i * 64] == i + 1, "the fill of stream {} of 32 is not there after stream_synchronize", i);
}

FLHAL_CASE("stream.create.cycles_leave_nothing", Profile::kAsync, "FLP-058") {
  Device& device = queued_device(ctx);
  Slab slab(device, 4096);
  auto cycle = [&] {
    Queue queue(device);
    uint8_t pattern = 3;
    device.fill(slab, 0, 4096, &pattern, 1, queue.stream);
  };
  for (int i = 0; i < 5; ++i) cycle();
  auto threads = thread_ids();
  size_t files = open_files();
  uint64_t heap = heap_bytes(), blocks = host_live_blocks();
  for (int i = 0; i < 50; ++i) cycle();
  FLHAL_EXPECT(threads_beyond(threads).empty(), "50 streams were made and destroyed, and threads are left");
  FLHAL_EXPECT(open_files() <= files, "50 streams were made and destroyed, and {} files are left open", open_files() - files);
  FLHAL_EXPECT(host_live_blocks() <= blocks, "50 streams were made and destroyed, and {} blocks of host->alloc are left", host_live_blocks() - blocks);
  int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(heap);
  FLHAL_EXPECT(grown < 50 * 512, "50 streams were made and destroyed, and {} bytes are left on the heap", grown);
}

FLHAL_CASE("stream.order.fills", Profile::kAsync, "FLP-059") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  Slab slab(device, 1 << 20);
  for (uint32_t i = 1; i <= 100; ++i) device.fill(slab, 0, i % 2 ? 1 << 20 : 4096, &i, 4, queue.stream);
  queue.finish();
  auto content = slab.read();
  uint32_t first, last;
  std::memcpy(&first, content.data(), 4);
  std::memcpy(&last, content.data() + content.size() - 4, 4);
  FLHAL_EXPECT(first == 100 && last == 99, "of 100 fills of one stream numbers {} and {} are there; the last ones are 100 (first 4 KiB) and 99", first, last);
}

FLHAL_CASE("stream.order.copies_and_fills", Profile::kAsync, "FLP-059 FLP-056") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  constexpr uint64_t kBytes = 1 << 20;
  Slab a(device, kBytes), b(device, kBytes);
  std::vector<uint8_t> back(kBytes);
  for (uint8_t i = 1; i <= 20; ++i) {
    device.fill(a, 0, kBytes, &i, 1, queue.stream);
    device.move(b, 0, a, 0, kBytes, queue.stream);
    uint8_t zero = 0;
    device.fill(a, 0, kBytes, &zero, 1, queue.stream);
    device.download(back.data(), b, 0, kBytes, queue.stream);
    queue.finish();
    expect_equal(back, std::vector<uint8_t>(kBytes, i), fmt::format("round {} of fill, copy, fill, copy back on one stream", i));
  }
}

FLHAL_CASE("stream.order.empty_copy_keeps_its_place", Profile::kAsync, "FLP-059 FLP-048") {
  Device& device = gated_device(ctx);
  Slab slab(device, 4096);
  Queue queue(device);
  Gate gate(device, queue);
  uint8_t host = 0;
  device.upload(slab, 0, &host, 0, queue.stream);
  Event event(device);
  event.record(queue);
  FLHAL_EXPECT(stays_undone([&] { return event.query() == FLHAL_OK; }), "an event behind an empty copy is done although the stream waits");
  gate.open();
  queue.finish();
}

FLHAL_CASE("stream.order.nothing_overtakes_a_wait", Profile::kAsync, "FLP-059 FLP-067") {
  Device& device = gated_device(ctx);
  Slab slab(device, 4096);
  uint8_t zero = 0, one = 1;
  device.fill(slab, 0, 4096, &zero, 1);
  Queue queue(device);
  {
    Gate gate(device, queue);
    device.fill(slab, 0, 4096, &one, 1, queue.stream);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    auto content = slab.read();
    FLHAL_EXPECT(content[0] == 0, "a fill ran although its stream was told to wait for an event that was not signalled");
    gate.open();
    queue.finish();
  }
  FLHAL_EXPECT(slab.read()[4095] == 1, "the fill behind the wait is not there after stream_synchronize");
}

FLHAL_CASES() {
  struct Work { const char* name; std::function<void(Device&, Slab&, std::vector<uint8_t>&, flhal_p_stream*)> submit; };
  static const Work kWork[] = {
      {"copy_to_device", [](Device& d, Slab& s, std::vector<uint8_t>& h, flhal_p_stream* q) { d.upload(s, 0, h.data(), h.size(), q); }},
      {"copy_to_host", [](Device& d, Slab& s, std::vector<uint8_t>& h, flhal_p_stream* q) { d.download(h.data(), s, 0, h.size(), q); }},
      {"copy_on_device", [](Device& d, Slab& s, std::vector<uint8_t>& h, flhal_p_stream* q) { d.move(s, h.size(), s, 0, h.size(), q); }},
      {"fill", [](Device& d, Slab& s, std::vector<uint8_t>& h, flhal_p_stream* q) { uint8_t p = 5; d.fill(s, 0, h.size(), &p, 1, q); }},
  };
  for (const Work& w : kWork)
    add_case(fmt::format("stream.submit.returns_at_once.{}", w.name), Profile::kAsync, "FLP-060", [&w](Context& ctx) {
      Device& device = gated_device(ctx);
      std::vector<uint8_t> host(1 << 20);
      Slab slab(device, 2 << 20);
      Queue queue(device);
      Gate gate(device, queue, 1500);
      w.submit(device, slab, host, queue.stream);
      FLHAL_EXPECT(!gate.opened_by_itself(), "{} with a stream did not return while the stream waited; submitting does not wait for the work", w.name);
      gate.open();
      queue.finish();
    });
  return true;
}

FLHAL_CASE("stream.submit.record_returns_at_once", Profile::kAsync, "FLP-060") {
  Device& device = gated_device(ctx);
  Queue queue(device), other(device);
  Event event(device);
  Gate gate(device, queue, 1500);
  event.record(queue);
  event.wait_in(other);
  FLHAL_EXPECT(!gate.opened_by_itself(), "event_record or event_wait did not return while the stream waited; the host does not wait");
  gate.open();
  other.finish();
}

FLHAL_CASE("stream.submit.arguments_are_copied", Profile::kAsync, "FLP-019") {
  // Places, patterns and structs are overwritten while the work still waits.
  Device& device = gated_device(ctx);
  constexpr uint64_t kBytes = 4096;
  Slab filled(device, kBytes), copied(device, kBytes);
  auto content = ctx.random_bytes(kBytes);
  Queue queue(device);
  {
    Gate gate(device, queue);
    uint64_t pattern[2] = {0x1122334455667788ull, 0x99aabbccddeeff00ull};
    flhal_p_place place = filled.place(0);
    flhal_p_copy_v1 what = linear_copy(copied.place(0), host_place(content.data()), kBytes);
    {
      auto serial = device.plugin.lock();
      expect_ok(device.table.fill(device.handle, queue.stream, &place, kBytes, pattern, 16), "fill");
      expect_ok(device.table.copy(device.handle, queue.stream, &what), "copy");
    }
    std::memset(pattern, 0, sizeof pattern);
    std::memset(&place, 0, sizeof place);
    std::memset(&what, 0, sizeof what);
    gate.open();
    queue.finish();
  }
  auto seen = filled.read();
  FLHAL_EXPECT(seen[0] == 0x88 && seen[15] == 0x99 && seen[kBytes - 1] == 0x99, "a fill used its pattern after the call had returned; the pattern's memory means something else by then");
  expect_equal(copied.read(), content, "a copy whose struct was overwritten after the call had returned");
}

FLHAL_CASE("stream.query.not_ready_before_ready_after", Profile::kAsync, "FLP-061") {
  Device& device = gated_device(ctx);
  Slab slab(device, 4096);
  Queue queue(device);
  uint8_t pattern = 1;
  Gate gate(device, queue);
  device.fill(slab, 0, 4096, &pattern, 1, queue.stream);
  flhal_status before = queue.query();
  FLHAL_EXPECT(before == FLHAL_NOT_READY, "stream_query answered {} while the stream waits with a fill behind it; it must be FLHAL_NOT_READY", status_text(before));
  gate.open();
  FLHAL_EXPECT(becomes_done([&] { return queue.query() != FLHAL_NOT_READY; }), "stream_query still answers FLHAL_NOT_READY 5 s after the work could end");
  flhal_status after = queue.query();
  FLHAL_EXPECT(after == FLHAL_OK, "stream_query answered {} after the work", status_text(after));
  FLHAL_EXPECT(slab.read()[4095] == 1, "stream_query answered FLHAL_OK, and the fill is not there");
}

FLHAL_CASE("stream.query.never_blocks", Profile::kAsync, "FLP-061") {
  Device& device = gated_device(ctx);
  Queue queue(device);
  Gate gate(device, queue, 1500);
  for (int i = 0; i < 3; ++i) queue.query();
  FLHAL_EXPECT(!gate.opened_by_itself(), "stream_query did not return while the stream waited; a query never blocks");
  gate.open();
}

FLHAL_CASE("stream.synchronize.waits", Profile::kAsync, "FLP-062") {
  Device& device = gated_device(ctx);
  if (ctx.plugin().serialized()) not_supported("with SERIALIZE_ALL nobody could open the gate meanwhile");
  Slab slab(device, 4096);
  uint8_t zero = 0, one = 1;
  device.fill(slab, 0, 4096, &zero, 1);
  Queue queue(device);
  Gate gate(device, queue);
  device.fill(slab, 0, 4096, &one, 1, queue.stream);
  std::atomic<bool> opened{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    opened = true;
    gate.open();
  });
  flhal_status answer = device.table.stream_synchronize(queue.stream);
  bool after = opened;
  opener.join();
  expect_ok(answer, "stream_synchronize");
  FLHAL_EXPECT(after, "stream_synchronize returned while the stream still waited for its event");
  FLHAL_EXPECT(slab.read()[0] == 1, "stream_synchronize returned, and the fill is not there");
}

FLHAL_CASE("stream.synchronize.large_download", Profile::kAsync, "FLP-062") {
  Device& device = queued_device(ctx);
  constexpr uint64_t kBytes = 16 << 20;
  Slab slab(device, kBytes);
  Queue queue(device);
  std::vector<uint8_t> host(kBytes);
  for (uint8_t i = 1; i <= 4; ++i) {
    device.fill(slab, 0, kBytes, &i, 1, queue.stream);
    device.download(host.data(), slab, 0, kBytes, queue.stream);
    queue.finish();
    FLHAL_EXPECT(host[kBytes - 1] == i && host[0] == i, "stream_synchronize returned before a copy to the host had ended (round {})", i);
  }
}

FLHAL_CASE("stream.independent.one_waits_another_runs", Profile::kAsync, "FLP-063") {
  Device& device = gated_device(ctx);
  if (device.info.queues < 2) not_supported("the chip has one queue");
  Slab slab(device, 4096);
  Queue waiting(device), free(device);
  Gate gate(device, waiting, 2000);
  uint8_t one = 1, two = 2;
  device.fill(slab, 0, 64, &one, 1, waiting.stream);
  device.fill(slab, 1024, 64, &two, 1, free.stream);
  free.finish();
  FLHAL_EXPECT(!gate.opened_by_itself(), "a stream did not finish while another one waited for an event; streams are independent");
  gate.open();
  waiting.finish();
}

FLHAL_CASE("stream.independent.null_stream_while_one_waits", Profile::kAsync, "FLP-063 FLP-047") {
  Device& device = gated_device(ctx);
  Slab slab(device, 4096);
  Queue waiting(device);
  Gate gate(device, waiting, 2000);
  auto content = ctx.random_bytes(4096);
  slab.write(content);
  expect_equal(slab.read(), content, "a slab written and read with stream NULL while a stream waits");
  FLHAL_EXPECT(!gate.opened_by_itself(), "a copy with stream NULL waited for a stream that it has nothing to do with");
  gate.open();
}

FLHAL_CASE_LIMITED("stream.random.program", Profile::kAsync, "FLP-059 FLP-064 FLP-067", 60000) {
  // Copies and fills on four streams, ordered between streams by events; a model says what the memory must hold.
  Device& device = queued_device(ctx);
  constexpr uint64_t kBytes = 65536, kPieces = 16, kPiece = kBytes / kPieces;
  Slab slab(device, kBytes);
  std::vector<uint8_t> model(kBytes, 0);
  uint8_t zero = 0;
  device.fill(slab, 0, kBytes, &zero, 1);
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Event>> events;       // the last touch of each piece
  std::vector<size_t> owner(kPieces, 0);
  for (int i = 0; i < 4; ++i) queues.push_back(std::make_unique<Queue>(device));
  for (uint64_t i = 0; i < kPieces; ++i) events.push_back(std::make_unique<Event>(device));
  for (int step = 0; step < 400; ++step) {
    size_t q = ctx.random()() % 4, to = ctx.random()() % kPieces, from = ctx.random()() % kPieces;
    bool copy = ctx.random()() % 2 && to != from;
    for (size_t piece : {to, copy ? from : to})
      if (owner[piece] != q) events[piece]->wait_in(*queues[q]);
    if (copy) {
      device.move(slab, to * kPiece, slab, from * kPiece, kPiece, queues[q]->stream);
      std::memcpy(model.data() + to * kPiece, model.data() + from * kPiece, kPiece);
    } else {
      uint32_t pattern = static_cast<uint32_t>(ctx.random()());
      device.fill(slab, to * kPiece, kPiece, &pattern, 4, queues[q]->stream);
      for (uint64_t i = 0; i < kPiece; i += 4) std::memcpy(model.data() + to * kPiece + i, &pattern, 4);
    }
    for (size_t piece : {to, copy ? from : to}) {
      events[piece]->record(*queues[q]);
      owner[piece] = q;
    }
  }
  for (auto& q : queues) q->finish();
  expect_equal(slab.read(), model, "the slab after 400 copies and fills on four streams ordered by events");
}

}  // namespace flhal::conformance

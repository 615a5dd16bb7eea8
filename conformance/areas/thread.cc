// conformance/areas/thread.cc: several threads at once, and handles that change threads.
#include <cstring>

#include "areas/kernels.h"
#include "areas/queue.h"

namespace flhal::conformance {
namespace {

constexpr int kThreads = 8;

// Runs `work(number)` on kThreads threads at once; the first failure of any is the case's.
void on_threads(const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> faults(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      try {
        work(i);
      } catch (...) {
        faults[static_cast<size_t>(i)] = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  for (auto& f : faults)
    if (f) std::rethrow_exception(f);
}

std::vector<uint8_t> numbered(uint64_t n, int thread, int round) {
  std::vector<uint8_t> bytes(n);
  for (uint64_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + static_cast<uint64_t>(thread * 17 + round * 7));
  return bytes;
}

}  // namespace

FLHAL_CASE_LIMITED("thread.memory.alloc_and_free", Profile::kSync, "FLP-073", 30000) {
  Device& device = ctx.device();
  on_threads([&](int t) {
    for (int round = 0; round < 20; ++round) {
      uint64_t n = 1000 + static_cast<uint64_t>(t * 5000 + round * 100);
      Slab slab(device, n);
      slab.made.bytes = n;
      auto content = numbered(n, t, round);
      slab.write(content);
      expect_equal(slab.read(), content, fmt::format("the slab of thread {} of {}", t, kThreads));
    }
  });
}

FLHAL_CASE_LIMITED("thread.copy.separate_slabs", Profile::kSync, "FLP-073", 30000) {
  Device& device = ctx.device();
  std::vector<std::unique_ptr<Slab>> slabs;
  for (int i = 0; i < kThreads; ++i) slabs.push_back(std::make_unique<Slab>(device, 300000));
  on_threads([&](int t) {
    Slab& slab = *slabs[static_cast<size_t>(t)];
    for (int round = 0; round < 15; ++round) {
      auto content = numbered(300000, t, round);
      slab.write(content);
      expect_equal(slab.read(), content, fmt::format("the slab of thread {} of {}", t, kThreads));
    }
  });
}

FLHAL_CASE_LIMITED("thread.copy.parts_of_one_slab", Profile::kSync, "FLP-073 FLP-044", 30000) {
  Device& device = ctx.device();
  constexpr uint64_t kPart = 10007;
  Slab slab(device, kPart * kThreads);
  on_threads([&](int t) {
    for (int round = 0; round < 20; ++round) {
      auto content = numbered(kPart, t, round);
      std::vector<uint8_t> back(kPart);
      device.upload(slab, kPart * static_cast<uint64_t>(t), content.data(), kPart);
      device.download(back.data(), slab, kPart * static_cast<uint64_t>(t), kPart);
      expect_equal(back, content, fmt::format("the part of thread {} in a slab that {} threads share", t, kThreads));
    }
  });
}

FLHAL_CASE_LIMITED("thread.fill.separate_slabs", Profile::kSync, "FLP-073 FLP-049", 30000) {
  Device& device = ctx.device();
  on_threads([&](int t) {
    Slab slab(device, 100000);
    for (uint32_t round = 0; round < 20; ++round) {
      uint32_t pattern = 0x01010101u * static_cast<uint32_t>(t + 1) + round;
      device.fill(slab, 0, 100000, &pattern, 4);
      auto seen = slab.read();
      for (uint64_t i = 0; i < seen.size(); i += 4)
        FLHAL_EXPECT(std::memcmp(seen.data() + i, &pattern, 4) == 0, "thread {} filled its slab with one pattern and finds another one at byte {}", t, i);
    }
  });
}

FLHAL_CASE("thread.caller.another_thread", Profile::kSync, "FLP-074") {
  ctx.close();
  // Started, opened and allocated on threads that end; used and closed here.
  std::unique_ptr<Slab> slab;
  std::exception_ptr fault;
  auto on_thread = [&](const std::function<void()>& work) {
    std::thread([&] {
      try {
        work();
      } catch (...) {
        fault = std::current_exception();
      }
    }).join();
    if (fault) std::rethrow_exception(fault);
  };
  on_thread([&] { ctx.device(); });
  on_thread([&] { slab = std::make_unique<Slab>(ctx.device(), 10000); });
  auto content = ctx.random_bytes(10000);
  slab->write(content);
  std::vector<uint8_t> seen;
  on_thread([&] { seen = slab->read(); });
  expect_equal(seen, content, "a slab made on a thread that has ended, written on a second and read on a third");
  on_thread([&] { slab.reset(); });
  on_thread([&] { ctx.close(); });
}

FLHAL_CASE("thread.error.text_belongs_to_the_thread", Profile::kSync, "FLP-016 FLP-073") {
  Device& device = ctx.device();
  on_threads([&](int t) {
    for (int round = 0; round < 20; ++round) {
      take_error();
      if (t % 2 == 0) {
        flhal_p_slab_v1 slab = slab_request(4096, 64, 50 + static_cast<uint32_t>(t));
        flhal_status answer;
        LeftError left;
        {
          auto serial = device.plugin.lock();
          answer = device.table.memory_alloc(device.handle, &slab);
        }
        left = take_error();
        FLHAL_EXPECT(answer < 0 && left.called, "memory_alloc of an unknown kind left no text on the thread that called it");
      } else {
        Slab slab(device, 4096);
        LeftError left = take_error();
        FLHAL_EXPECT(!left.called, "a thread whose call worked has the text \"{}\"", left.text);
      }
    }
  });
}

FLHAL_CASE_LIMITED("thread.launch.separate_slabs", Profile::kKernel, "FLP-073 FLP-054", 60000) {
  Device& device = ctx.device();
  Module module(ctx, device);
  flhal_p_function* f = module.get("scale_add");
  on_threads([&](int t) {
    constexpr uint64_t kN = 5000;
    Slab out(device, kN * 4), a(device, kN * 4), b(device, kN * 4);
    float x = static_cast<float>(t + 1), y = static_cast<float>(10 * t);
    device.fill(a, 0, kN * 4, &x, 4);
    device.fill(b, 0, kN * 4, &y, 4);
    std::vector<float> got(kN);
    for (int round = 0; round < 20; ++round) {
      float s = static_cast<float>(round);
      launch(device, f, kN, Arguments().memory(out).memory(a).memory(b).value(s));
      device.download(got.data(), out, 0, kN * 4);
      for (float g : got) FLHAL_EXPECT(g == s * x + y, "thread {} launched {} * {} + {} and finds {}", t, s, x, y, g);
    }
  });
}

FLHAL_CASE_LIMITED("thread.module.load_at_once", Profile::kKernel, "FLP-073 FLP-057", 60000) {
  Device& device = ctx.device();
  bool host = kernel_source(ctx, device).host;
  on_threads([&](int t) {
    for (int round = 0; round < (host ? 20 : 1); ++round) {
      Module module(ctx, device);
      Slab slab(device, 4096);
      uint8_t zero = 0;
      device.fill(slab, 0, 4096, &zero, 1);
      launch(device, module.get("count_group"), 10, Arguments().memory(slab));
      uint32_t counts[10];
      device.download(counts, slab, 0, sizeof counts);
      FLHAL_EXPECT(counts[9] == 1, "thread {} loaded a module of its own, and its launch did not run", t);
    }
  });
}

FLHAL_CASE_LIMITED("thread.stream.one_each", Profile::kAsync, "FLP-073 FLP-059", 60000) {
  Device& device = queued_device(ctx);
  on_threads([&](int t) {
    constexpr uint64_t kN = 50000;
    Queue queue(device);
    Slab a(device, kN), b(device, kN);
    Event event(device);
    std::vector<uint8_t> back(kN);
    for (int round = 0; round < 10; ++round) {
      auto content = numbered(kN, t, round);
      device.upload(a, 0, content.data(), kN, queue.stream);
      device.move(b, 0, a, 0, kN, queue.stream);
      device.download(back.data(), b, 0, kN, queue.stream);
      event.record(queue);
      event.synchronize();
      expect_equal(back, content, fmt::format("what thread {} sent through its own stream", t));
    }
    queue.finish();
  });
}

FLHAL_CASE_LIMITED("thread.event.query_while_recording", Profile::kAsync, "FLP-073 FLP-064", 30000) {
  Device& device = queued_device(ctx);
  Queue queue(device);
  Event event(device);
  Slab slab(device, 4096);
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    while (!stop) {
      flhal_status s = event.query();
      if (s != FLHAL_OK && s != FLHAL_NOT_READY) stop = true;
      std::this_thread::yield();
    }
  });
  uint8_t one = 1;
  bool early = false;
  for (int i = 0; i < 500 && !stop; ++i) {
    device.fill(slab, 0, 4096, &one, 1, queue.stream);
    event.record(queue);
  }
  early = stop.exchange(true);
  watcher.join();
  queue.finish();
  FLHAL_EXPECT(!early, "event_query failed while another thread recorded the event");
}

}  // namespace flhal::conformance

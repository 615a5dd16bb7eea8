// conformance/areas/module.cc: modules, functions and launches.
#include <algorithm>
#include <cstring>

#include "areas/kernels.h"
#include "areas/queue.h"
#include "areas/surroundings.h"

namespace flhal::conformance {
namespace {

template <typename T>
std::vector<T> read_as(const Slab& slab, uint64_t n, uint64_t offset = 0) {
  std::vector<T> values(n);
  slab.device.download(values.data(), slab, offset, n * sizeof(T));
  return values;
}
void clear(Slab& slab) {
  uint8_t zero = 0;
  slab.device.fill(slab, 0, slab.made.bytes, &zero, 1);
}

flhal_status try_load(Device& device, const char* dialect, const void* data, uint64_t bytes, char* log, uint64_t log_bytes, flhal_p_module** out) {
  flhal_p_source_v1 what{sizeof what, FLHAL_ST_SOURCE, nullptr, dialect, data, bytes, "", log, log_bytes};
  auto serial = device.plugin.lock();
  return device.table.module_load(device.handle, &what, out);
}

}  // namespace

FLHAL_CASE("module.load.gives_handle", Profile::kKernel, "FLP-051") {
  ctx.need_kernels();
  Module module(ctx, ctx.device());
}

FLHAL_CASE("module.load.unknown_dialect", Profile::kKernel, "FLP-051 FLP-016") {
  ctx.need_kernels();
  Device& device = ctx.device();
  for (const char* dialect : {"no-such-dialect-1", "", "flhal-host-", "opencl-c-99.9"}) {
    flhal_p_module* module = nullptr;
    take_error();
    flhal_status answer = try_load(device, dialect, "x", 1, nullptr, 0, &module);
    expect_refused(answer, FLHAL_E_UNSUPPORTED, fmt::format("module_load of the dialect \"{}\", which the chip does not name,", dialect));
    FLHAL_EXPECT(module == nullptr, "module_load was refused and gave a handle all the same");
  }
}

FLHAL_CASE("module.load.broken_text", Profile::kKernel, "FLP-052 FLP-016") {
  Device& device = ctx.device();
  Source source = kernel_source(ctx, device);
  if (source.host) not_supported("flhal-host-1 has no text that could be wrong");
  static const char kBroken[] = "__kernel void f(__global int* out) { out[0] = no_such_name; }";
  for (uint64_t capacity : {0ull, 1ull, 16ull, 4096ull}) {
    std::vector<char> log(capacity + 64, '#');
    flhal_p_module* module = nullptr;
    take_error();
    flhal_status answer = try_load(device, source.dialect.c_str(), kBroken, sizeof kBroken - 1, capacity != 0 ? log.data() : nullptr, capacity, &module);
    expect_refused(answer, FLHAL_E_BUILD, "module_load of a text that uses an unknown name");
    if (capacity == 0) continue;
    FLHAL_EXPECT(std::find(log.begin(), log.begin() + static_cast<long>(capacity), '\0') != log.begin() + static_cast<long>(capacity), "the build log of {} bytes has no terminating zero", capacity);
    FLHAL_EXPECT(std::all_of(log.begin() + static_cast<long>(capacity), log.end(), [](char c) { return c == '#'; }), "module_load wrote past the {} bytes of the build log", capacity);
    if (capacity == 4096) FLHAL_EXPECT(std::strlen(log.data()) > 0, "the build log of a text that does not compile is empty");
  }
}

FLHAL_CASE("module.load.log_ends_when_it_works", Profile::kKernel, "FLP-052") {
  Device& device = ctx.device();
  Source source = kernel_source(ctx, device);
  char log[64];
  std::memset(log, '#', sizeof log);
  flhal_p_module* module = nullptr;
  expect_ok(try_load(device, source.dialect.c_str(), source.data, source.bytes, log, 32, &module), "module_load with room for a log");
  {
    auto serial = device.plugin.lock();
    device.table.module_unload(module);
  }
  FLHAL_EXPECT(log[32] == '#', "module_load wrote past the 32 bytes of the build log");
}

FLHAL_CASE("module.load.cycles_leave_nothing", Profile::kKernel, "FLP-057") {
  Device& device = ctx.device();
  bool host = kernel_source(ctx, device).host;
  int rounds = host ? 200 : 10;             // a compiler runs in the other dialects
  for (int i = 0; i < 3; ++i) { Module m(ctx, device); m.get("count_group"); }
  uint64_t heap = heap_bytes(), blocks = host_live_blocks();
  size_t files = open_files();
  for (int i = 0; i < rounds; ++i) { Module m(ctx, device); m.get("count_group"); }
  FLHAL_EXPECT(open_files() <= files, "{} modules were loaded and unloaded, and {} files are left open", rounds, open_files() - files);
  FLHAL_EXPECT(host_live_blocks() <= blocks, "{} modules were loaded and unloaded, and {} blocks of host->alloc are left", rounds, host_live_blocks() - blocks);
  int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(heap);
  if (host) FLHAL_EXPECT(grown < rounds * 128, "{} modules were loaded and unloaded, and {} bytes are left on the heap", rounds, grown);
}

FLHAL_CASE("module.function.by_name", Profile::kKernel, "FLP-053") {
  Device& device = ctx.device();
  Module module(ctx, device);
  flhal_p_function *count = module.get("count_group"), *weigh = module.get("weigh_16");
  Slab slab(device, 4096);
  clear(slab);
  launch(device, count, 10, Arguments().memory(slab));
  auto counts = read_as<uint32_t>(slab, 11);
  FLHAL_EXPECT(counts[9] == 1 && counts[10] == 0, "function_get(\"count_group\") gave a function that does something else");
  Arguments arguments;
  arguments.memory(slab);
  for (int32_t i = 0; i < 16; ++i) arguments.value(i);
  launch(device, weigh, 1, arguments);
  FLHAL_EXPECT(read_as<int32_t>(slab, 1)[0] == 1360, "function_get(\"weigh_16\") gave a function that does something else");
}

FLHAL_CASE("module.function.unknown_name", Profile::kKernel, "FLP-053 FLP-016") {
  Device& device = ctx.device();
  Module module(ctx, device);
  for (const char* name : {"no_such_function", "", "count_grou", "count_group2"}) {
    flhal_p_function* function = nullptr;
    take_error();
    flhal_status answer;
    {
      auto serial = device.plugin.lock();
      answer = device.table.function_get(module.module, name, &function);
    }
    expect_refused(answer, FLHAL_E_NOT_FOUND, fmt::format("function_get of \"{}\", which the module does not have,", name));
    FLHAL_EXPECT(function == nullptr, "function_get was refused and gave a handle all the same");
  }
}

FLHAL_CASE("module.function.name_may_change", Profile::kKernel, "FLP-019 FLP-053") {
  Device& device = ctx.device();
  Module module(ctx, device);
  char name[] = "count_group";
  flhal_p_function* function = module.get(name);
  std::memset(name, 'x', sizeof name - 1);
  Slab slab(device, 4096);
  clear(slab);
  launch(device, function, 3, Arguments().memory(slab));
  FLHAL_EXPECT(read_as<uint32_t>(slab, 3)[2] == 1, "a function stopped working when the memory of its name was overwritten");
}

FLHAL_CASE("module.function.asked_twice", Profile::kKernel, "FLP-053") {
  Device& device = ctx.device();
  Module module(ctx, device);
  Slab slab(device, 4096);
  clear(slab);
  for (int i = 0; i < 2; ++i) launch(device, module.get("count_group"), 5, Arguments().memory(slab));
  FLHAL_EXPECT(read_as<uint32_t>(slab, 5)[4] == 2, "a function that was asked for twice does not run twice");
}

FLHAL_CASES() {
  for (uint64_t groups : {1ull, 2ull, 3ull, 7ull, 64ull, 1000ull, 4097ull, 100003ull})
    add_case(fmt::format("module.launch.each_group_once.{}", groups), Profile::kKernel, "FLP-054", [groups](Context& ctx) {
      Device& device = ctx.device();
      Module module(ctx, device);
      Slab slab(device, (groups + 64) * 4);
      clear(slab);
      launch(device, module.get("count_group"), groups, Arguments().memory(slab));
      auto counts = read_as<uint32_t>(slab, groups + 64);
      for (uint64_t g = 0; g < groups; ++g) FLHAL_EXPECT(counts[g] == 1, "of {} groups, group {} ran {} times", groups, g, counts[g]);
      for (uint64_t g = groups; g < groups + 64; ++g) FLHAL_EXPECT(counts[g] == 0, "{} groups were launched, and group {} ran, too", groups, g);
    });
  for (uint32_t stride : {40u, 48u, 64u, 104u})
    add_case(fmt::format("module.launch.argument_stride.{}", stride), Profile::kKernel, "FLP-055", [stride](Context& ctx) {
      Device& device = ctx.device();
      Module module(ctx, device);
      Slab out(device, 4096), a(device, 4096), b(device, 4096);
      float one = 1, two = 2;
      device.fill(a, 0, 4096, &one, 4);
      device.fill(b, 0, 4096, &two, 4);
      Arguments arguments;
      arguments.memory(out).memory(a).memory(b).value(3.0f);
      std::vector<uint8_t> spread(stride * 4, 0xcc);
      for (uint32_t i = 0; i < 4; ++i) std::memcpy(spread.data() + i * stride, arguments.data() + i, sizeof(flhal_p_arg));
      flhal_p_launch_v1 l = launch_of(module.get("scale_add"), 100, arguments);
      l.args = reinterpret_cast<const flhal_p_arg*>(spread.data());
      l.arg_stride = stride;
      {
        auto serial = device.plugin.lock();
        expect_ok(device.table.launch(device.handle, nullptr, &l), "launch");
      }
      FLHAL_EXPECT(read_as<float>(out, 100)[99] == 5.0f, "3 * 1 + 2 gave {} with arguments {} bytes apart", read_as<float>(out, 100)[99], stride);
    });
  return true;
}

FLHAL_CASE("module.launch.values", Profile::kKernel, "FLP-055") {
  Device& device = ctx.device();
  Module module(ctx, device);
  Slab out(device, 4096);
  clear(out);
  int32_t vector[4] = {11, -22, 33, -44};
  Arguments arguments;
  arguments.memory(out).value<int8_t>(-7).value<int16_t>(-1234).value<int32_t>(-123456789).value<int64_t>(-1234567890123456789).bytes(vector, 16);
  launch(device, module.get("store_values"), 1, arguments);
  auto got = read_as<int64_t>(out, 8);
  const int64_t wanted[8] = {-7, -1234, -123456789, -1234567890123456789, 11, -22, 33, -44};
  for (int i = 0; i < 8; ++i) FLHAL_EXPECT(got[i] == wanted[i], "value {} of 1, 2, 4, 8 and 4 x 4 bytes arrived as {}, it is {}", i, got[i], wanted[i]);
}

FLHAL_CASE("module.launch.many_values", Profile::kKernel, "FLP-055") {
  Device& device = ctx.device();
  Module module(ctx, device);
  Slab out(device, 4096);
  Arguments arguments;
  arguments.memory(out);
  int32_t wanted = 0;
  for (int32_t i = 0; i < 16; ++i) {
    int32_t v = static_cast<int32_t>(ctx.random()() % 2000) - 1000;
    arguments.value(v);
    wanted += (i + 1) * v;
  }
  launch(device, module.get("weigh_16"), 1, arguments);
  int32_t got = read_as<int32_t>(out, 1)[0];
  FLHAL_EXPECT(got == wanted, "16 values arrived in another order or with other bytes: {} instead of {}", got, wanted);
}

FLHAL_CASE("module.launch.memory_offset", Profile::kKernel, "FLP-055") {
  Device& device = ctx.device();
  Module module(ctx, device);
  // OpenCL passes memory from multiples of the base alignment; slab_alignment is that or more.
  uint64_t step = std::max<uint64_t>(device.info.slab_alignment, 4096);
  Slab slab(device, 4 * step);
  clear(slab);
  float one = 1, two = 2;
  device.fill(slab, step, 4096, &one, 4);
  device.fill(slab, 2 * step, 4096, &two, 4);
  launch(device, module.get("scale_add"), 16, Arguments().memory(slab, 3 * step).memory(slab, step).memory(slab, 2 * step).value(10.0f));
  auto got = read_as<float>(slab, 17, 3 * step);
  FLHAL_EXPECT(got[0] == 12.0f && got[15] == 12.0f && got[16] == 0.0f, "10 * 1 + 2 gave {} from operands at offsets {}, {} and {} of one slab", got[0], 3 * step, step, 2 * step);
  FLHAL_EXPECT(read_as<float>(slab, 1)[0] == 0.0f, "a launch with memory at an offset wrote to the start of the slab");
}

FLHAL_CASE("module.launch.same_memory_twice", Profile::kKernel, "FLP-055") {
  Device& device = ctx.device();
  Module module(ctx, device);
  Slab a(device, 4096);
  float three = 3;
  device.fill(a, 0, 4096, &three, 4);
  launch(device, module.get("scale_add"), 100, Arguments().memory(a).memory(a).memory(a).value(2.0f));
  auto got = read_as<float>(a, 101);
  FLHAL_EXPECT(got[0] == 9.0f && got[99] == 9.0f && got[100] == 3.0f, "2 * 3 + 3 in place gave {}", got[0]);
}

FLHAL_CASE("module.launch.sees_copies_and_fills", Profile::kKernel, "FLP-056") {
  Device& device = ctx.device();
  Module module(ctx, device);
  constexpr uint64_t kN = 50000;
  Slab out(device, kN * 4), a(device, kN * 4), b(device, kN * 4);
  std::vector<float> host(kN);
  for (int round = 1; round <= 4; ++round) {
    for (uint64_t i = 0; i < kN; ++i) host[i] = static_cast<float>(i * static_cast<uint64_t>(round) % 1000);
    float half = 0.5f * static_cast<float>(round);
    device.upload(a, 0, host.data(), kN * 4);
    device.fill(b, 0, kN * 4, &half, 4);
    launch(device, module.get("scale_add"), kN, Arguments().memory(out).memory(a).memory(b).value(2.0f));
    device.move(b, 0, out, 0, kN * 4);
    auto got = read_as<float>(b, kN);
    for (uint64_t i = 0; i < kN; ++i) FLHAL_EXPECT(got[i] == 2 * host[i] + half, "round {}: element {} is {}, it must be {}", round, i, got[i], 2 * host[i] + half);
  }
}

FLHAL_CASE("module.launch.finished_on_return", Profile::kKernel, "FLP-047 FLP-056") {
  Device& device = ctx.device();
  Module module(ctx, device);
  constexpr uint64_t kN = 1 << 18;
  Slab slab(device, kN * 4);
  clear(slab);
  flhal_p_function* count = module.get("count_group");
  for (uint32_t round = 1; round <= 3; ++round) {
    launch(device, count, kN, Arguments().memory(slab));
    auto counts = read_as<uint32_t>(slab, kN);
    FLHAL_EXPECT(*std::min_element(counts.begin(), counts.end()) == round, "launch with stream NULL returned before all groups had run (round {})", round);
  }
}

FLHAL_CASE("module.launch.struct_longer", Profile::kKernel, "FLP-006") {
  Device& device = ctx.device();
  Module module(ctx, device);
  Slab slab(device, 4096);
  clear(slab);
  Arguments arguments;
  arguments.memory(slab);
  struct { flhal_p_launch_v1 launch; uint64_t behind[8]; } longer{};
  longer.launch = launch_of(module.get("count_group"), 4, arguments);
  longer.launch.struct_size = sizeof longer;
  {
    auto serial = device.plugin.lock();
    expect_ok(device.table.launch(device.handle, nullptr, &longer.launch), "launch with a longer struct");
  }
  FLHAL_EXPECT(read_as<uint32_t>(slab, 4)[3] == 1, "a launch with a longer struct did not run");
}

FLHAL_CASE("module.launch.local_memory", Profile::kKernel, "FLP-055") {
  Device& device = ctx.device();
  if (kernel_source(ctx, device).host) not_supported("flhal-host-1 has no work-group memory");
  Module module(ctx, device);
  Slab slab(device, 4096);
  Arguments arguments;
  arguments.memory(slab).local(16 * 4);
  flhal_p_launch_v1 l = launch_of(module.get("through_local"), 4, arguments);
  l.group_size[0] = 16;
  {
    auto serial = device.plugin.lock();
    expect_ok(device.table.launch(device.handle, nullptr, &l), "launch");
  }
  auto got = read_as<uint32_t>(slab, 64);
  for (uint32_t i = 0; i < 64; ++i) FLHAL_EXPECT(got[i] == i / 16 * 16 + 15 - i % 16, "work-item {} read {} from its group's memory", i, got[i]);
}

FLHAL_CASE("module.launch.three_dimensions", Profile::kKernel, "FLP-054") {
  Device& device = ctx.device();
  if (kernel_source(ctx, device).host) not_supported("flhal-host-1 splits the first dimension only");
  Module module(ctx, device);
  Slab slab(device, 4096);
  clear(slab);
  Arguments arguments;
  arguments.memory(slab);
  flhal_p_launch_v1 l = launch_of(module.get("three_dimensions"), 5, arguments);
  l.groups[1] = 3;
  l.groups[2] = 7;
  {
    auto serial = device.plugin.lock();
    expect_ok(device.table.launch(device.handle, nullptr, &l), "launch");
  }
  auto got = read_as<uint32_t>(slab, 106);
  for (uint32_t i = 0; i < 105; ++i) FLHAL_EXPECT(got[i] == 1, "group {} of 5 x 3 x 7 ran {} times", i, got[i]);
  FLHAL_EXPECT(got[105] == 0, "more than 5 x 3 x 7 groups ran");
}

FLHAL_CASE("stream.launch.in_order", Profile::kAsync, "FLP-059 FLP-056") {
  Device& device = queued_device(ctx);
  Module module(ctx, device);
  constexpr uint64_t kN = 10000;
  Slab a(device, kN * 4), b(device, kN * 4);
  Queue queue(device);
  flhal_p_function* f = module.get("scale_add");
  float one = 1, zero = 0;
  device.fill(a, 0, kN * 4, &one, 4, queue.stream);
  device.fill(b, 0, kN * 4, &zero, 4, queue.stream);
  for (int i = 0; i < 10; ++i) {
    launch(device, f, kN, Arguments().memory(a).memory(a).memory(b).value(2.0f), queue.stream);
    device.fill(b, 0, kN * 4, &one, 4, queue.stream);
  }
  queue.finish();
  float got = read_as<float>(a, kN)[kN - 1];
  FLHAL_EXPECT(got == 1535.0f, "ten launches and fills in turn on one stream gave {}, in order they give 1535", got);
}

FLHAL_CASE("stream.launch.arguments_are_copied", Profile::kAsync, "FLP-019 FLP-055") {
  Device& device = gated_device(ctx);
  Module module(ctx, device);
  Slab out(device, 4096), a(device, 4096), b(device, 4096);
  float one = 1, two = 2;
  device.fill(a, 0, 4096, &one, 4);
  device.fill(b, 0, 4096, &two, 4);
  flhal_p_function* f = module.get("scale_add");
  Queue queue(device);
  {
    Gate gate(device, queue);
    float s = 4;
    flhal_p_arg args[4] = {{FLHAL_ARG_MEMORY, 0, nullptr, out.made.memory, 0, out.made.address},
                           {FLHAL_ARG_MEMORY, 0, nullptr, a.made.memory, 0, a.made.address},
                           {FLHAL_ARG_MEMORY, 0, nullptr, b.made.memory, 0, b.made.address},
                           {FLHAL_ARG_VALUE, 4, &s, nullptr, 0, 0}};
    Arguments none;
    flhal_p_launch_v1 l = launch_of(f, 8, none);
    l.args = args;
    l.n_args = 4;
    {
      auto serial = device.plugin.lock();
      expect_ok(device.table.launch(device.handle, queue.stream, &l), "launch");
    }
    s = -1;
    std::memset(args, 0, sizeof args);
    std::memset(&l, 0, sizeof l);
    gate.open();
    queue.finish();
  }
  float got = read_as<float>(out, 8)[7];
  FLHAL_EXPECT(got == 6.0f, "4 * 1 + 2 gave {}: the arguments of a launch were read after the call had returned", got);
}

FLHAL_CASE("stream.submit.returns_at_once.launch", Profile::kAsync, "FLP-060") {
  Device& device = gated_device(ctx);
  Module module(ctx, device);
  Slab slab(device, 4096);
  Queue queue(device);
  Gate gate(device, queue, 1500);
  launch(device, module.get("count_group"), 10, Arguments().memory(slab), queue.stream);
  FLHAL_EXPECT(!gate.opened_by_itself(), "launch with a stream did not return while the stream waited; submitting does not wait for the work");
  gate.open();
  queue.finish();
}

}  // namespace flhal::conformance

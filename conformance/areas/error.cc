// conformance/areas/error.cc: refusals: their codes, their sentences, and that nothing is broken afterwards.
#include "runner/context.h"

namespace flhal::conformance {
namespace {

bool known(flhal_status s) { return (s >= FLHAL_E_DENIED && s <= FLHAL_EXHAUSTED) || s <= FLHAL_E_VENDOR_LAST; }

// Every refusal that a call of this kind can provoke without breaking a rule of the caller.
struct Refusal { std::string what; flhal_status answer; LeftError left; };
std::vector<Refusal> provoke(Context& ctx) {
  std::vector<Refusal> all;
  Device& device = ctx.device();
  const flhal_plugin_table_v1& t = device.table;
  uint32_t count = ctx.device_count();
  auto add = [&](std::string what, auto&& call) {
    take_error();
    auto serial = ctx.plugin().lock();
    flhal_status answer = call();
    all.push_back({std::move(what), answer, take_error()});
  };
  add("device_info past the count", [&] { auto info = empty_device_info(); return t.device_info(ctx.handle(), count, &info); });
  add("device_open past the count", [&] { flhal_p_device* d = nullptr; return t.device_open(ctx.handle(), count, &d); });
  add("memory_alloc of an unknown kind", [&] { auto s = slab_request(4096, 64, 99); return t.memory_alloc(device.handle, &s); });
  if (t.module_load != nullptr)
    add("module_load of an unknown dialect", [&] {
      flhal_p_module* module = nullptr;
      flhal_p_source_v1 source{sizeof source, FLHAL_ST_SOURCE, nullptr, "no-such-dialect-1", "x", 1, "", nullptr, 0};
      return t.module_load(device.handle, &source, &module);
    });
  return all;
}

}  // namespace

FLHAL_CASE("error.text.with_every_refusal", Profile::kSync, "FLP-016") {
  for (const Refusal& r : provoke(ctx)) {
    FLHAL_EXPECT(r.answer < 0, "{} was answered with {}", r.what, status_text(r.answer));
    FLHAL_EXPECT(r.left.called && !r.left.text.empty(), "{} was refused with {} without a sentence; call host->set_error before a negative answer", r.what, status_text(r.answer));
    FLHAL_EXPECT(r.left.text.size() >= 10, "{} was refused with the text \"{}\"; a user needs a sentence", r.what, r.left.text);
  }
}
FLHAL_CASE("error.text.same_status", Profile::kSync, "FLP-016") {
  for (const Refusal& r : provoke(ctx))
    FLHAL_EXPECT(!r.left.called || r.left.status == r.answer, "{} answered {}, and set_error was called with {}", r.what, status_text(r.answer), status_text(r.left.status));
}
FLHAL_CASE("error.text.none_when_it_works", Profile::kSync, "FLP-017") {
  Device& device = ctx.device();
  take_error();
  {
    Slab slab(device, 4096);
    flhal_p_slab_v1 huge = slab_request(uint64_t{1} << 60, 64);
    auto serial = ctx.plugin().lock();
    device.table.memory_alloc(device.handle, &huge);
    LeftError left = take_error();
    FLHAL_EXPECT(!left.called, "set_error was called with \"{}\" by a call that answered FLHAL_EXHAUSTED; positive answers carry no text", left.text);
    uint32_t n = 0;
    device.table.device_count(ctx.handle(), &n);
    left = take_error();
    FLHAL_EXPECT(!left.called, "device_count answered FLHAL_OK and left the text \"{}\"", left.text);
  }
}
FLHAL_CASE("error.code.is_known", Profile::kSync, "FLP-020") {
  for (const Refusal& r : provoke(ctx)) FLHAL_EXPECT(known(r.answer), "{} answered the status {}, which status.h does not have", r.what, r.answer);
}
FLHAL_CASE("error.state.works_afterwards", Profile::kSync, "FLP-018") {
  Device& device = ctx.device();
  Slab slab(device, 10000);
  auto content = ctx.random_bytes(10000);
  slab.write(content);
  for (int i = 0; i < 20; ++i) provoke(ctx);
  expect_equal(slab.read(), content, "a slab from before 80 refused calls");
  Slab another(device, 10000);
  another.write(content);
  expect_equal(another.read(), content, "a slab from after 80 refused calls");
}
FLHAL_CASE("error.state.refusals_are_flat", Profile::kSync, "FLP-018 FLP-024") {
  provoke(ctx);
  uint64_t before = host_live_blocks();
  for (int i = 0; i < 20; ++i) provoke(ctx);
  FLHAL_EXPECT(host_live_blocks() == before, "80 refused calls leave {} blocks of host->alloc behind", host_live_blocks() - before);
}

}  // namespace flhal::conformance

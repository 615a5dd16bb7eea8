// conformance/areas/copy.cc: copies and fills that finish before they return.
//
// Idea: a slab and a model of it, a vector. The same operation is done to both, then the whole slab is compared, so that a
// byte too many is found as well as a byte too few.
#include <algorithm>
#include <cstring>

#include "runner/context.h"

namespace flhal::conformance {
namespace {

using Bytes = std::vector<uint8_t>;

enum class Way { kToDevice, kToHost, kOnDevice, kWithinSlab };
constexpr std::pair<const char*, Way> kWays[] = {{"to_device", Way::kToDevice}, {"to_host", Way::kToHost}, {"on_device", Way::kOnDevice}, {"within_slab", Way::kWithinSlab}};

// Two areas of `bytes` each, on the sides that `way` says, filled with random numbers; copies run between them.
struct Arena {
  Context& ctx;
  Way way;
  uint64_t bytes;
  Bytes source, target;                 // the model, and the host's memory where a side is the host
  std::unique_ptr<Slab> source_slab, target_slab;
  uint64_t target_base = 0;             // within_slab: the target is the slab's second half

  Arena(Context& c, Way w, uint64_t n) : ctx(c), way(w), bytes(n), source(c.random_bytes(n)), target(c.random_bytes(n)) {
    Device& device = ctx.device();
    if (way == Way::kWithinSlab) {
      source_slab = std::make_unique<Slab>(device, 2 * bytes);
      target_base = bytes;
      device.upload(*source_slab, 0, source.data(), bytes);
      device.upload(*source_slab, bytes, target.data(), bytes);
      return;
    }
    if (way != Way::kToDevice) {
      source_slab = std::make_unique<Slab>(device, bytes);
      source_slab->write(source);
    }
    if (way != Way::kToHost) {
      target_slab = std::make_unique<Slab>(device, bytes);
      target_slab->write(target);
    }
  }
  const Slab& target_side() const { return way == Way::kWithinSlab ? *source_slab : *target_slab; }

  // Copies and compares both whole sides.
  void copy(uint64_t to, uint64_t from, uint64_t n, uint64_t rows, uint64_t to_pitch, uint64_t from_pitch) {
    Bytes host_target = target;
    flhal_p_place dst = way == Way::kToHost ? host_place(host_target.data() + to) : target_side().place(target_base + to);
    flhal_p_place src = way == Way::kToDevice ? host_place(source.data() + from) : source_slab->place(from);
    flhal_p_copy_v1 what = {sizeof what, FLHAL_ST_COPY, nullptr, dst, src, n, rows, to_pitch, from_pitch};
    Bytes source_before = source;
    expect_ok(ctx.device().try_copy(nullptr, what), "copy");
    for (uint64_t r = 0; r < rows; ++r) std::memcpy(target.data() + to + r * to_pitch, source.data() + from + r * from_pitch, n);
    std::string text = fmt::format("copy of {} x {} bytes from offset {} to offset {} (pitches {} and {})", rows, n, from, to, from_pitch, to_pitch);
    if (way == Way::kWithinSlab) {
      Bytes both = source;
      both.insert(both.end(), target.begin(), target.end());
      expect_equal(source_slab->read(), both, "the slab after a " + text);
    } else {
      expect_equal(way == Way::kToHost ? host_target : target_slab->read(), target, "the target after a " + text);
      expect_equal(way == Way::kToDevice ? source : source_slab->read(), source_before, "the source after a " + text);
    }
  }
};

}  // namespace

FLHAL_CASES() {
  for (auto [name, way] : kWays) {
    for (uint64_t n : {1ull, 7ull, 64ull, 4096ull, 65537ull, (4ull << 20) + 13})
      add_case(fmt::format("copy.linear.{}.{}", name, n), Profile::kSync, "FLP-044", [way = way, n](Context& ctx) {
        Arena arena(ctx, way, n + 200);
        arena.copy(64, 64, n, 1, n, n);
      });
    for (auto [to, from] : {std::pair<uint64_t, uint64_t>(0, 1), {1, 0}, {3, 5}, {4096, 17}, {333, 4096}})
      add_case(fmt::format("copy.offset.{}.{}_{}", name, to, from), Profile::kSync, "FLP-045", [way = way, to = to, from = from](Context& ctx) {
        Arena arena(ctx, way, 16384);
        for (uint64_t n : {1, 16, 1001, 8000}) arena.copy(to, from, n, 1, n, n);
      });
    struct Shape { const char* name; uint64_t bytes, rows, to_pitch, from_pitch; };
    for (Shape s : {Shape{"both_pitches", 100, 37, 128, 160}, {"dense_target", 96, 20, 96, 200}, {"dense_source", 96, 20, 200, 96},
                    {"dense", 64, 50, 64, 64}, {"odd", 3, 111, 7, 5}, {"two_rows", 4000, 2, 4096, 5000}})
      add_case(fmt::format("copy.rows.{}.{}", name, s.name), Profile::kSync, "FLP-046 FLP-044", [way = way, s](Context& ctx) {
        uint64_t span = std::max(s.to_pitch, s.from_pitch) * s.rows + 64;
        Arena arena(ctx, way, span);
        arena.copy(16, 8, s.bytes, s.rows, s.to_pitch, s.from_pitch);
      });
    add_case(fmt::format("copy.rows.{}.one_row_has_no_pitch", name), Profile::kSync, "FLP-046", [way = way](Context& ctx) {
      Arena arena(ctx, way, 2000);
      arena.copy(8, 16, 1000, 1, 0, 0);
    });
    add_case(fmt::format("copy.empty.{}", name), Profile::kSync, "FLP-048", [way = way](Context& ctx) {
      Arena arena(ctx, way, 1000);
      arena.copy(0, 0, 0, 1, 0, 0);
      arena.copy(1000, 1000, 0, 1, 0, 0);     // the end of the slab is a place, too
      arena.copy(0, 0, 0, 5, 100, 100);
    });
    add_case(fmt::format("copy.random.{}", name), Profile::kSync, "FLP-044 FLP-045 FLP-046", [way = way](Context& ctx) {
      Arena arena(ctx, way, 30000);
      auto below = [&](uint64_t n) { return ctx.random()() % n; };
      for (int i = 0; i < 60; ++i) {
        uint64_t rows = 1 + below(20), n = below(30000 / rows / 2), to_pitch = n + below(30000 / rows - n - 1), from_pitch = n + below(30000 / rows - n - 1);
        uint64_t to = below(30000 - ((rows - 1) * to_pitch + n) + 1), from = below(30000 - ((rows - 1) * from_pitch + n) + 1);
        arena.copy(to, from, n, rows, to_pitch, from_pitch);
      }
    });
  }
  return true;
}

FLHAL_CASE("copy.done.source_may_change", Profile::kSync, "FLP-047 FLP-019") {
  // The host's memory is overwritten as soon as the call is back; a copy that is still under way would carry the new bytes.
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 8 << 20;
  Slab slab(device, kBytes);
  for (int i = 0; i < 5; ++i) {
    Bytes content = ctx.random_bytes(kBytes), original = content;
    device.upload(slab, 0, content.data(), kBytes);
    std::memset(content.data(), 0xdd, kBytes);
    expect_equal(slab.read(), original, "the slab, after the host's source was overwritten when copy had returned");
  }
}

FLHAL_CASE("copy.done.target_is_ready", Profile::kSync, "FLP-047") {
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 8 << 20;
  Slab slab(device, kBytes);
  Bytes content = ctx.random_bytes(kBytes), seen(kBytes);
  slab.write(content);
  for (int i = 0; i < 5; ++i) {
    std::memset(seen.data(), 0, kBytes);
    device.download(seen.data(), slab, 0, kBytes);
    expect_equal({seen.rbegin(), seen.rend()}, {content.rbegin(), content.rend()}, "the host's target, read from its end, when copy had returned");
  }
}

FLHAL_CASE("copy.done.chain", Profile::kSync, "FLP-047") {
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 2 << 20;
  Slab a(device, kBytes), b(device, kBytes), c(device, kBytes);
  Bytes content = ctx.random_bytes(kBytes), back(kBytes);
  a.write(content);
  device.move(b, 0, a, 0, kBytes);
  uint8_t zero = 0;
  device.fill(a, 0, kBytes, &zero, 1);
  device.move(c, 0, b, 0, kBytes);
  device.fill(b, 0, kBytes, &zero, 1);
  expect_equal(c.read(), content, "the last slab of a chain of copies");
}

FLHAL_CASE("copy.struct.longer", Profile::kSync, "FLP-006") {
  Device& device = ctx.device();
  Slab slab(device, 4096);
  Bytes content = ctx.random_bytes(4096);
  struct { flhal_p_copy_v1 copy; uint64_t behind[8]; } longer{};
  longer.copy = linear_copy(slab.place(0), host_place(content.data()), 4096);
  longer.copy.struct_size = sizeof longer;
  expect_ok(device.try_copy(nullptr, longer.copy), "copy with a longer struct");
  expect_equal(slab.read(), content, "the slab after a copy with a longer struct");
}

FLHAL_CASES() {
  for (uint32_t width : {1, 2, 4, 8, 16}) {
    for (uint64_t count : {1ull, 3ull, 1000ull, 65537ull})
      add_case(fmt::format("fill.pattern.{}.{}", width, count), Profile::kSync, "FLP-049", [width, count](Context& ctx) {
        Device& device = ctx.device();
        uint64_t n = width * count;
        Slab slab(device, n + 256);
        Bytes model = ctx.random_bytes(n + 256), pattern = ctx.random_bytes(16);
        slab.write(model);
        device.fill(slab, 128, n, pattern.data(), width);
        for (uint64_t i = 0; i < n; ++i) model[128 + i] = pattern[i % width];
        expect_equal(slab.read(), model, fmt::format("the slab after filling {} bytes with a pattern of {}", n, width));
      });
    // Aligned to the pattern, as core does it: tensors start at multiples of their element size.
    add_case(fmt::format("fill.offset.{}", width), Profile::kSync, "FLP-050 FLP-049", [width](Context& ctx) {
      Device& device = ctx.device();
      Slab slab(device, 8192);
      Bytes model = ctx.random_bytes(8192);
      slab.write(model);
      for (uint64_t offset : {0ull, 1ull, 5ull, 64ull, 257ull}) {
        Bytes pattern = ctx.random_bytes(16);
        uint64_t at = offset * width, n = 40 * width;
        device.fill(slab, at, n, pattern.data(), width);
        for (uint64_t i = 0; i < n; ++i) model[at + i] = pattern[i % width];
        expect_equal(slab.read(), model, fmt::format("the slab after filling {} bytes at offset {} with a pattern of {}", n, at, width));
      }
    });
  }
  return true;
}

FLHAL_CASE("fill.offset.odd", Profile::kSync, "FLP-050") {
  Device& device = ctx.device();
  Slab slab(device, 4096);
  Bytes model = ctx.random_bytes(4096);
  slab.write(model);
  for (uint64_t offset : {1, 3, 7, 1021}) {
    uint8_t pattern = static_cast<uint8_t>(0xb0 + offset);
    device.fill(slab, offset, 333, &pattern, 1);
    std::fill_n(model.begin() + static_cast<long>(offset), 333, pattern);
    expect_equal(slab.read(), model, fmt::format("the slab after filling 333 bytes at offset {}", offset));
  }
}

FLHAL_CASE("fill.empty.touches_nothing", Profile::kSync, "FLP-048") {
  Device& device = ctx.device();
  Slab slab(device, 1000);
  Bytes model = ctx.random_bytes(1000), pattern(16, 9);
  slab.write(model);
  for (uint32_t width : {1, 2, 4, 8, 16}) device.fill(slab, 0, 0, pattern.data(), width);
  device.fill(slab, 1000, 0, pattern.data(), 1);
  expect_equal(slab.read(), model, "the slab after fills of 0 bytes");
}

FLHAL_CASE("fill.large.16_mib", Profile::kSync, "FLP-049 FLP-047") {
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 16 << 20;
  Slab slab(device, kBytes);
  for (uint32_t width : {1, 4, 16}) {
    Bytes pattern = ctx.random_bytes(16), model(kBytes);
    device.fill(slab, 0, kBytes, pattern.data(), width);
    for (uint64_t i = 0; i < kBytes; ++i) model[i] = pattern[i % width];
    expect_equal(slab.read(), model, fmt::format("16 MiB after a fill with a pattern of {}", width));
  }
}

FLHAL_CASE("fill.done.pattern_may_change", Profile::kSync, "FLP-047 FLP-019") {
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 4 << 20;
  Slab slab(device, kBytes);
  for (int i = 0; i < 5; ++i) {
    uint64_t pattern = 0x1111111111111111ull * static_cast<uint64_t>(i + 1);
    device.fill(slab, 0, kBytes, &pattern, 8);
    pattern = ~uint64_t{0};
    expect_equal(slab.read(), Bytes(kBytes, static_cast<uint8_t>(0x11 * (i + 1))), "the slab, after the pattern's memory was overwritten when fill had returned");
  }
}

}  // namespace flhal::conformance

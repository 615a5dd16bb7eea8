// tests/fuzz/plugin_table.cc: a plugin that answers anything: its info, tables of any size with any tail, chains of
// extensions, counts, texts and device infos.
//
// What it gives are real functions and memory of the length it says, for nobody can check a pointer; all else is the input's.
// Tables lie in memory of exactly their size, so that AddressSanitizer sees a read behind it.
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "bytes.h"
#include "core/description_json.h"
#include "core/loader.h"

using namespace flhal;
using namespace flhal::fuzz;

struct flhal_p_plugin {};

namespace {

// What the scripted plugin lives on; one input at a time.
struct World {
  explicit World(Bytes b) : bytes(b) {}
  Bytes bytes;
  std::list<std::vector<uint64_t>> memory;   // lists do not move
  std::list<std::string> texts;
  flhal_p_plugin plugin;

  void* block(size_t size) { return memory.emplace_back((size + 7) / 8).data(); }
  const char* text() {
    const uint8_t n = bytes.byte();
    return n == 255 ? nullptr : texts.emplace_back(bytes.text(n % 40)).c_str();
  }
  // A number with many small, huge and odd values.
  uint64_t number() {
    switch (bytes.below(6)) {
      case 0: return 0;
      case 1: return 1ull << bytes.below(64);
      case 2: return ~0ull - bytes.byte();
      case 3: return bytes.number<uint64_t>();
      default: return bytes.byte();
    }
  }
  flhal_status status() {
    static constexpr flhal_status kSome[] = {0, 0, 0, 0, 0, 1, 2, 3, -1, -9, -13, -1000005};
    const uint32_t i = bytes.below(14);
    return i < 12 ? kSome[i] : bytes.number<int32_t>();
  }
  const void* chain() {
    flhal_link_v1* first = nullptr;
    const uint32_t n = bytes.below(8) == 0 ? bytes.below(80) : bytes.below(3);
    for (uint32_t i = 0; i < n; ++i) {
      auto* link = static_cast<flhal_link_v1*>(block(sizeof(flhal_link_v1)));
      *link = {static_cast<uint32_t>(sizeof *link), bytes.number<uint32_t>() & (i % 2 ? ~0u : 0x7fffffffu), first};
      first = link;
      if (n == 5 && i == 0) link->next = link;      // a chain that ends nowhere
    }
    return first;
  }
};
World* g_world = nullptr;

flhal_status init(const flhal_host_v1* host, const flhal_init_v1*, flhal_p_plugin** out) {
  if (g_world->bytes.below(8) == 0) host->set_error(g_world->status(), 0, g_world->text());
  *out = g_world->bytes.below(8) ? &g_world->plugin : nullptr;
  return g_world->status();
}
flhal_status device_count(flhal_p_plugin*, uint32_t* out) {
  *out = static_cast<uint32_t>(g_world->number());
  return g_world->status();
}
flhal_status device_info(flhal_p_plugin*, uint32_t i, flhal_p_device_info_v1* out) {
  Bytes& b = g_world->bytes;
  if (b.below(3) == 0) out->uuid[15] = static_cast<uint8_t>(i);
  else for (uint8_t& byte : out->uuid) byte = b.byte();
  out->chip = b.below(2) ? "chip" : g_world->text();
  for (const char** t : {&out->product, &out->vendor, &out->driver, &out->compute_capability, &out->pci_address, &out->fingerprint,
                         &out->dialects})
    *t = g_world->text();
  out->caps = g_world->number();
  out->memory_bytes = g_world->number();
  out->largest_slab_bytes = g_world->number();
  out->slab_alignment = g_world->number();
  out->queues = static_cast<uint32_t>(g_world->number());
  out->device_class = static_cast<uint32_t>(g_world->number());
  const uint32_t n = b.below(4) ? b.below(6) : b.byte() * 2u;
  auto* dtypes = static_cast<flhal_dtype*>(g_world->block(n * sizeof(flhal_dtype)));
  for (uint32_t d = 0; d < n; ++d) dtypes[d] = b.below(3) ? FLHAL_F32 : b.number<flhal_dtype>();
  out->storage_dtypes = b.below(8) ? dtypes : nullptr;
  out->n_storage_dtypes = n;
  if (b.below(16) == 0) reinterpret_cast<unsigned char*>(out)[sizeof *out + b.below(200)] = b.byte();   // past its end
  return g_world->status();
}
void shut_down(flhal_p_plugin*) {}
flhal_status any_slot() { return FLHAL_OK; }

// A table: head, `slots` pointers (each there or not), a tail of the input's bytes.
void* table(uint32_t type, uint32_t whole_bytes, const std::vector<void*>& known) {
  Bytes& b = g_world->bytes;
  const bool whole = b.below(2);
  const uint32_t size = whole ? whole_bytes : 16 + b.below(16) * 24 + (b.below(16) == 0 ? 70000 : 0) + b.below(9);
  auto* at = static_cast<char*>(g_world->block(size));
  auto* head = reinterpret_cast<flhal_link_v1*>(at);
  head->struct_size = b.below(16) ? size : std::min(size, b.number<uint32_t>());
  head->struct_type = b.below(16) ? type : b.number<uint32_t>();
  head->next = b.below(4) ? nullptr : g_world->chain();
  const bool all = b.below(3) != 0;
  for (uint32_t i = 0; i < known.size() && 16 + 8 * (i + 1) <= size; ++i) {
    void* slot = all || b.below(2) ? known[i] : nullptr;
    std::memcpy(at + 16 + 8 * i, &slot, sizeof slot);
  }
  for (uint32_t i = 16 + 8 * static_cast<uint32_t>(known.size()); i < size && !b.empty(); ++i) at[i] = static_cast<char>(b.byte());
  return at;
}

void* base_table() {
  std::vector<void*> slots(29, reinterpret_cast<void*>(any_slot));
  slots[0] = reinterpret_cast<void*>(init);
  slots[1] = reinterpret_cast<void*>(shut_down);
  slots[2] = reinterpret_cast<void*>(device_count);
  slots[3] = reinterpret_cast<void*>(device_info);
  return table(FLHAL_ST_TABLE, sizeof(flhal_plugin_table_v1), slots);
}
const void* optional_table(const char* name, uint32_t) {
  if (std::strcmp(name, "ops") != 0 || g_world->bytes.below(2) == 0) return nullptr;
  std::vector<void*> slots(5, reinterpret_cast<void*>(any_slot));
  slots[0] = reinterpret_cast<void*>(uintptr_t{g_world->bytes.byte()});   // op_set_minor and reserved
  return table(FLHAL_ST_OPS, sizeof(flhal_ops_v1), slots);
}

flhal_status entry(const flhal_host_v1*, flhal_plugin_info_v1* out) {
  Bytes& b = g_world->bytes;
  out->abi_minor = b.below(4) ? 0 : static_cast<uint32_t>(g_world->number());
  out->oldest_host_minor = b.below(4) ? 0 : static_cast<uint32_t>(g_world->number());
  out->id = b.below(4) ? "scripted" : g_world->text();
  out->version = g_world->text();
  out->build_id = g_world->text();
  out->vendor = g_world->text();
  out->flags = b.byte();
  out->sanitizer = b.below(8) ? 0 : b.byte();
  out->table = b.below(32) ? static_cast<const flhal_plugin_table_v1*>(base_table()) : nullptr;
  out->optional_table = b.below(8) ? optional_table : nullptr;
  if (b.below(32) == 0) reinterpret_cast<unsigned char*>(out)[sizeof *out + b.below(200)] = b.byte();
  return b.below(16) ? FLHAL_OK : g_world->status();
}

const PluginFile& library() {
  static const PluginFile& file = *[] {
    char address[32];
    std::snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(entry)));
    setenv("FLHAL_FUZZ_ENTRY", address, 1);
    auto* f = new PluginFile;
    Refusal refusal = inspect_plugin_file(FLHAL_FUZZ_SCRIPTED_PLUGIN, f);
    if (refusal) std::fprintf(stderr, "%s\n", refusal.sentence().c_str());
    FLHAL_MUST(!refusal);
    return f;
  }();
  return file;
}

bool no_slot_is_null(const Plugin& plugin) {
  void* slots[29];
  std::memcpy(slots, reinterpret_cast<const char*>(&plugin.table) + 16, sizeof slots);
  for (void* slot : slots)
    if (slot == nullptr) return false;
  return plugin.ops.plan_create && plugin.ops.plan_run && plugin.ops.plan_destroy && plugin.ops.op_describe;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world(Bytes(data, size));
  g_world = &world;
  Plugin plugin;
  Refusal refusal = load_library(library(), "", plugin);
  if (!refusal) {
    FLHAL_MUST(no_slot_is_null(plugin));
    refusal = init_plugin(plugin);
  }
  PluginDescription description;
  if (!refusal) refusal = describe_plugin(plugin, &description);
  if (!refusal) {
    PluginDescription again;
    const JsonOwner json = description_to_json(description);
    FLHAL_MUST(!description_from_json(json.get(), &again) && again.devices.size() == description.devices.size());
  }
  FLHAL_MUST(!refusal || (!refusal.reason.empty() && !refusal.remedy.empty()));
  shut_down_plugin(plugin);
  g_world = nullptr;
  return 0;
}

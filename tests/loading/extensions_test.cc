// tests/loading/extensions_test.cc: structs with something on `next` that a plugin does not know (plugin.h: FLHAL_ST_HOST).
// With the high bit of struct_type it may not be ignored: the slot refuses with a sentence. Without it, it is ignored.
#include <dlfcn.h>
#include <flhal/plugin.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

struct Link {
  uint32_t struct_size = sizeof(Link), struct_type = 0;
  const void* next = nullptr;
};

std::string g_error;
const flhal_host_v1 kHost = {
    sizeof(flhal_host_v1), FLHAL_ST_HOST, nullptr, 0, 0, [](int32_t, const char*) {},
    [](flhal_status, int64_t, const char* text) { g_error = text; },
    [](uint64_t bytes, uint64_t align) { return std::aligned_alloc(align < 64 ? 64 : align, (bytes + 63) / 64 * 64 + (align > 64 ? align : 0)); },
    [](void* p) { std::free(p); }, [](uint64_t, flhal_status) {}, [](const char*) -> const char* { return nullptr; }, []() -> uint64_t { return 0; }};

// A plugin taken without core, its first device opened.
struct Direct {
  const flhal_plugin_table_v1* table = nullptr;
  const flhal_ops_v1* ops = nullptr;
  flhal_p_plugin* plugin = nullptr;
  flhal_p_device* device = nullptr;
  flhal_plugin_info_v1 info{};

  explicit Direct(const std::string& id) {
    const std::string path = std::string(FLHAL_TEST_PLUGIN_DIR) + "/libflhal_plugin_" + id + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    auto entry = reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
    info.struct_size = sizeof info;
    info.struct_type = FLHAL_ST_PLUGIN_INFO;
    if (entry == nullptr || entry(&kHost, &info) != FLHAL_OK) return;
    table = info.table;
    if (info.optional_table) ops = static_cast<const flhal_ops_v1*>(info.optional_table("ops", 0));
  }
  flhal_status init(const void* next) {
    flhal_init_v1 start = {sizeof start, FLHAL_ST_INIT, next, 0, 0};
    return table->init(&kHost, &start, &plugin);
  }
  bool open() {
    uint32_t n = 0;
    return init(nullptr) == FLHAL_OK && table->device_count(plugin, &n) == FLHAL_OK && n > 0 && table->device_open(plugin, 0, &device) == FLHAL_OK;
  }
  ~Direct() {
    if (device) table->device_close(device);
    if (plugin) table->shutdown(plugin);
  }
};

void check_sentence(const char* slot) {
  INFO(g_error);
  CHECK_THAT(g_error, Catch::Contains(slot) && Catch::Contains("needs") && Catch::Contains("extension") && Catch::Contains("install a newer plugin"));
  g_error.clear();
}

}  // namespace

TEST_CASE("extensions: unknown ones that may be ignored are, needed ones are refused by every plugin", "[loading][abi][extensions]") {
  const std::string id = GENERATE(as<std::string>{}, "ram", "host", "mock", "opencl");
  if (!std::filesystem::exists(std::string(FLHAL_TEST_PLUGIN_DIR) + "/libflhal_plugin_" + id + ".so")) {
    WARN("skipped: the plugin " << id << " is not built");
    return;
  }
  DYNAMIC_SECTION(id) {
    Link needed, harmless;
    needed.struct_type = 0x80777777u;
    harmless.struct_type = 0x00777777u;
    Link behind = harmless;              // a needed one behind a harmless one
    behind.next = &needed;
    const Link* refused[] = {&needed, &behind};
    for (const Link* next : refused) {
      Direct first(id);
      REQUIRE(first.table != nullptr);
      CHECK(first.init(next) == FLHAL_E_UNSUPPORTED);
      CHECK(first.plugin == nullptr);
      check_sentence("init");
    }
    {
      Direct ignoring(id);
      const flhal_status started = ignoring.init(&harmless);
      if (id == "opencl" && started != FLHAL_OK) {
        WARN("skipped: the OpenCL plugin finds no device here: " << g_error);
        return;
      }
      CHECK(started == FLHAL_OK);
    }
    Direct d(id);
    REQUIRE(d.open());
    flhal_p_slab_v1 slab{};
    slab.struct_size = sizeof slab;
    slab.struct_type = FLHAL_ST_SLAB;
    slab.bytes = 4096;
    slab.align = 256;
    slab.next = &needed;
    CHECK(d.table->memory_alloc(d.device, &slab) == FLHAL_E_UNSUPPORTED);
    check_sentence("memory_alloc");
    slab.next = &harmless;
    REQUIRE(d.table->memory_alloc(d.device, &slab) == FLHAL_OK);

    char bytes[64], back[64] = {};
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<char>(i);
    flhal_p_copy_v1 up{};
    up.struct_size = sizeof up;
    up.struct_type = FLHAL_ST_COPY;
    up.dst.memory = slab.memory;
    up.src.host = bytes;
    up.bytes = up.dst_pitch = up.src_pitch = sizeof bytes;
    up.rows = 1;
    up.next = &needed;
    CHECK(d.table->copy(d.device, nullptr, &up) == FLHAL_E_UNSUPPORTED);
    check_sentence("copy");
    up.next = &harmless;
    REQUIRE(d.table->copy(d.device, nullptr, &up) == FLHAL_OK);
    flhal_p_copy_v1 down = up;
    std::swap(down.dst, down.src);
    down.dst.host = back;
    down.src.host = nullptr;
    REQUIRE(d.table->copy(d.device, nullptr, &down) == FLHAL_OK);
    CHECK(std::memcmp(bytes, back, sizeof bytes) == 0);

    if (d.table->module_load) {
      flhal_p_source_v1 source{};
      source.struct_size = sizeof source;
      source.struct_type = FLHAL_ST_SOURCE;
      source.dialect = "none";
      source.next = &needed;
      flhal_p_module* module = nullptr;
      CHECK(d.table->module_load(d.device, &source, &module) == FLHAL_E_UNSUPPORTED);
      check_sentence("module_load");
    }
    if (d.ops) {
      int64_t sizes[1] = {4}, strides[1] = {1};
      flhal_tensor_v1 tensors[3] = {};
      for (flhal_tensor_v1& t : tensors) {
        t.memory = slab.memory;
        t.address = slab.address;
        t.extent = 16;
        t.sizes = sizes;
        t.strides = strides;
        t.dtype = FLHAL_F32;
        t.rank = 1;
      }
      flhal_op_call_v1 call{};
      call.struct_size = sizeof call;
      call.struct_type = FLHAL_ST_OP_CALL;
      call.name = "add";
      call.op = 0;
      call.tensors = tensors;
      call.tensor_stride = sizeof tensors[0];
      call.n_outputs = 1;
      call.n_inputs = 2;
      call.attr_stride = sizeof(flhal_attr_v1);
      call.compute_dtype = FLHAL_F32;
      call.next = &needed;
      flhal_plan_info_v1 info{};
      info.struct_size = sizeof info;
      info.struct_type = FLHAL_ST_PLAN_INFO;
      flhal_p_plan* plan = nullptr;
      CHECK(d.ops->plan_create(d.device, &call, &info, &plan) == FLHAL_DECLINED);
      REQUIRE(info.reason != nullptr);
      CHECK_THAT(info.reason, Catch::Contains("needs an extension"));
      call.next = &harmless;
      info.reason = nullptr;
      const flhal_status answer = d.ops->plan_create(d.device, &call, &info, &plan);
      if (answer == FLHAL_OK) d.ops->plan_destroy(plan);
      else CHECK_THAT(std::string(info.reason ? info.reason : ""), !Catch::Contains("extension"));
    }
    d.table->memory_free(d.device, slab.memory);
  }
}

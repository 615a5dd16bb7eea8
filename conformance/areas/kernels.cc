// conformance/areas/kernels.cc: the kernels as code of this process and as OpenCL C.
#include "areas/kernels.h"

namespace flhal::conformance {
namespace {

// count_group(uint* out): out[g] += 1
void count_group(const void* const* argv, uint64_t first, uint64_t count) {
  auto* out = static_cast<uint32_t*>(const_cast<void*>(argv[0]));
  for (uint64_t g = first; g < first + count; ++g) ++out[g];
}
// scale_add(float* out, float* a, float* b, float s): out = s * a + b
void scale_add(const void* const* argv, uint64_t first, uint64_t count) {
  auto* out = static_cast<float*>(const_cast<void*>(argv[0]));
  auto *a = static_cast<const float*>(argv[1]), *b = static_cast<const float*>(argv[2]);
  float s;
  std::memcpy(&s, argv[3], 4);
  for (uint64_t g = first; g < first + count; ++g) out[g] = s * a[g] + b[g];
}
// store_values(long* out, char, short, int, long, int4): one number each; the vector gives four
void store_values(const void* const* argv, uint64_t, uint64_t) {
  auto* out = static_cast<int64_t*>(const_cast<void*>(argv[0]));
  int8_t a; int16_t b; int32_t c, e[4]; int64_t d;
  std::memcpy(&a, argv[1], 1), std::memcpy(&b, argv[2], 2), std::memcpy(&c, argv[3], 4), std::memcpy(&d, argv[4], 8), std::memcpy(e, argv[5], 16);
  out[0] = a, out[1] = b, out[2] = c, out[3] = d;
  for (int i = 0; i < 4; ++i) out[4 + i] = e[i];
}
// weigh_16(int* out, 16 ints): the sum of (i + 1) * value i
void weigh_16(const void* const* argv, uint64_t, uint64_t) {
  auto* out = static_cast<int32_t*>(const_cast<void*>(argv[0]));
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    int32_t v;
    std::memcpy(&v, argv[1 + i], 4);
    sum += (i + 1) * v;
  }
  *out = sum;
}

constexpr flhal_host_function kFunctions[] = {{"count_group", count_group}, {"scale_add", scale_add}, {"store_values", store_values}, {"weigh_16", weigh_16}};
constexpr flhal_host_module kHostModule = {sizeof(flhal_host_module), 4, kFunctions};

constexpr char kOpenClText[] = R"cl(
__kernel void count_group(__global uint* out) { out[get_group_id(0)] += 1; }
__kernel void scale_add(__global float* out, __global const float* a, __global const float* b, float s) {
  size_t g = get_group_id(0);
  out[g] = s * a[g] + b[g];
}
__kernel void store_values(__global long* out, char a, short b, int c, long d, int4 e) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = d;
  out[4] = e.x; out[5] = e.y; out[6] = e.z; out[7] = e.w;
}
__kernel void weigh_16(__global int* out, int a0, int a1, int a2, int a3, int a4, int a5, int a6, int a7, int a8, int a9, int a10,
                       int a11, int a12, int a13, int a14, int a15) {
  *out = a0 + 2 * a1 + 3 * a2 + 4 * a3 + 5 * a4 + 6 * a5 + 7 * a6 + 8 * a7 + 9 * a8 + 10 * a9 + 11 * a10 + 12 * a11 + 13 * a12 +
         14 * a13 + 15 * a14 + 16 * a15;
}
__kernel void through_local(__global uint* out, __local uint* room) {
  room[get_local_id(0)] = (uint)get_global_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = room[get_local_size(0) - 1 - get_local_id(0)];
}
__kernel void three_dimensions(__global uint* out) {
  out[(get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0)] += 1;
}
)cl";

}  // namespace

Source kernel_source(Context& ctx, Device& device) {
  ctx.need_kernels();
  std::string words = device.info.dialects != nullptr ? device.info.dialects : "", word;
  for (size_t at = 0; at <= words.size(); at += word.size() + 1) {
    word = words.substr(at, words.find(' ', at) - at);
    if (word == FLHAL_DIALECT_HOST) return {word, &kHostModule, sizeof kHostModule, true};
    if (word.rfind("opencl-c", 0) == 0) return {word, kOpenClText, sizeof kOpenClText - 1, false};
  }
  not_supported(fmt::format("this suite writes flhal-host-1 and OpenCL C; the chip takes \"{}\"", words));
}

Module::Module(Context& ctx, Device& d) : device(d), source(kernel_source(ctx, d)) {
  char log[4096] = "";
  flhal_p_source_v1 what{sizeof what, FLHAL_ST_SOURCE, nullptr, source.dialect.c_str(), source.data, source.bytes, "", log, sizeof log};
  auto serial = device.plugin.lock();
  flhal_status answer = device.table.module_load(device.handle, &what, &module);
  log[sizeof log - 1] = 0;
  if (answer == FLHAL_E_BUILD) fail(fmt::format("module_load of a correct text in {} answered FLHAL_E_BUILD; its log: {}", source.dialect, log));
  expect_ok(answer, "module_load");
  FLHAL_EXPECT(module != nullptr, "module_load answered FLHAL_OK and left the handle NULL");
}
Module::~Module() {
  if (module == nullptr) return;
  auto serial = device.plugin.lock();
  device.table.module_unload(module);
}
flhal_p_function* Module::get(const char* name) const {
  flhal_p_function* function = nullptr;
  auto serial = device.plugin.lock();
  expect_ok(device.table.function_get(module, name, &function), "function_get");
  FLHAL_EXPECT(function != nullptr, "function_get answered FLHAL_OK and left the handle NULL");
  return function;
}

Arguments& Arguments::memory(const Slab& slab, uint64_t offset) {
  uint64_t address = slab.made.address != 0 ? slab.made.address + offset : 0;
  args_.push_back({FLHAL_ARG_MEMORY, 0, nullptr, slab.made.memory, offset, address});
  return *this;
}
Arguments& Arguments::bytes(const void* p, uint32_t n) {
  values_.push_back(std::make_unique<uint64_t[]>((n + 7) / 8 + 1));
  std::memcpy(values_.back().get(), p, n);
  args_.push_back({FLHAL_ARG_VALUE, n, values_.back().get(), nullptr, 0, 0});
  return *this;
}
Arguments& Arguments::local(uint32_t n) {
  args_.push_back({FLHAL_ARG_LOCAL, n, nullptr, nullptr, 0, 0});
  return *this;
}

flhal_p_launch_v1 launch_of(flhal_p_function* function, uint64_t groups, const Arguments& arguments) {
  flhal_p_launch_v1 l{};
  l.struct_size = sizeof l;
  l.struct_type = FLHAL_ST_LAUNCH;
  l.function = function;
  l.groups[0] = groups;
  l.groups[1] = l.groups[2] = 1;
  l.group_size[0] = l.group_size[1] = l.group_size[2] = 1;
  l.args = arguments.data();
  l.n_args = arguments.size();
  l.arg_stride = sizeof(flhal_p_arg);
  return l;
}
void launch(Device& device, flhal_p_function* function, uint64_t groups, const Arguments& arguments, flhal_p_stream* stream) {
  flhal_p_launch_v1 l = launch_of(function, groups, arguments);
  auto serial = device.plugin.lock();
  expect_ok(device.table.launch(device.handle, stream, &l), "launch");
}

}  // namespace flhal::conformance

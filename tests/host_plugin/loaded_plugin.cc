// tests/host_plugin/loaded_plugin.cc: opening the library, test tensors, one planned call.
#include "host_plugin/loaded_plugin.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <random>

namespace host_test {
namespace {

std::mutex error_mutex;
std::string error_text;

void log(int32_t, const char*) {}
void set_error(flhal_status, int64_t, const char* text) {
  std::lock_guard lock(error_mutex);
  error_text = text;
}
void* alloc(uint64_t bytes, uint64_t align) { return std::aligned_alloc(align, (bytes + align - 1) / align * align); }
void notify(uint64_t, flhal_status) {}
const char* config(const char*) { return nullptr; }
uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}
const flhal_host_v1 kHost = {sizeof(flhal_host_v1), FLHAL_ST_HOST, nullptr, FLHAL_PLUGIN_ABI_MINOR, 0,
                             log, set_error, alloc, std::free, notify, config, now_ns};

constexpr unsigned char kGuard = 0xa5;
constexpr size_t kGuardBytes = 64;

double read(const unsigned char* p, flhal_dtype t) {
  if (t == FLHAL_F32) { float v; std::memcpy(&v, p, 4); return v; }
  if (t == FLHAL_F64) { double v; std::memcpy(&v, p, 8); return v; }
  if (t == FLHAL_I64) { int64_t v; std::memcpy(&v, p, 8); return static_cast<double>(v); }
  if (t == FLHAL_BF16) {
    uint16_t h; std::memcpy(&h, p, 2);
    uint32_t b = static_cast<uint32_t>(h) << 16;
    float v; std::memcpy(&v, &b, 4); return v;
  }
  FAIL("test tensors have no such dtype");
  return 0;
}

void write(unsigned char* p, flhal_dtype t, double value) {
  if (t == FLHAL_F32) { float v = static_cast<float>(value); std::memcpy(p, &v, 4); }
  else if (t == FLHAL_F64) std::memcpy(p, &value, 8);
  else if (t == FLHAL_I64) { int64_t v = static_cast<int64_t>(value); std::memcpy(p, &v, 8); }
  else if (t == FLHAL_BF16) {
    float v = static_cast<float>(value);
    uint32_t b; std::memcpy(&b, &v, 4);
    b += 0x7fffu + (b >> 16 & 1);
    uint16_t h = static_cast<uint16_t>(b >> 16); std::memcpy(p, &h, 2);
  } else FAIL("test tensors have no such dtype");
}

}  // namespace

flhal_plugin_v1_fn LoadedPlugin::entry() {
  static void* library = dlopen(FLHAL_TEST_HOST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  INFO(FLHAL_TEST_HOST_PLUGIN);
  REQUIRE(library);
  auto fn = reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
  REQUIRE(fn);
  return fn;
}
const flhal_host_v1* LoadedPlugin::host() { return &kHost; }
std::string LoadedPlugin::last_error() {
  std::lock_guard lock(error_mutex);
  return error_text;
}

LoadedPlugin::LoadedPlugin() {
  info.struct_size = sizeof info;
  REQUIRE(entry()(host(), &info) == FLHAL_OK);
  table = info.table;
  ops = static_cast<const flhal_ops_v1*>(info.optional_table("ops", 0));
  flhal_init_v1 init{sizeof init, FLHAL_ST_INIT, nullptr, 0, 0};
  REQUIRE(table->init(host(), &init, &plugin) == FLHAL_OK);
  REQUIRE(table->device_open(plugin, 0, &device) == FLHAL_OK);
}

LoadedPlugin::~LoadedPlugin() {
  if (device) table->device_close(device);
  if (plugin) table->shutdown(plugin);
}

Tensor::Tensor(flhal_dtype dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides)
    : dtype_(dtype), sizes_(std::move(sizes)), strides_(std::move(strides)) {
  if (strides_.empty()) {
    strides_.resize(sizes_.size());
    int64_t next = 1;
    for (size_t d = sizes_.size(); d-- > 0;) strides_[d] = next, next *= std::max<int64_t>(sizes_[d], 1);
  }
  int64_t last = 0;
  for (size_t d = 0; d < sizes_.size(); ++d) last += (sizes_[d] - 1) * strides_[d];
  const size_t need = count() == 0 ? 0 : static_cast<size_t>(last + 1) * FLHAL_DTYPE_BYTES(dtype_);
  bytes_.assign(need + 2 * kGuardBytes + 64, kGuard);
  first_ = kGuardBytes;
  // Only what the view reaches is not guard: gaps between strided elements stay guarded too.
  for (int64_t i = 0; i < count(); ++i) set(i, 0);
}

Tensor Tensor::absent() {
  Tensor t(FLHAL_F32, {0});
  t.absent_ = true;
  return t;
}

flhal_tensor_v1 Tensor::view() const {
  flhal_tensor_v1 v{};
  if (absent_) {
    v.flags = FLHAL_TENSOR_ABSENT;
    return v;
  }
  v.address = reinterpret_cast<uint64_t>(bytes_.data() + first_);
  v.extent = bytes_.size() - 2 * kGuardBytes - 64;
  v.sizes = sizes_.data(), v.strides = strides_.data();
  v.dtype = dtype_, v.rank = static_cast<uint16_t>(sizes_.size());
  return v;
}

int64_t Tensor::count() const {
  int64_t n = 1;
  for (int64_t s : sizes_) n *= s;
  return n;
}
int64_t Tensor::place(int64_t i) const {
  int64_t at = 0;
  for (size_t d = sizes_.size(); d-- > 0; i /= sizes_[d]) at += i % sizes_[d] * strides_[d];
  return at;
}
double Tensor::at(int64_t i) const { return read(bytes_.data() + first_ + place(i) * FLHAL_DTYPE_BYTES(dtype_), dtype_); }
void Tensor::set(int64_t i, double value) { write(bytes_.data() + first_ + place(i) * FLHAL_DTYPE_BYTES(dtype_), dtype_, value); }

void Tensor::fill_random(uint32_t seed, double scale) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, scale);
  for (int64_t i = 0; i < count(); ++i) set(i, normal(engine));
}

bool Tensor::guards_intact() const {
  std::vector<char> reached(bytes_.size(), 0);
  for (int64_t i = 0; i < count(); ++i)
    for (size_t b = 0; b < FLHAL_DTYPE_BYTES(dtype_); ++b) reached[first_ + place(i) * FLHAL_DTYPE_BYTES(dtype_) + b] = 1;
  for (size_t i = 0; i < bytes_.size(); ++i)
    if (!reached[i] && bytes_[i] != kGuard) return false;
  return true;
}

Attrs& Attrs::number(uint32_t key, double v) {
  flhal_attr_v1 a{};
  a.key = key, a.kind = FLHAL_ATTR_FLOAT, a.v.f = v;
  list.push_back(a);
  return *this;
}
Attrs& Attrs::integer(uint32_t key, int64_t v) {
  flhal_attr_v1 a{};
  a.key = key, a.kind = FLHAL_ATTR_INT, a.v.i = v;
  list.push_back(a);
  return *this;
}
Attrs& Attrs::ints(uint32_t key, std::vector<int64_t> v) {
  flhal_attr_v1 a{};
  a.key = key, a.kind = FLHAL_ATTR_INTS, a.count = static_cast<uint32_t>(v.size());
  list.push_back(a);
  arrays.push_back(std::move(v));
  return *this;
}

RunResult run_op(LoadedPlugin& p, uint32_t op, const char* name, const std::vector<const Tensor*>& operands,
                 uint32_t n_outputs, Attrs attrs, int runs) {
  size_t next_array = 0;
  for (flhal_attr_v1& a : attrs.list)
    if (a.kind == FLHAL_ATTR_INTS) a.v.p = attrs.arrays[next_array++].data();
  std::vector<flhal_tensor_v1> views;
  for (const Tensor* t : operands) views.push_back(t->view());
  flhal_op_call_v1 call{};
  call.struct_size = sizeof call, call.struct_type = FLHAL_ST_OP_CALL;
  call.op = op, call.op_version = 1, call.name = name;
  call.tensors = views.data(), call.tensor_stride = sizeof(flhal_tensor_v1);
  call.n_outputs = n_outputs, call.n_inputs = static_cast<uint32_t>(views.size()) - n_outputs, call.n_groups = views.size();
  call.attrs = attrs.list.data(), call.attr_stride = sizeof(flhal_attr_v1), call.n_attrs = attrs.list.size();
  call.compute_dtype = views[0].dtype;

  RunResult result;
  flhal_p_plan* plan = nullptr;
  result.info.struct_size = sizeof result.info, result.info.struct_type = FLHAL_ST_PLAN_INFO;
  REQUIRE(p.ops);
  result.created = p.ops->plan_create(p.device, &call, &result.info, &plan);
  if (result.info.reason) result.reason = result.info.reason;
  if (result.created != FLHAL_OK) return result;
  std::vector<unsigned char> workspace(result.info.workspace_bytes + 128, 0x5a);
  unsigned char* base = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  flhal_p_place place{nullptr, 0, base};
  for (int i = 0; i < runs && result.ran == FLHAL_OK; ++i)
    result.ran = p.ops->plan_run(plan, nullptr, &call, result.info.workspace_bytes ? &place : nullptr);
  for (size_t i = result.info.workspace_bytes; base + i < workspace.data() + workspace.size(); ++i)
    if (base[i] != 0x5a) FAIL("the plan wrote past the workspace it asked for");
  p.ops->plan_destroy(plan);
  for (const Tensor* t : operands) CHECK(t->guards_intact());
  return result;
}

}  // namespace host_test

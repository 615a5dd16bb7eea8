// conformance/runner/plugin.cc: loading, starting and the devices of the plugin under test.
#include "runner/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace flhal::conformance {

std::string status_text(flhal_status status) {
  switch (status) {
#define NAME(code) case FLHAL_##code: return fmt::format("FLHAL_" #code " ({})", status);
    NAME(OK) NAME(NOT_READY) NAME(DECLINED) NAME(EXHAUSTED) NAME(E_INVALID) NAME(E_UNSUPPORTED) NAME(E_ABI)
    NAME(E_HOST_MEMORY) NAME(E_BUILD) NAME(E_TIMEOUT) NAME(E_OP_FAILED) NAME(E_DEVICE_LOST) NAME(E_INTERNAL)
    NAME(E_OUT_OF_MEMORY) NAME(E_FORKED) NAME(E_NOT_FOUND) NAME(E_DENIED)
#undef NAME
    default: return fmt::format("the status {}", status);
  }
}

void expect_ok(flhal_status status, const char* slot) {
  LeftError left = take_error();
  if (status == FLHAL_OK) return;
  std::string said = left.called ? fmt::format("; the plugin says: {}", left.text) : "; the plugin says nothing";
  std::string text = fmt::format("{} answered {} where it must work{}", slot, status_text(status), said);
  if (status == FLHAL_E_DEVICE_LOST) throw DeviceLost{text};
  fail(text);
}

void expect_refused(flhal_status status, flhal_status wanted, const std::string& what) {
  LeftError left = take_error();
  if (wanted == kAnyFailure)
    FLHAL_EXPECT(status < 0, "{} was answered with {}; it has to be refused with a negative status", what, status_text(status));
  else
    FLHAL_EXPECT(status == wanted, "{} was answered with {}; it has to be refused with {}", what, status_text(status), status_text(wanted));
  FLHAL_EXPECT(left.called && !left.text.empty(),
               "{} was refused with {} without a sentence; call host->set_error before a negative answer", what, status_text(status));
  FLHAL_EXPECT(left.status == status, "{} was refused with {}, but set_error was called with {}", what, status_text(status),
               status_text(left.status));
}

flhal_plugin_info_v1 empty_plugin_info() {
  flhal_plugin_info_v1 info{};
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_PLUGIN_INFO;
  return info;
}
flhal_init_v1 plain_init() { return {sizeof(flhal_init_v1), FLHAL_ST_INIT, nullptr, FLHAL_PLUGIN_ABI_MINOR, 0}; }
flhal_p_device_info_v1 empty_device_info() {
  flhal_p_device_info_v1 info{};
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_DEVICE_INFO;
  return info;
}

Plugin::Plugin(const std::string& path) : path_(path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(fmt::format("the library does not load: {}", dlerror()));
  entry_ = reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
  if (entry_ == nullptr) fail(fmt::format("{} has no symbol flhal_plugin_v1; is it a plugin, and is the symbol exported?", path));
  info_ = empty_plugin_info();
  host_life_begins();   // the entry may call the host
  expect_ok(entry_(host_table(), &info_), "flhal_plugin_v1");
  if (info_.table == nullptr) fail("flhal_plugin_v1 left `table` NULL");
  if (info_.table->struct_type != FLHAL_ST_TABLE || info_.table->struct_size < 16)
    fail(fmt::format("the table has struct_type {} and struct_size {}; it begins with sizeof and FLHAL_ST_TABLE ({})",
                     info_.table->struct_type, info_.table->struct_size, FLHAL_ST_TABLE));
  std::memcpy(&table_, info_.table, std::min<size_t>(info_.table->struct_size, sizeof table_));
  if (info_.optional_table != nullptr) ops_ = static_cast<const flhal_ops_v1*>(info_.optional_table("ops", 0));
}

std::unique_lock<std::mutex> Plugin::lock() const {
  return serialized() ? std::unique_lock<std::mutex>(mutex_) : std::unique_lock<std::mutex>();
}

flhal_p_plugin* Plugin::start() const {
  if (table_.init == nullptr || table_.shutdown == nullptr) fail("the slots init and shutdown are empty");
  flhal_init_v1 start = plain_init();
  flhal_p_plugin* handle = nullptr;
  host_life_begins();
  auto serial = lock();
  expect_ok(table_.init(host_table(), &start, &handle), "init");
  FLHAL_EXPECT(handle != nullptr, "init answered FLHAL_OK and left the handle NULL");
  return handle;
}

void Plugin::stop(flhal_p_plugin* handle) const {
  {
    auto serial = lock();
    table_.shutdown(handle);
  }
  host_life_ends();
}

Device::Device(const Plugin& p, flhal_p_plugin* plugin_handle, uint32_t i)
    : plugin(p), table(p.table()), index(i), info(empty_device_info()) {
  uint32_t count = 0;
  auto serial = plugin.lock();
  expect_ok(table.device_count(plugin_handle, &count), "device_count");
  FLHAL_EXPECT(count > 0, "the plugin finds no device on this machine; the suite needs one");
  FLHAL_EXPECT(i < count, "internal: device {} of {}", i, count);
  expect_ok(table.device_info(plugin_handle, i, &info), "device_info");
  expect_ok(table.device_open(plugin_handle, i, &handle), "device_open");
  FLHAL_EXPECT(handle != nullptr, "device_open answered FLHAL_OK and left the handle NULL");
}

Device::~Device() {
  if (handle == nullptr) return;
  auto serial = plugin.lock();
  table.device_close(handle);
}

bool Device::speaks(const char* prefix) const {
  if (info.dialects == nullptr) return false;
  std::string words = std::string(" ") + info.dialects;
  return words.find(std::string(" ") + prefix) != std::string::npos;
}

uint64_t Device::slab_bytes_max() const {
  uint64_t most = info.largest_slab_bytes != 0 ? info.largest_slab_bytes : info.memory_bytes;
  return most != 0 ? most : uint64_t{1} << 30;
}

uint64_t Device::slab_bytes_free() const {
  uint64_t free_bytes = 0, total = 0;
  if (table.memory_budget == nullptr) return slab_bytes_max();
  auto serial = plugin.lock();
  expect_ok(table.memory_budget(handle, &free_bytes, &total), "memory_budget");
  return std::min(slab_bytes_max(), free_bytes / 2);
}

flhal_p_copy_v1 linear_copy(flhal_p_place dst, flhal_p_place src, uint64_t bytes) {
  return {sizeof(flhal_p_copy_v1), FLHAL_ST_COPY, nullptr, dst, src, bytes, 1, bytes, bytes};
}

flhal_status Device::try_copy(flhal_p_stream* stream, const flhal_p_copy_v1& what) {
  auto serial = plugin.lock();
  return table.copy(handle, stream, &what);
}
void Device::upload(const Slab& to, uint64_t offset, const void* from, uint64_t bytes, flhal_p_stream* stream) {
  expect_ok(try_copy(stream, linear_copy(to.place(offset), host_place(from), bytes)), "copy from host to device");
}
void Device::download(void* to, const Slab& from, uint64_t offset, uint64_t bytes, flhal_p_stream* stream) {
  expect_ok(try_copy(stream, linear_copy(host_place(to), from.place(offset), bytes)), "copy from device to host");
}
void Device::move(const Slab& to, uint64_t to_offset, const Slab& from, uint64_t from_offset, uint64_t bytes, flhal_p_stream* stream) {
  expect_ok(try_copy(stream, linear_copy(to.place(to_offset), from.place(from_offset), bytes)), "copy from device to device");
}
void Device::fill(const Slab& to, uint64_t offset, uint64_t bytes, const void* pattern, uint32_t pattern_bytes, flhal_p_stream* stream) {
  flhal_p_place place = to.place(offset);
  auto serial = plugin.lock();
  expect_ok(table.fill(handle, stream, &place, bytes, pattern, pattern_bytes), "fill");
}

flhal_p_slab_v1 slab_request(uint64_t bytes, uint64_t align, uint32_t kind) {
  flhal_p_slab_v1 slab{};
  slab.struct_size = sizeof slab;
  slab.struct_type = FLHAL_ST_SLAB;
  slab.bytes = bytes;
  slab.align = align;
  slab.kind = kind;
  return slab;
}

// Core always names an alignment: the device's own when the caller needs none.
Slab::Slab(Device& d, uint64_t bytes, uint64_t align, uint32_t kind)
    : device(d), made(slab_request(bytes, align != 0 ? align : std::max<uint64_t>(d.info.slab_alignment, 64), kind)) {
  auto serial = device.plugin.lock();
  flhal_status answer = device.table.memory_alloc(device.handle, &made);
  if (answer == FLHAL_EXHAUSTED)
    fail(fmt::format("memory_alloc of {} bytes answered FLHAL_EXHAUSTED on a device of {} bytes that has nothing else allocated here",
                     bytes, device.info.memory_bytes));
  expect_ok(answer, "memory_alloc");
  FLHAL_EXPECT(made.memory != nullptr, "memory_alloc of {} bytes answered FLHAL_OK and left `memory` NULL", bytes);
}
Slab::Slab(Device& d, const flhal_p_slab_v1& answered) : device(d), made(answered) {}
Slab::~Slab() { free(); }

void Slab::free() {
  if (made.memory == nullptr) return;
  auto serial = device.plugin.lock();
  device.table.memory_free(device.handle, made.memory);
  made.memory = nullptr;
}
std::vector<uint8_t> Slab::read() const {
  std::vector<uint8_t> content(made.bytes, 0xee);
  device.download(content.data(), *this, 0, content.size());
  return content;
}
void Slab::write(const std::vector<uint8_t>& content) { device.upload(*this, 0, content.data(), content.size()); }

}  // namespace flhal::conformance

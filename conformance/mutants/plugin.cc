// conformance/mutants/plugin.cc: loading the reference plugin, and the entry of the changed one.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "mutant.h"

namespace flhal::mutants {

const flhal_host_v1* host = nullptr;
flhal_plugin_table_v1 base{}, table{};
flhal_ops_v1 base_ops{}, ops{};
flhal_plugin_info_v1 info{};
flhal_status (*before_entry)(const flhal_plugin_info_v1*) = nullptr;
void (*after_entry)(flhal_plugin_info_v1*) = nullptr;

namespace {

std::map<std::string, void (*)()>& mutations() {
  static std::map<std::string, void (*)()> all;
  return all;
}

const void* (*base_optional_table)(const char*, uint32_t) = nullptr;

const void* optional_table(const char* name, uint32_t oldest) {
  if (std::strcmp(name, "ops") == 0) return base_ops.struct_size != 0 ? &ops : nullptr;
  return base_optional_table(name, oldest);
}

std::string load() {
  const char *path = std::getenv("FLHAL_MUTANT_BASE"), *name = std::getenv("FLHAL_MUTANT");
  if (path == nullptr || name == nullptr) return "FLHAL_MUTANT_BASE names the plugin to change, FLHAL_MUTANT the change; flhal-conformance --mutants sets both";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  auto entry = reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
  if (entry == nullptr) return std::string(path) + " is no plugin";
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_PLUGIN_INFO;
  if (entry(host, &info) != FLHAL_OK) return std::string(path) + " refused to answer";
  std::memcpy(&base, info.table, std::min<size_t>(info.table->struct_size, sizeof base));
  if (info.optional_table != nullptr) {
    base_optional_table = info.optional_table;
    if (auto* given = static_cast<const flhal_ops_v1*>(info.optional_table("ops", 0))) base_ops = *given;
    info.optional_table = optional_table;
  }
  table = base;
  ops = base_ops;
  info.table = &table;
  if (std::strcmp(name, "none") == 0) return "";
  auto at = mutations().find(name);
  if (at == mutations().end()) return std::string("FLHAL_MUTANT=") + name + ": there is no such mutation";
  at->second();
  return "";
}

struct Later { std::function<void(char*)> work; };
void run_later(const void* const* argv, uint64_t, uint64_t) {
  Later* later;
  std::memcpy(&later, argv[0], sizeof later);
  later->work(static_cast<char*>(const_cast<void*>(argv[1])));
  delete later;
}
constexpr flhal_host_function kRunLater[] = {{"run_later", run_later}};
constexpr flhal_host_module kModule = {sizeof(flhal_host_module), 1, kRunLater};

struct Loaded { flhal_p_module* module; flhal_p_function* function; };
std::mutex g_mutex;
std::map<Device, Loaded> g_loaded;

flhal_p_function* run_later_on(Device device) {
  std::lock_guard lock(g_mutex);
  auto at = g_loaded.find(device);
  if (at != g_loaded.end()) return at->second.function;
  Loaded l{};
  flhal_p_source_v1 source{sizeof source, FLHAL_ST_SOURCE, nullptr, FLHAL_DIALECT_HOST, &kModule, sizeof kModule, "", nullptr, 0};
  if (base.module_load(device, &source, &l.module) != FLHAL_OK || base.function_get(l.module, "run_later", &l.function) != FLHAL_OK) std::abort();
  return g_loaded.emplace(device, l).first->second.function;
}

}  // namespace

bool add(const char* name, void (*apply)()) { return mutations().emplace(name, apply).second; }

flhal_status refuse(flhal_status status, const char* text) {
  host->set_error(status, 0, text);
  return status;
}

flhal_status later(Device device, Stream stream, Place place, std::function<void(char*)> work) {
  auto* waiting = new Later{std::move(work)};
  flhal_p_arg args[2] = {{FLHAL_ARG_VALUE, sizeof waiting, &waiting, nullptr, 0, 0}, {FLHAL_ARG_MEMORY, 0, nullptr, place->memory, place->offset, 0}};
  flhal_p_launch_v1 l{sizeof l, FLHAL_ST_LAUNCH, nullptr, run_later_on(device), {1, 1, 1}, {1, 1, 1}, 0, args, 2, sizeof(flhal_p_arg)};
  return base.launch(device, stream, &l);
}

void forget_device(Device device) {
  std::lock_guard lock(g_mutex);
  auto at = g_loaded.find(device);
  if (at == g_loaded.end()) return;
  base.module_unload(at->second.module);
  g_loaded.erase(at);
}

void start_thread(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(work)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace flhal::mutants

extern "C" __attribute__((visibility("default"))) flhal_status flhal_plugin_v1(const flhal_host_v1* given, flhal_plugin_info_v1* out) {
  using namespace flhal::mutants;
  if (host == nullptr) host = given;
  static const std::string fault = load();
  if (!fault.empty()) {
    given->set_error(FLHAL_E_INVALID, 0, fault.c_str());
    return FLHAL_E_INVALID;
  }
  if (before_entry != nullptr)
    if (flhal_status s = before_entry(out); s != FLHAL_OK) return s;
  out->abi_minor = info.abi_minor;
  out->oldest_host_minor = info.oldest_host_minor;
  out->id = info.id;
  out->version = info.version;
  out->build_id = info.build_id;
  out->vendor = info.vendor;
  out->flags = info.flags;
  out->sanitizer = info.sanitizer;
  out->table = info.table;
  out->optional_table = info.optional_table;
  if (after_entry != nullptr) after_entry(out);
  return FLHAL_OK;
}

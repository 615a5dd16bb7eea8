// src/core/loader.cc: opening one plugin library.
#include "core/loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>

#include <cstring>
#include <exception>
#include <filesystem>

#include "core/abi_range.h"
#include "core/device_description.h"
#include "core/host_services.h"
#include "core/manifest.h"
#include "core/plugin_table_fill.h"

namespace flhal {

void (*g_load_step)(const char* step) = nullptr;

namespace {

// An output struct with a watch behind it: a plugin built against a longer struct must not write past our size.
template <typename T>
struct Watched {
  T value{};
  unsigned char watch[256];
  Watched() { std::memset(watch, 0xa5, sizeof watch); }
  bool intact() const {
    for (unsigned char c : watch)
      if (c != 0xa5) return false;
    return true;
  }
};

std::string resolved(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string out = real ? real : path;
  free(real);
  return out;
}

// What dlopen says, turned into cause and remedy.
Refusal dlopen_failure(const PluginFile& file, const char* text) {
  std::string what = text ? text : "dlopen gave no reason";
  std::string remedy = "correct the plugin, or take it out of the search";
  if (what.find("cannot open shared object file") != std::string::npos) {
    std::string missing = what.substr(0, what.find(':'));
    remedy = fmt::format("install the package that has {}, or add its folder to LD_LIBRARY_PATH; ldd {} lists what is missing", missing, file.path);
  } else if (what.find("undefined symbol") != std::string::npos) {
    remedy = "the plugin and a library it needs are of different versions: install matching ones";
  } else if (what.find("GLIBC") != std::string::npos || what.find("version `") != std::string::npos) {
    remedy = "the plugin was built on a newer system: install a build for this one";
  } else if (what.find("static TLS") != std::string::npos) {
    remedy = "start the process with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096";
  }
  return refuse(FLHAL_E_INVALID, fmt::format("the library {} could not be opened: {}", file.path, what), std::move(remedy));
}

// A needed library that lies beside the plugin, while another of the same name was taken: two plugins of different
// packages then share one copy. It works or it does not; the report says so in any case.
void note_replaced_libraries(const PluginFile& file, std::vector<std::string>* notes) {
  const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
  struct Look {
    const PluginFile& file;
    const std::filesystem::path& folder;
    std::vector<std::string>* notes;
  } look{file, folder, notes};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* p) {
        Look& look = *static_cast<Look*>(p);
        std::filesystem::path loaded(info->dlpi_name ? info->dlpi_name : "");
        for (const std::string& needed : look.file.needed) {
          std::error_code ignored;
          std::filesystem::path own = look.folder / needed;
          if (loaded.filename() != needed || !std::filesystem::exists(own, ignored)) continue;
          if (!std::filesystem::equivalent(own, loaded, ignored) && !ignored)
            look.notes->push_back(fmt::format("it needs {}, and {} was taken, which the process had already; its own copy {} is not used", needed,
                                              loaded.string(), own.string()));
        }
        return 0;
      },
      &look);
}

Refusal check_info(const PluginFile& file, const std::string& expected_id, const flhal_plugin_info_v1& info, const flhal_host_v1& host, Plugin& plugin) {
  const std::string id = clean_text(info.id);
  if (!valid_plugin_id(id))
    return refuse(FLHAL_E_ABI, info.id == nullptr ? fmt::format("the library {} gave no plugin id", file.path)
                                                  : fmt::format("the library {} gave the plugin id \"{}\", which is not one", file.path, id.substr(0, 140)),
                  "use letters, digits, '_', '-' and '.', at most 128");
  if (!expected_id.empty() && id != expected_id)
    return refuse(FLHAL_E_INVALID, fmt::format("the manifest names the plugin {} and its library {} calls itself {}", expected_id, file.path, id),
                  "install the plugin's package again, or correct \"id\" or \"library\" in the manifest");
  plugin.id = id;
  plugin.version = clean_text(info.version);
  plugin.build_id = clean_text(info.build_id);
  plugin.vendor = clean_text(info.vendor);
  plugin.flags = info.flags;
  plugin.serialize_all = (info.flags & FLHAL_PLUGIN_SERIALIZE_ALL) != 0;
  FLHAL_REFUSE_ON(negotiate_abi({host.oldest_plugin_minor, host.abi_minor}, {info.oldest_host_minor, info.abi_minor}, id, &plugin.negotiated_minor));
  const char* runtime = info.sanitizer == 1 ? "__asan_init" : info.sanitizer == 2 ? "__tsan_init" : nullptr;
  if (info.sanitizer > 2 || (runtime != nullptr && dlsym(RTLD_DEFAULT, runtime) == nullptr))
    return refuse(FLHAL_E_ABI,
                  fmt::format("plugin {} was built with {} and this process was not", id,
                              info.sanitizer == 1 ? "AddressSanitizer" : info.sanitizer == 2 ? "ThreadSanitizer" : fmt::format("the sanitizer number {}", info.sanitizer)),
                  "install the plain build of the plugin");
  return {};
}

}  // namespace

Refusal threw(const std::string& who, const char* slot, const char* what) {
  return refuse(FLHAL_E_INTERNAL,
                what ? fmt::format("plugin {}: {} threw a C++ exception: {}", who, slot, clean_text(what))
                     : fmt::format("plugin {}: {} threw a C++ exception of unknown type", who, slot),
                "report it to the plugin's maker; no exception may cross the boundary");
}

Refusal load_library(const PluginFile& file, const std::string& expected_id, Plugin& plugin) {
  const std::string who = expected_id.empty() ? std::filesystem::path(file.path).filename().string() : expected_id;
  void* library = nullptr;
  FLHAL_REFUSE_ON(guarded(who, "opening the library", [&]() -> Refusal {
    library = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return library ? Refusal() : dlopen_failure(file, dlerror());
  }));
  plugin.library_path = file.path;
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) plugin.library_path = resolved(map->l_name);
  if (plugin.library_path != file.path)
    plugin.notes.push_back(fmt::format("the loader took {} for {}", plugin.library_path, file.path));
  note_replaced_libraries(file, &plugin.notes);

  // dlsym also looks into the libraries that this one needs: the symbol must be the library's own.
  auto entry = reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
  Dl_info found{};
  if (entry == nullptr || dladdr(reinterpret_cast<void*>(entry), &found) == 0 || resolved(found.dli_fname) != plugin.library_path)
    return refuse(FLHAL_E_ABI, fmt::format("the library {} does not export flhal_plugin_v1, so it is no plugin of flhal", file.path),
                  "a plugin exports exactly that symbol (see flhal/plugin.h)");

  // flhal_plugin_v1 is pure, but one that keeps the pointer all the same must not dangle: this copy is never freed.
  static const flhal_host_v1& shared_host = *new flhal_host_v1(host_services());
  plugin.host = shared_host;
  Watched<flhal_plugin_info_v1> info;
  info.value.struct_size = sizeof info.value;
  info.value.struct_type = FLHAL_ST_PLUGIN_INFO;
  FLHAL_REFUSE_ON(guarded(who, "flhal_plugin_v1", [&]() -> Refusal {
    flhal_status answer = entry(&shared_host, &info.value);
    if (answer == FLHAL_OK) return {};
    PluginError left = take_plugin_error(answer);
    return refuse(answer < 0 ? answer : FLHAL_E_INTERNAL,
                  fmt::format("flhal_plugin_v1 of {} answered {}{}{}", who, answer, left.text.empty() ? " and left no text" : ": ", left.text),
                  "see what the plugin's maker says about it");
  }));
  if (!info.intact())
    return refuse(FLHAL_E_ABI, fmt::format("flhal_plugin_v1 of {} wrote past the {} bytes of flhal_plugin_info_v1", who, sizeof info.value),
                  "write min(struct_size, yours) bytes");
  FLHAL_REFUSE_ON(check_info(file, expected_id, info.value, plugin.host, plugin));
  const bool newer = info.value.abi_minor > plugin.host.abi_minor;
  Refusal refusal = fill_table(plugin, info.value.table, newer);
  if (!refusal) {
    const void* ops = nullptr;
    refusal = guarded(plugin.id, "optional_table", [&]() -> Refusal {
      if (info.value.optional_table == nullptr) return {};
      ops = info.value.optional_table("ops", 0);
      auto* binary = static_cast<const flhal_x_module_binary_v1*>(info.value.optional_table(FLHAL_X_MODULE_BINARY, 0));
      if (binary && binary->struct_size >= sizeof *binary && binary->dialect && binary->get) plugin.module_binary = binary;
      return {};
    });
    if (!refusal) refusal = fill_ops(plugin, ops, newer);
  }
  if (refusal && refusal.reason.find(plugin.id) == std::string::npos) refusal.reason = fmt::format("plugin {}: {}", plugin.id, refusal.reason);
  return refusal;
}

Refusal init_plugin(Plugin& plugin) {
  flhal_init_v1 start{};
  start.struct_size = sizeof start;
  start.struct_type = FLHAL_ST_INIT;
  start.negotiated_minor = plugin.negotiated_minor;
  flhal_p_plugin* handle = nullptr;
  Refusal refusal = guarded(plugin.id, "init", [&]() -> Refusal {
    flhal_status answer = plugin.table.init(&plugin.host, &start, &handle);
    if (answer == FLHAL_OK) return {};
    PluginError left = take_plugin_error(answer);
    return refuse(answer < 0 ? answer : FLHAL_E_INTERNAL,
                  fmt::format("plugin {}: init answered {}{}{}", plugin.id, answer, left.text.empty() ? " and left no text" : ": ", left.text),
                  "see that its driver is installed and that this user may use it");
  });
  if (!refusal && handle == nullptr)
    refusal = refuse(FLHAL_E_INTERNAL, fmt::format("plugin {}: init answered FLHAL_OK and gave no handle", plugin.id),
                     "report it to the plugin's maker");
  if (!refusal) plugin.handle = handle;
  return refusal;
}

void shut_down_plugin(Plugin& plugin) {
  if (plugin.handle == nullptr) return;
  flhal_p_plugin* handle = std::exchange(plugin.handle, nullptr);
  (void)guarded(plugin.id, "shutdown", [&]() -> Refusal {
    auto serial = plugin.lock();
    plugin.table.shutdown(handle);
    return {};
  });
}

}  // namespace flhal

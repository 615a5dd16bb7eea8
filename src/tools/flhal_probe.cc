// src/tools/flhal_probe.cc: asks one plugin for its devices and tells the parent, which may stop it at any time.
//
// Usage (by libflhal only): flhal-probe <library> <expected id or ""> <limit in ms>, with the pipe for the answer as
// descriptor 3. See src/core/probe_child.h for the protocol.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <mutex>

#include "core/description_json.h"
#include "core/loader.h"
#include "core/log.h"

// In sanitizer builds too a crash of the plugin must arrive at the parent as the signal it is.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const char kNoSignals[] = "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
extern "C" const char* __asan_default_options() { return kNoSignals; }
extern "C" const char* __tsan_default_options() { return kNoSignals; }
#endif

using namespace flhal;

static int g_pipe = -1;

static void tell(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(g_pipe, text.data() + done, text.size() - done);
    if (n <= 0) _exit(3);              // nobody listens any more
    done += static_cast<size_t>(n);
  }
}

// What a plugin warns of while it is asked belongs into the report: nobody sees this process's error output, and an answer
// from the cache has none. Any thread.
static constexpr size_t kWarningsMax = 16;
static std::mutex& g_warnings_mutex = *new std::mutex;
static auto& g_warnings = *new std::vector<std::string>;

static void keep_warning(LogLevel level, std::string_view text) {
  if (level > kLogWarn) return;
  std::lock_guard lock(g_warnings_mutex);
  if (g_warnings.size() < kWarningsMax) g_warnings.push_back(clean_text(std::string(text).c_str()));
}

static Refusal ask(const char* library, const char* id, Plugin& plugin, PluginDescription* out) {
  PluginFile file;
  FLHAL_REFUSE_ON(inspect_plugin_file(library, &file));
  FLHAL_REFUSE_ON(load_library(file, id, plugin));
  FLHAL_REFUSE_ON(init_plugin(plugin));
  FLHAL_REFUSE_ON(describe_plugin(plugin, out));
  std::lock_guard lock(g_warnings_mutex);
  out->notes.insert(out->notes.end(), g_warnings.begin(), g_warnings.end());
  return {};
}

int main(int argc, char** argv) {
  if (argc != 4) {
    static const char kUsage[] = "flhal-probe is started by libflhal; use flhal-info\n";
    [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, kUsage, sizeof kUsage - 1);
    return 64;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(static_cast<unsigned>(strtoul(argv[3], nullptr, 10) / 1000 + 5));   // should the parent be stopped itself
  g_pipe = fcntl(3, F_DUPFD_CLOEXEC, 100);     // out of the way of a plugin that counts descriptors
  if (g_pipe < 0) return 64;
  close(3);
  g_load_step = [](const char* step) { tell(std::string("@") + step + "\n"); };

  if (!log_enabled(kLogWarn)) config().log_level.store(kLogWarn, std::memory_order_relaxed);
  set_log_sink(keep_warning);

  auto& plugin = *new Plugin;                  // never destroyed: the process ends by _exit
  PluginDescription description;
  Refusal refusal = ask(argv[1], argv[2], plugin, &description);
  JsonOwner root(cJSON_CreateObject());
  json_add_bool(root.get(), "well", !refusal);
  if (refusal) {
    json_add(root.get(), "reason", refusal.reason);
    json_add(root.get(), "remedy", refusal.remedy);
    cJSON_AddNumberToObject(root.get(), "code", refusal.code);
  } else {
    cJSON_AddItemToObject(root.get(), "plugin", description_to_json(description).release());
  }
  tell(json_print(root.get(), false) + "\n");
  alarm(2);                                    // the answer is out: a shutdown that hangs only costs a note
  shut_down_plugin(plugin);
  _exit(0);
}

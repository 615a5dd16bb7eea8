// conformance/runner/child.cc: running cases one after the other, and telling the parent after each.
//
// A case that crashes or hangs takes only this process with it: the parent has read everything before, records the case by
// its name and starts another process for the rest of the group.
#include "runner/child.h"

#include <cxxabi.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>

#include "runner/case.h"
#include "runner/context.h"
#include "runner/json.h"

namespace flhal::conformance {
namespace {

constexpr int kAnswers = 3;

void tell(const Json& message) {
  std::string line = message.line() + "\n";
  for (size_t done = 0; done < line.size();) {
    ssize_t n = write(kAnswers, line.data() + done, line.size() - done);
    if (n <= 0) _exit(97);   // the parent is gone
    done += static_cast<size_t>(n);
  }
}

// One run. The order of the handlers matters: a plugin's own exception is a broken duty, not an accident here.
Record run_once(const Case& c, Context& context) {
  Record record;
  record.id = c.id;
  auto started = std::chrono::steady_clock::now();
  try {
    context.begin_case(c.id);
    c.run(context);
    if (!context.warnings.empty()) {
      record.result = Result::kWarning;
      for (const std::string& w : context.warnings) record.text += (record.text.empty() ? "" : "; ") + w;
    }
  } catch (const Failed& f) {
    record.result = Result::kFail, record.text = f.text;
  } catch (const NotSupported& n) {
    record.result = Result::kNotSupported, record.text = n.text;
  } catch (const DeviceLost& d) {
    record.result = Result::kDeviceLost, record.text = d.text;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    record.result = Result::kFail;
    record.text = fmt::format("a C++ exception crossed the boundary of the plugin (or left the suite): {}", e.what());
  } catch (...) {
    record.result = Result::kFail, record.text = "an exception that is no std::exception crossed the boundary of the plugin";
  }
  record.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  return record;
}

}  // namespace

int run_child(const Options& options) {
  // Crashes are expected here; a core file of a process with terabytes of reserved addresses helps nobody.
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Asked asked;
  asked.plugin_path = options.plugin;
  asked.seed = options.seed;
  std::string error;
  parse_profiles(options.profile, &asked.profiles, &error);
  Context context(asked);
  for (const std::string& id : options.arguments) {
    const Case* c = find_case(id);
    if (c == nullptr) return 98;
    tell(Json::object().set("start", id).set("limit_ms", static_cast<double>(c->limit_ms)));
    Record worst = run_once(*c, context);
    auto weight = [](Result r) { return is_fault(r) ? 3 : r == Result::kWarning ? 2 : r == Result::kNotSupported ? 1 : 0; };
    for (uint32_t n = 1; n < options.repeat && !is_fault(worst.result); ++n) {
      Record again = run_once(*c, context);
      if (weight(again.result) > weight(worst.result)) worst = again;
    }
    tell(Json::object().set("id", id).set("result", result_name(worst.result)).set("text", worst.text).set("ms", worst.ms));
    // After a lost device or a failure in the middle of submitted work nothing more can be trusted: a fresh process goes on.
    if (worst.result == Result::kDeviceLost) _exit(0);
  }
  tell(Json::object().set("start", "").set("limit_ms", static_cast<double>(kDefaultLimitMs)));
  context.close();
  tell(Json::object().set("closed", true));
  std::fflush(nullptr);
  _exit(0);   // exit handlers have cases of their own
}

int run_describe(const Options& options) {
  Asked asked;
  asked.plugin_path = options.plugin;
  Json facts = Json::object();
  try {
    Context context(asked);
    Plugin& plugin = context.plugin();
    auto text = [](const char* s) { return std::string(s != nullptr ? s : ""); };
    facts.set("id", text(plugin.info().id)).set("version", text(plugin.info().version));
    facts.set("build_id", text(plugin.info().build_id)).set("vendor", text(plugin.info().vendor));
    std::string profiles = plugin.has_streams() ? "async" : plugin.has_kernels() ? "kernel" : "sync";
    if (plugin.ops() != nullptr) profiles += ",ops";
    facts.set("profiles", profiles);
    tell(facts);                          // even if the chips cannot be asked
    Json devices = Json::array();
    uint32_t count = context.device_count();
    flhal_p_plugin* handle = context.handle();
    for (uint32_t i = 0; i < count; ++i) {
      flhal_p_device_info_v1 info = empty_device_info();
      auto serial = plugin.lock();
      expect_ok(plugin.table().device_info(handle, i, &info), "device_info");
      std::string uuid;
      for (uint8_t byte : info.uuid) uuid += fmt::format("{:02x}", byte);
      Json row = Json::object();
      row.set("chip", text(info.chip)).set("product", text(info.product)).set("uuid", uuid);
      devices.add(std::move(row));
    }
    facts.set("devices", std::move(devices));
    tell(facts);
    context.close();
  } catch (const Failed& f) {
    tell(facts.set("error", f.text));
  } catch (const DeviceLost& d) {
    tell(facts.set("error", d.text));
  }
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace flhal::conformance

// conformance/runner/context.h: what a case gets: the plugin, lazily started and shared by the cases of a group.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runner/case.h"
#include "runner/plugin.h"

namespace flhal::conformance {

struct Asked {                             // what the command line wants of every case
  std::string plugin_path;
  uint32_t profiles = 1;                   // bit per Profile
  uint64_t seed = 1;
};

class Context {
 public:
  explicit Context(const Asked& asked) : asked_(asked) {}
  ~Context();

  Plugin& plugin();                        // loaded
  flhal_p_plugin* handle();                // started
  Device& device(uint32_t index = 0);      // open
  uint32_t device_count();
  void close();                            // devices closed, shutdown called; the next use starts again

  // The plugin claims the profile: then what belongs to it may not be missing.
  bool claims(Profile p) const { return asked_.profiles & (1u << static_cast<uint32_t>(p)); }
  // Ends the case when the group of slots is empty: not_supported, or a failure when the profile is claimed.
  void need_kernels();
  void need_streams();
  void need_ops();

  void warn(std::string text) { warnings.push_back(std::move(text)); }
  const Asked& asked() const { return asked_; }
  std::mt19937_64& random() { return random_; }
  std::vector<uint8_t> random_bytes(uint64_t n);

  void begin_case(const std::string& id);  // seeds the random numbers by seed and id
  std::vector<std::string> warnings;

 private:
  Asked asked_;
  std::unique_ptr<Plugin> plugin_;
  flhal_p_plugin* handle_ = nullptr;
  std::map<uint32_t, std::unique_ptr<Device>> devices_;
  std::mt19937_64 random_;
};

// Fails with the first difference. `what` says what was compared: "the slab after the copy".
void expect_equal(const std::vector<uint8_t>& got, const std::vector<uint8_t>& wanted, const std::string& what);

}  // namespace flhal::conformance

// conformance/areas/kernels.h: the kernels that the module cases launch, in the dialects this suite can write.
//
// The same functions in each dialect; one group is one element. A dialect this suite cannot write makes the launch cases
// not_supported: the loading cases still run.
#pragma once

#include <cstring>
#include <initializer_list>

#include "runner/context.h"

namespace flhal::conformance {

struct Source {
  std::string dialect;
  const void* data = nullptr;
  uint64_t bytes = 0;
  bool host = false;                        // flhal-host-1: compiled code, no text
};
// For the first dialect of the device that can be written here; not_supported otherwise.
Source kernel_source(Context& ctx, Device& device);

struct Module {                             // the kernels, loaded
  Device& device;
  Source source;
  flhal_p_module* module = nullptr;
  Module(Context& ctx, Device& d);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  flhal_p_function* get(const char* name) const;
};

// Arguments that own their values.
class Arguments {
 public:
  Arguments& memory(const Slab& slab, uint64_t offset = 0);
  template <typename T>
  Arguments& value(const T& v) { return bytes(&v, sizeof v); }
  Arguments& bytes(const void* p, uint32_t n);
  Arguments& local(uint32_t n);
  const flhal_p_arg* data() const { return args_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(args_.size()); }

 private:
  std::vector<flhal_p_arg> args_;
  std::vector<std::unique_ptr<uint64_t[]>> values_;
};

flhal_p_launch_v1 launch_of(flhal_p_function* function, uint64_t groups, const Arguments& arguments);
void launch(Device& device, flhal_p_function* function, uint64_t groups, const Arguments& arguments, flhal_p_stream* stream = nullptr);

}  // namespace flhal::conformance

// reference_plugins/host/native_function.h: a function of a shared object, called with a launch's arguments through libffi.
//
// A signature is a line of text: "saxpy(f32, ptr, ptr, first, count)". Types i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 take a value of
// their size, ptr takes memory. first and count (uint64_t, together or not at all) take no argument of the launch: the function is
// called for ranges that cover 0 .. groups[0]-1 once, on any thread. Without them it is called once, and groups[0] is 1.
// Results are void: a kernel writes memory.
#pragma once

#include <ffi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flhal::host {

class NativeFunction {
 public:
  enum class Kind : uint8_t { kValue, kMemory, kFirst, kCount };
  struct Parameter {
    Kind kind;
    uint32_t bytes;                       // of a value
    const char* type;                     // its name, for messages
  };

  // "" and a function, or why `signature` is none.
  static std::string parse(std::string_view signature, std::unique_ptr<NativeFunction>* out);

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  uint32_t n_arguments() const { return n_arguments_; }   // of a launch
  bool takes_ranges() const { return takes_ranges_; }
  void set_code(void* code) { code_ = code; }
  // argv[i]: argument i of the launch; where it is memory, the memory's address itself.
  void call(const void* const* argv, uint64_t first, uint64_t count) const;

  static constexpr uint32_t kMaxParameters = 64;

 private:
  NativeFunction() = default;
  std::string name_;
  std::vector<Parameter> parameters_;
  std::vector<ffi_type*> types_;
  uint32_t n_arguments_ = 0;
  bool takes_ranges_ = false;
  void* code_ = nullptr;
  ffi_cif cif_;
};

}  // namespace flhal::host

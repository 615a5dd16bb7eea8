// flhal/plugin.hpp: plugins in C++: slots that may throw, and errors as values that are thrown. Header only, C++20.
//
//   static flhal_status open(flhal_p_plugin* plugin, uint32_t index, flhal_p_device** out) {
//     if (index != 0) throw flhal::Error(FLHAL_E_INVALID, "mychip: device_open: there is one chip");
//     *out = new flhal_p_device{plugin};
//     return FLHAL_OK;
//   }
//   ... .device_open = flhal::slot<open>, ...
//
// The boundary is C: an exception that crosses it ends the program. flhal::slot<f> is a noexcept function of f's own type
// that turns what f throws into a status with a sentence. It costs nothing when nothing is thrown.
#ifndef FLHAL_PLUGIN_HPP
#define FLHAL_PLUGIN_HPP

#include <flhal/plugin.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace flhal {

// Core's functions; `init` stores them here before it does anything that may throw. One per library: it has hidden symbols.
inline const flhal_host_v1* host = nullptr;

// What a slot throws when it cannot do what it was asked: the status, and the sentence the user reads.
class Error : public std::runtime_error {
 public:
  Error(flhal_status status, const std::string& text, int64_t vendor_code = 0)
      : std::runtime_error(text), status(status), vendor_code(vendor_code) {}
  flhal_status status;
  int64_t vendor_code;      // your driver's own number, shown beside the text
};

namespace detail {

inline flhal_status refuse(flhal_status status, int64_t vendor_code, const char* text) noexcept {
  if (host != nullptr) host->set_error(status, vendor_code, text);
  return status;
}

// Inside a catch block: the exception as a status.
inline flhal_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return refuse(e.status, e.vendor_code, e.what());
  } catch (const std::bad_alloc&) {
    return refuse(FLHAL_E_HOST_MEMORY, 0, "the plugin found no host memory");
  } catch (const std::exception& e) {
    return refuse(FLHAL_E_INTERNAL, 0, e.what());
  } catch (...) {
    return refuse(FLHAL_E_INTERNAL, 0, "the plugin threw something that is no std::exception");
  }
}

template <auto function, typename Type = decltype(function)>
struct Slot;
template <auto function, typename... Arguments>
struct Slot<function, flhal_status (*)(Arguments...)> {
  static flhal_status call(Arguments... arguments) noexcept {
    try {
      return function(arguments...);
    } catch (...) {
      return status_of_exception();
    }
  }
};
// close, free and destroy have no answer: what they throw leaves its sentence and is over.
template <auto function, typename... Arguments>
struct Slot<function, void (*)(Arguments...)> {
  static void call(Arguments... arguments) noexcept {
    try {
      function(arguments...);
    } catch (...) {
      status_of_exception();
    }
  }
};

}  // namespace detail

template <auto function>
inline constexpr auto slot = &detail::Slot<function>::call;

// A table begins so; the slots follow by name.
#define FLHAL_TABLE_HEAD .struct_size = sizeof(flhal_plugin_table_v1), .struct_type = FLHAL_ST_TABLE, .next = nullptr

}  // namespace flhal

#endif  // FLHAL_PLUGIN_HPP

// src/core/plugin_call.h: the boundary to a plugin's slots. No exception may cross it; one that does becomes an answer whose
// text says so (plugin_answer adds plugin and slot), and core's own state stays whole.
//
// Cost: none while nothing is thrown.
#pragma once

#include <flhal/plugin.h>

#include <exception>
#include <type_traits>
#include <utility>

namespace flhal {

// Leaves the text for plugin_answer and gives the code. `what` may be NULL.
[[gnu::cold]] flhal_status plugin_threw(const char* what) noexcept;
// For slots that give nothing back: there is nobody to tell but the log.
[[gnu::cold]] void plugin_threw_in_release(const char* what) noexcept;

template <typename Slot, typename... Arguments>
[[gnu::always_inline]] inline auto plugin_call(Slot slot, Arguments&&... arguments) {
  using Answer = decltype(slot(std::forward<Arguments>(arguments)...));
  if constexpr (std::is_void_v<Answer>) {
    try {
      slot(std::forward<Arguments>(arguments)...);
    } catch (const std::exception& e) {
      plugin_threw_in_release(e.what());
    } catch (...) {
      plugin_threw_in_release(nullptr);
    }
  } else {
    try {
      return slot(std::forward<Arguments>(arguments)...);
    } catch (const std::exception& e) {
      return plugin_threw(e.what());
    } catch (...) {
      return plugin_threw(nullptr);
    }
  }
}

}  // namespace flhal

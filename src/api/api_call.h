// src/api/api_call.h: what every export does: no exception crosses the boundary, and the code becomes a plain number.
#pragma once

#include <exception>
#include <new>

#include "core/status.h"

namespace flhal {

template <typename Body>
flhal_status api_call(const char* function, Body&& body) noexcept {
  try {
    return to_status(body()).code();
  } catch (const std::bad_alloc&) {
    return FLHAL_E_HOST_MEMORY;
  } catch (const std::exception& e) {
    return fail(FLHAL_E_INTERNAL, "{}: {}", function, e.what()).code();
  } catch (...) {
    return fail(FLHAL_E_INTERNAL, "{}: an unknown exception", function).code();
  }
}

}  // namespace flhal

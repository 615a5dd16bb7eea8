// csrc/errors.h: from a flhal_status to the exception a torch user expects, with flhal's own text.
#pragma once

#include <c10/util/Exception.h>
#include <flhal/base.h>

#include <string>

namespace torch_fl {

std::string last_error_text();
// OUT_OF_MEMORY -> torch.OutOfMemoryError, UNSUPPORTED -> NotImplementedError, DEVICE_LOST and OP_FAILED ->
// torch.AcceleratorError, HOST_MEMORY -> OutOfMemoryError, everything else -> RuntimeError. DECLINED has no text: `what` names
// the call.
[[noreturn]] void raise_status(flhal_status status, const char* what);

inline void check(flhal_status status, const char* what) {
  if (__builtin_expect(status != FLHAL_OK, 0)) raise_status(status, what);
}

}  // namespace torch_fl

// csrc/errors.cc: from a flhal_status to the exception a torch user expects.
#include "errors.h"

namespace torch_fl {

std::string last_error_text() {
  char small[1024];
  small[0] = '\0';
  flhal_last_error(small, sizeof small, nullptr);
  std::string text(small);
  if (text.size() + 1 < sizeof small) return text;
  text.resize(64 * 1024);                       // load reports and build logs are long
  flhal_last_error(text.data(), text.size(), nullptr);
  text.resize(std::char_traits<char>::length(text.c_str()));
  return text;
}

void raise_status(flhal_status status, const char* what) {
  const c10::SourceLocation here{what, "torch_fl", 0};
  std::string text = status < 0 ? last_error_text() : std::string();
  if (text.empty()) text = std::string(what) + ": " + flhal_status_name(status);
  switch (status) {
    case FLHAL_E_OUT_OF_MEMORY:
    case FLHAL_E_HOST_MEMORY:
    case FLHAL_EXHAUSTED:
      throw c10::OutOfMemoryError(here, text);
    case FLHAL_E_UNSUPPORTED:
    case FLHAL_DECLINED:
      throw c10::NotImplementedError(here, text);
    case FLHAL_E_OP_FAILED:
    case FLHAL_E_DEVICE_LOST:
      throw c10::AcceleratorError(here, status, text);
    default:
      throw c10::Error(here, text);
  }
}

}  // namespace torch_fl

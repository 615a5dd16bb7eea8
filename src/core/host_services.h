// src/core/host_services.h: what core gives a plugin (flhal_host_v1), and the texts plugins leave through it.
#pragma once

#include <flhal/plugin.h>

#include <string>

namespace flhal {

// Oldest plugin minor this core still works with.
inline constexpr uint32_t kOldestPluginMinor = 0;

// The services, with core's range of ABI minors. A copy of it belongs to each plugin.
flhal_host_v1 host_services();

// The text a plugin left on this thread by host->set_error; kept until taken or replaced.
void leave_plugin_error(flhal_status status, int64_t vendor_code, const char* text, const char* text_end = "");
struct PluginError {
  flhal_status status = FLHAL_OK;
  int64_t vendor_code = 0;
  std::string text;
};
// Takes it when it belongs to `answer`; empty otherwise. Clears it in both cases.
PluginError take_plugin_error(flhal_status answer);
// For the layer validate: how many texts were left on this thread so far, and the status that came with the last one.
uint64_t plugin_texts_left();
flhal_status last_plugin_status();

// Who hears host->notify(token, status). One listener: the owner of streams and events.
using NotifyListener = void (*)(uint64_t token, flhal_status status);
void set_notify_listener(NotifyListener listener);

}  // namespace flhal

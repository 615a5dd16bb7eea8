// src/dispatch/fallback_policy.h: may work leave the chip? auto: yes; warn: yes, with one line per op and reason; strict:
// no. Scopes of the calling thread go before the process's settings, an op's own setting before the general one.
#pragma once

#include "core/config.h"
#include "core/device.h"
#include "core/status.h"

namespace flhal {

// The policy that holds for `op` in this thread. `op` matches a scope's name as it is, or without namespace and overload
// ("aten::add.Tensor" is matched by "add").
FallbackPolicy policy_for(const char* op);

// FLHAL_OK, or FLHAL_E_DENIED with op, reason, policy and remedy. `how`: "host route" or "CPU fallback".
Status allow_fallback(const Device& device, const char* op, const char* how, const char* reason);

Status push_policy(const char* policy, const char* op);
Status pop_policy();

// flhal_fallback_enter and _leave.
Status fallback_enter(Device* device, const char* op, const char* reason, uint64_t* out_ticket);
Status fallback_leave(uint64_t ticket, uint64_t bytes_to_host, uint64_t bytes_to_device, const char* call_site);

// After a call left the chip: one warning in the process's life when the share of such calls passes the threshold.
void watch_threshold();
void reset_fallback_warnings();              // reports were reset: everything may warn once more

}  // namespace flhal

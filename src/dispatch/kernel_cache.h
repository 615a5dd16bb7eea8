// src/dispatch/kernel_cache.h: compiled kernels on disk: $XDG_CACHE_HOME/flhal/kernels, one file per kernel and chip.
//
// Idea: a file belongs to a text by content and options, to a chip by its fingerprint, and to a plugin by id and build. All
// of that stands in the file as a whole, so a hash that meets another by chance names nothing wrong. A folder or file that
// is not ours, that others may write, or that cannot be written costs speed and gives a line in the log; never an error.
#pragma once

#include <string>

#include "core/device.h"
#include "kernels/text_kernel.h"

namespace flhal {

// False when there is none, or none that may be trusted, or the setting `kernel_cache` is off.
bool kept_code(const Device& device, const kernels::TextKernel& text, std::string* out);
void keep_code(const Device& device, const kernels::TextKernel& text, const std::string& code);

}  // namespace flhal

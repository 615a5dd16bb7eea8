// csrc/autograd_engine.h: worker threads of torch's autograd engine for devices that appeared after the engine started.
#pragma once

namespace torch_fl {

// Called before each backward of a process that has opened a device (hooks.cc). Costs one comparison when all is well.
void ensure_engine_threads(int n_devices);

}  // namespace torch_fl

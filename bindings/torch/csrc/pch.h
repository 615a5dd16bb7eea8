// csrc/pch.h: what nearly every file of the adapter needs, compiled once. Measured with g++ 12: 35 s once, then about 5 s for a
// small file; without it each file costs 12 s. Never add torch/extension.h (52 s, 1.5 GB) or ATen/ATen.h.
#pragma once

#include <torch/library.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <flhal/copy.h>
#include <flhal/memory.h>
#include <flhal/op.h>
#include <flhal/report.h>
#include <flhal/stream.h>

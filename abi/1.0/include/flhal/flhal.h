// flhal/flhal.h: the whole application ABI. A program may also include single headers.
#ifndef FLHAL_FLHAL_H
#define FLHAL_FLHAL_H
#include <flhal/base.h>
#include <flhal/device.h>
#include <flhal/stream.h>
#include <flhal/memory.h>
#include <flhal/copy.h>
#include <flhal/op.h>
#include <flhal/ops.h>
#include <flhal/kernel.h>
#include <flhal/report.h>
#endif  // FLHAL_FLHAL_H

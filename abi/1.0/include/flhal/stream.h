// flhal/stream.h: queues of work on one device, and points in them that anyone can wait for.
#ifndef FLHAL_STREAM_H
#define FLHAL_STREAM_H

#include <flhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flhal_stream flhal_stream;
typedef struct flhal_event flhal_event;

// The device's default stream; opens the device. Belongs to the device; retain and release of it are no-ops. It is an
// ordinary stream: it does not wait for others. NULL on failure (flhal_last_error tells). Since: 1.0
FLHAL_API flhal_stream* flhal_stream_default(flhal_device* device);

// priority: lower runs first, 0 is normal; chips without priorities ignore it. Since: 1.0
FLHAL_API flhal_status flhal_stream_create(flhal_device* device, int32_t priority, flhal_stream** out_stream);
FLHAL_API flhal_status flhal_stream_retain(flhal_stream* stream);
// Legal with work in flight: the work ends first. Since: 1.0
FLHAL_API flhal_status flhal_stream_release(flhal_stream* stream);
FLHAL_API flhal_device* flhal_stream_device(flhal_stream* stream);
// A small number that is never used again for another stream of this process. Since: 1.0
FLHAL_API uint64_t flhal_stream_id(flhal_stream* stream);

// FLHAL_OK when all work is done, FLHAL_NOT_READY when not, or the stream's first failure. Never blocks. Since: 1.0
FLHAL_API flhal_status flhal_stream_query(flhal_stream* stream);
// Waits for all work. Returns the stream's first failure, with its text (op, call number, stream). Since: 1.0
FLHAL_API flhal_status flhal_stream_synchronize(flhal_stream* stream);
// After FLHAL_E_OP_FAILED: makes the stream usable again. What failed work should have written is undefined. Since: 1.0
FLHAL_API flhal_status flhal_stream_clear_error(flhal_stream* stream);

#define FLHAL_EVENT_WITH_TIMING 1u

// An event is a box around a point of a stream. It belongs to no device, may be recorded again and again, and a wait
// takes the point that is in it at that moment. Never recorded = already done. Since: 1.0
FLHAL_API flhal_status flhal_event_create(uint32_t flags, flhal_event** out_event);
FLHAL_API flhal_status flhal_event_retain(flhal_event* event);
FLHAL_API flhal_status flhal_event_release(flhal_event* event);
FLHAL_API flhal_status flhal_event_record(flhal_event* event, flhal_stream* stream);
// Later work of `stream` waits for the event's point: any device, any maker. The host does not wait where the chips can
// do without. A failure of the point arrives in `stream`. Since: 1.0
FLHAL_API flhal_status flhal_event_wait(flhal_event* event, flhal_stream* stream);
FLHAL_API flhal_status flhal_event_query(flhal_event* event);
FLHAL_API flhal_status flhal_event_synchronize(flhal_event* event);
// Time between two recorded and finished events made with FLHAL_EVENT_WITH_TIMING, same device, in nanoseconds.
// Errors: FLHAL_E_INVALID without timing or never recorded; FLHAL_NOT_READY when one is not finished. Since: 1.0
FLHAL_API flhal_status flhal_event_elapsed_ns(flhal_event* from, flhal_event* to, uint64_t* out_ns);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_STREAM_H

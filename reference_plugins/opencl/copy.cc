// reference_plugins/opencl/copy.cc: copies and fills, in order of the queue.
//
// Places with an address (SVM, host memory) and buffers are two worlds with two sets of calls. Rectangles exist for buffers
// only: for SVM a buffer over the same bytes is made once per slab. What a driver refuses as a rectangle goes row by row.
#include <fmt/format.h>

#include "opencl_plugin.h"

namespace flhal::opencl {
namespace {

struct Where {
  flhal_p_device* device;
  flhal_p_stream* stream;
  cl_command_queue queue;
};

bool is_buffer(const flhal_p_place& place) { return place.memory != nullptr && place.memory->address == nullptr; }

flhal_status copy_row(const Where& w, const flhal_p_place& dst, const flhal_p_place& src, uint64_t bytes) {
  cl_event event = nullptr;
  cl_int code;
  const char* call;
  if (is_buffer(dst) && is_buffer(src)) {
    call = "clEnqueueCopyBuffer";
    code = cl.clEnqueueCopyBuffer(w.queue, src.memory->buffer, dst.memory->buffer, src.offset, dst.offset, bytes, 0, nullptr, &event);
  } else if (is_buffer(dst)) {
    call = "clEnqueueWriteBuffer";
    code = cl.clEnqueueWriteBuffer(w.queue, dst.memory->buffer, CL_FALSE, dst.offset, bytes, pointer_to(src), 0, nullptr, &event);
  } else if (is_buffer(src)) {
    call = "clEnqueueReadBuffer";
    code = cl.clEnqueueReadBuffer(w.queue, src.memory->buffer, CL_FALSE, src.offset, bytes, pointer_to(dst), 0, nullptr, &event);
  } else {
    call = "clEnqueueSVMMemcpy";
    code = cl.clEnqueueSVMMemcpy(w.queue, CL_FALSE, pointer_to(dst), pointer_to(src), bytes, 0, nullptr, &event);
  }
  return queued(w.stream, code, event, "copy", call, true);
}

// CL_SUCCESS with an event, or why it must go row by row.
cl_int copy_rectangle(const Where& w, const flhal_p_copy_v1& c, cl_event* event) {
  const size_t origin[3] = {0, 0, 0}, region[3] = {c.bytes, c.rows, 1};
  const size_t dst_origin[3] = {c.dst.offset % c.dst_pitch, c.dst.offset / c.dst_pitch, 0};
  const size_t src_origin[3] = {c.src.offset % c.src_pitch, c.src.offset / c.src_pitch, 0};
  cl_int code = CL_SUCCESS;
  cl_mem dst = c.dst.memory ? buffer_for_rectangles(c.dst.memory, &code) : nullptr;
  if (code != CL_SUCCESS) return code;
  cl_mem src = c.src.memory ? buffer_for_rectangles(c.src.memory, &code) : nullptr;
  if (code != CL_SUCCESS) return code;
  if (dst && src)
    return cl.clEnqueueCopyBufferRect(w.queue, src, dst, src_origin, dst_origin, region, c.src_pitch, 0, c.dst_pitch, 0, 0, nullptr, event);
  if (dst)
    return cl.clEnqueueWriteBufferRect(w.queue, dst, CL_FALSE, dst_origin, origin, region, c.dst_pitch, 0, c.src_pitch, 0,
                                       static_cast<char*>(c.src.host), 0, nullptr, event);
  if (src)
    return cl.clEnqueueReadBufferRect(w.queue, src, CL_FALSE, src_origin, origin, region, c.src_pitch, 0, c.dst_pitch, 0,
                                      static_cast<char*>(c.dst.host), 0, nullptr, event);
  return CL_INVALID_MEM_OBJECT;
}

flhal_p_place moved(flhal_p_place place, uint64_t by) {
  if (place.memory) place.offset += by;
  else place.host = static_cast<char*>(place.host) + by;
  return place;
}

bool leaves(const flhal_p_place& place, uint64_t bytes) {
  return place.memory != nullptr && (place.offset > place.memory->bytes || bytes > place.memory->bytes - place.offset);
}

}  // namespace

namespace slots {

flhal_status copy(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_copy_v1* given) {
  const flhal_p_copy_v1& c = *given;
  if (flhal_status s = extensions(c.next, "copy"); s != FLHAL_OK) return s;
  uint64_t rows = c.rows ? c.rows : 1;
  if (c.bytes == 0) return FLHAL_OK;
  if (leaves(c.dst, (rows - 1) * c.dst_pitch + c.bytes) || leaves(c.src, (rows - 1) * c.src_pitch + c.bytes))
    return fail(FLHAL_E_INVALID, fmt::format("copy: {} rows of {} bytes leave their slab", rows, c.bytes));
  Where w{device, stream, queue_of(device, stream)};
  if (rows == 1 || (c.dst_pitch == c.bytes && c.src_pitch == c.bytes)) return copy_row(w, c.dst, c.src, c.bytes * rows);
  cl_event event = nullptr;
  cl_int code = copy_rectangle(w, c, &event);
  if (code == CL_SUCCESS) return queued(stream, code, event, "copy", "the copy of a rectangle", true);
  if (status_of(code) != FLHAL_E_INVALID) return fail_code(code, "copy", "the copy of a rectangle");
  for (uint64_t row = 0; row < rows; ++row) {
    flhal_status answer = copy_row(w, moved(c.dst, row * c.dst_pitch), moved(c.src, row * c.src_pitch), c.bytes);
    if (answer != FLHAL_OK) return answer;
  }
  return FLHAL_OK;
}

flhal_status fill(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_place* place, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes) {
  if (bytes == 0) return FLHAL_OK;
  if (leaves(*place, bytes)) return fail(FLHAL_E_INVALID, fmt::format("fill: {} bytes leave their slab", bytes));
  // OpenCL fills at multiples of the pattern's size only; core writes the rest through host memory.
  if (place->offset % pattern_bytes != 0 || bytes % pattern_bytes != 0) return FLHAL_DECLINED;
  cl_command_queue queue = queue_of(device, stream);
  cl_event event = nullptr;
  if (is_buffer(*place)) {
    cl_int code = cl.clEnqueueFillBuffer(queue, place->memory->buffer, pattern, pattern_bytes, place->offset, bytes, 0, nullptr, &event);
    return queued(stream, code, event, "fill", "clEnqueueFillBuffer", true);
  }
  cl_int code = cl.clEnqueueSVMMemFill(queue, pointer_to(*place), pattern, pattern_bytes, bytes, 0, nullptr, &event);
  return queued(stream, code, event, "fill", "clEnqueueSVMMemFill", true);
}

}  // namespace slots
}  // namespace flhal::opencl

// reference_plugins/opencl/memory.cc: slabs of shared virtual memory or cl_mem, pinned memory, and views for the host.
//
// SVM begins where the driver wants, and drivers refuse large alignments: a slab takes a granule more and begins inside.
// A view is the memory itself (fine SVM), or a mapping: coarse SVM and buffers must not be touched by the host otherwise.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "../host/machine.h"
#include "opencl_plugin.h"

namespace flhal::opencl {
namespace {

constexpr uint64_t kGranule = 65536;
constexpr uint64_t kHugePage = 2ull << 20;
constexpr uint64_t kAskTheSystemFrom = 64ull << 20;   // below, the 30 us of reading /proc would be felt
constexpr size_t kPartsMax = 64;                      // sub-buffers kept per slab

char* round_up(void* p, uint64_t to) { return reinterpret_cast<char*>((reinterpret_cast<uint64_t>(p) + to - 1) / to * to); }

// Counts `bytes` against the chip's memory; false when they are not there. Drivers promise host memory that the system
// does not have, and the process would be killed later, so a chip in host memory looks there too.
bool charge(flhal_p_device* device, uint64_t bytes) {
  uint64_t limit = device->chip->info.memory_bytes;
  if (limit == 0) limit = UINT64_MAX;
  uint64_t used = device->used_bytes.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || used > limit - bytes) return false;
  } while (!device->used_bytes.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  if (device->chip->unified && bytes >= kAskTheSystemFrom && bytes > flhal::host::available_memory()) {
    device->used_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  return true;
}

// Both answer CL_SUCCESS or what the driver said.
cl_int make_svm(flhal_p_memory* m, uint64_t align) {
  cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
  if (m->device->chip->memory == Memory::kFine) flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
  m->svm = cl.clSVMAlloc(m->device->context, flags, m->taken_bytes, 0);
  if (!m->svm) return CL_MEM_OBJECT_ALLOCATION_FAILURE;   // clSVMAlloc tells no more
  m->address = round_up(m->svm, align);
  // Where the slab is the host's own memory, small pages would cost every second access of a long walk a look at the page table. Only
  // advice, as in the host plugin.
  if (m->device->chip->unified && m->bytes >= kHugePage) madvise(m->address, m->bytes, MADV_HUGEPAGE);
  return CL_SUCCESS;
}

cl_int make_buffer(flhal_p_memory* m) {
  cl_int code = CL_SUCCESS;
  m->buffer = cl.clCreateBuffer(m->device->context, CL_MEM_READ_WRITE, m->taken_bytes, nullptr, &code);
  if (!m->buffer) return code;
  // Many drivers take the memory at its first use only; a full chip must be told here, where core can still make room.
  cl_event moved = nullptr;
  code = cl.clEnqueueMigrateMemObjects(m->device->immediate, 1, &m->buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, &moved);
  if (code != CL_SUCCESS) return code;
  Event owned(moved);
  return cl.clWaitForEvents(1, &moved);
}

// Host memory the device reads fast: a buffer of the driver's that stays mapped; its host pointer is what users get.
cl_int make_pinned(flhal_p_memory* m, uint64_t align) {
  cl_int code = CL_SUCCESS;
  m->buffer = cl.clCreateBuffer(m->device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, m->taken_bytes, nullptr, &code);
  if (!m->buffer) return code;
  m->svm = cl.clEnqueueMapBuffer(m->device->immediate, m->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, m->taken_bytes, 0, nullptr,
                                 nullptr, &code);
  if (!m->svm) return code;
  m->address = round_up(m->svm, align);
  return CL_SUCCESS;
}

void destroy(flhal_p_memory* m) {
  for (auto& [offset, part] : m->parts) cl.clReleaseMemObject(part);
  if (m->rectangles) cl.clReleaseMemObject(m->rectangles);
  if (m->buffer && m->svm) {
    cl_event unmapped = nullptr;
    if (cl.clEnqueueUnmapMemObject(m->device->immediate, m->buffer, m->svm, 0, nullptr, &unmapped) == CL_SUCCESS) {
      Event owned(unmapped);
      cl.clWaitForEvents(1, &unmapped);
    }
    m->svm = nullptr;
  }
  if (m->buffer) cl.clReleaseMemObject(m->buffer);
  if (m->svm) cl.clSVMFree(m->device->context, m->svm);
  m->device->used_bytes.fetch_sub(m->charged_bytes, std::memory_order_relaxed);
  delete m;
}

cl_map_flags map_flags(uint32_t access) {
  if (access & FLHAL_DISCARD) return CL_MAP_WRITE_INVALIDATE_REGION;
  return access & FLHAL_WRITE ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
}

}  // namespace

cl_mem buffer_for_rectangles(flhal_p_memory* m, cl_int* code) {
  *code = CL_SUCCESS;
  if (m->buffer) return m->buffer;
  std::lock_guard lock(m->mutex);
  if (!m->rectangles)
    m->rectangles = cl.clCreateBuffer(m->device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, m->bytes, m->address, code);
  return m->rectangles;
}

cl_mem part_of(flhal_p_memory* m, uint64_t offset, cl_int* code) {
  *code = CL_SUCCESS;
  std::lock_guard lock(m->mutex);
  if (auto at = m->parts.find(offset); at != m->parts.end()) return at->second;
  // Queued work holds its own reference, so any one may go.
  if (m->parts.size() >= kPartsMax) {
    cl.clReleaseMemObject(m->parts.begin()->second);
    m->parts.erase(m->parts.begin());
  }
  const cl_buffer_region region{offset, m->bytes - offset};
  cl_mem part = cl.clCreateSubBuffer(m->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, code);
  if (part) m->parts.emplace(offset, part);
  return part;
}

namespace slots {

flhal_status memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  if (flhal_status s = extensions(slab->next, "memory_alloc"); s != FLHAL_OK) return s;
  if (slab->bytes == 0 || (slab->align & (slab->align - 1)) != 0)
    return fail(FLHAL_E_INVALID, fmt::format("memory_alloc: {} bytes with alignment {}; bytes must be above 0 and the alignment a "
                                             "power of two", slab->bytes, slab->align));
  if (slab->kind > FLHAL_MEM_SHARED || (slab->kind == FLHAL_MEM_SHARED && device->chip->memory != Memory::kFine))
    return fail(FLHAL_E_UNSUPPORTED, fmt::format("memory_alloc: the chip has no memory of kind {}: shared memory needs fine-grain SVM", slab->kind));
  return no_throw("memory_alloc", [&]() -> flhal_status {
    bool plain_buffer = slab->kind == FLHAL_MEM_DEVICE && device->chip->memory == Memory::kBuffer;
    uint64_t align = std::max(slab->align, kGranule);
    if (slab->kind != FLHAL_MEM_PINNED && slab->bytes > device->chip->info.largest_slab_bytes) return FLHAL_EXHAUSTED;
    uint64_t taken = slab->bytes + (plain_buffer ? 0 : align);
    uint64_t charged = slab->kind == FLHAL_MEM_PINNED && !device->chip->unified ? 0 : taken;   // there it is the host's
    if (!charge(device, charged)) return FLHAL_EXHAUSTED;
    auto* m = new flhal_p_memory{device, slab->kind, slab->bytes, taken, charged};
    cl_int code = slab->kind == FLHAL_MEM_PINNED ? make_pinned(m, align) : plain_buffer ? make_buffer(m) : make_svm(m, align);
    if (code != CL_SUCCESS) {
      destroy(m);
      return is_exhaustion(code) ? FLHAL_EXHAUSTED : fail_code(code, "memory_alloc", "the driver", fmt::format("for {} bytes", slab->bytes));
    }
    slab->memory = m;
    slab->address = slab->kind == FLHAL_MEM_PINNED || plain_buffer ? 0 : reinterpret_cast<uint64_t>(m->address);
    slab->host = slab->kind == FLHAL_MEM_PINNED || device->chip->memory == Memory::kFine ? m->address : nullptr;
    return FLHAL_OK;
  });
}

void memory_free(flhal_p_device*, flhal_p_memory* memory) {
  if (memory) destroy(memory);
}

flhal_status host_begin(flhal_p_device* device, const flhal_p_place* place, uint64_t bytes, uint32_t access, void** host) {
  if (device->chip->memory == Memory::kFine) {
    *host = pointer_to(*place);
    return FLHAL_OK;
  }
  if (device->chip->memory == Memory::kCoarse) {
    *host = pointer_to(*place);
    cl_int code = cl.clEnqueueSVMMap(device->immediate, CL_TRUE, map_flags(access), *host, bytes, 0, nullptr, nullptr);
    return code == CL_SUCCESS ? FLHAL_OK : fail_code(code, "host_begin", "clEnqueueSVMMap");
  }
  cl_int code = CL_SUCCESS;
  *host = cl.clEnqueueMapBuffer(device->immediate, place->memory->buffer, CL_TRUE, map_flags(access), place->offset, bytes, 0, nullptr,
                                nullptr, &code);
  return *host ? FLHAL_OK : fail_code(code, "host_begin", "clEnqueueMapBuffer");
}

flhal_status host_end(flhal_p_device* device, const flhal_p_place* place, uint64_t, uint32_t, void* host) {
  if (device->chip->memory == Memory::kFine) return FLHAL_OK;
  cl_event done = nullptr;
  cl_int code = device->chip->memory == Memory::kCoarse
                    ? cl.clEnqueueSVMUnmap(device->immediate, host, 0, nullptr, &done)
                    : cl.clEnqueueUnmapMemObject(device->immediate, place->memory->buffer, host, 0, nullptr, &done);
  return queued(nullptr, code, done, "host_end", "the unmapping", true);
}

}  // namespace slots
}  // namespace flhal::opencl

// src/dispatch/chip_faults.cc: see chip_faults.h.
#include "dispatch/chip_faults.h"

#include <map>
#include <memory>

#include "memory/address_map.h"
#include "memory/copy_engine.h"
#include "memory/pinned.h"
#include "memory/pool.h"

namespace flhal {
namespace {

struct All {
  std::mutex mutex;
  std::map<Stream*, ChipFaults*> of;    // those of closed devices are not deleted: looks may still come
};
All& all() {
  static All& a = *new All;
  return a;
}

}  // namespace

void ChipFaults::device_closes() {
  std::lock_guard lock(mutex_);
  gone_ = true;
}

struct ChipFaults::Pending {
  ChipFaults* faults;
  uint64_t call_number;
  const char* op;

  static void look(void* self) {
    std::unique_ptr<Pending> pending(static_cast<Pending*>(self));
    pending->faults->look(pending->call_number, pending->op);
  }
};

uint64_t ChipFaults::begin(kernels::LaunchArgs* args) {
  std::lock_guard lock(mutex_);
  if (told_) {
    const uint64_t zero = 0;
    // A failure of it is one of the stream, and the launch behind it will meet it.
    (void)fill_bytes(stream_, address_, sizeof(kernels::TextFault), &zero, 8);
    told_ = false;
  }
  const Slab* slab = AddressMap::find(address_);
  args->error_memory = slab->memory;
  args->error_offset = address_ - slab->base;
  args->error_address = slab->device_address;
  return next_++;
}

Status ChipFaults::end(uint64_t call_number, const char* op) {
  FLHAL_TRY(copy_bytes(stream_, reinterpret_cast<uint64_t>(host_), address_, sizeof *host_, FLHAL_COPY_MAY_RETURN_EARLY));
  if (!stream_->asynchronous) {
    std::lock_guard lock(mutex_);
    if (host_->error.code == 0 || host_->call_number != call_number) return FLHAL_OK;
    told_ = true;
    return fail(FLHAL_E_INVALID, "flhal_op_run: {}: {}", op, kernels::kernel_error_text(host_->error));
  }
  Point point = stream_->here();
  retire(&point, 1, Pending::look, new Pending{this, call_number, op});
  return FLHAL_OK;
}

void ChipFaults::look(uint64_t call_number, const char* op) {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    if (gone_ || host_->error.code == 0 || host_->call_number != call_number) return;
    told_ = true;
    text = fmt::format("{}: {}", op, kernels::kernel_error_text(host_->error));
  }
  stream_->poison(FLHAL_E_OP_FAILED, std::move(text));
}

Result<ChipFaults*> chip_faults(Stream* stream) {
  All& a = all();
  std::lock_guard lock(a.mutex);
  ChipFaults*& slot = a.of[stream];
  if (slot) return slot;
  FLHAL_ASSIGN(void* host, pinned_alloc(stream->device, sizeof(kernels::TextFault)));
  auto address = pool_allocate(stream, sizeof(kernels::TextFault));
  if (!address.ok()) {
    (void)pinned_free(host);
    return address.status();
  }
  const uint64_t zero = 0;
  FLHAL_TRY(fill_bytes(stream, *address, sizeof(kernels::TextFault), &zero, 8));
  return slot = new ChipFaults(stream, *address, new (host) kernels::TextFault);
}

void forget_chip_faults(Device* device) {
  All& a = all();
  std::lock_guard lock(a.mutex);
  for (auto at = a.of.begin(); at != a.of.end();) {
    if (at->first->device != device) { ++at; continue; }
    at->second->device_closes();
    at = a.of.erase(at);
  }
}

}  // namespace flhal

// src/dispatch/chip_faults.cc: see chip_faults.h.
#include "dispatch/chip_faults.h"

#include <map>
#include <memory>
#include <utility>

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
  uint64_t call_number, sequence;
  const char* op;

  static void look(void* self) {
    std::unique_ptr<Pending> pending(static_cast<Pending*>(self));
    pending->faults->look(pending->call_number, pending->sequence, pending->op);
  }
};

uint64_t ChipFaults::begin(kernels::LaunchArgs* args) {
  bool clear;
  uint64_t number;
  {
    std::lock_guard lock(mutex_);
    clear = std::exchange(told_, false);
    number = next_++;
  }
  if (clear) {                          // without the lock: a fill may wait for the stream, and hear its faults
    const uint64_t zero = 0;
    // A failure of it is one of the stream, and the launch behind it will meet it.
    (void)fill_bytes(stream_, address_, sizeof(kernels::TextFault), &zero, 8);
  }
  const Slab* slab = AddressMap::find(address_);
  args->error_memory = slab->memory;
  args->error_offset = address_ - slab->base;
  args->error_address = slab->device_address;
  return number;
}

Status ChipFaults::end(uint64_t call_number, const char* op) {
  FLHAL_TRY(copy_bytes(stream_, reinterpret_cast<uint64_t>(host_), address_, sizeof *host_, FLHAL_COPY_MAY_RETURN_EARLY));
  if (!stream_->asynchronous) {
    std::lock_guard lock(mutex_);
    if (host_->error.code == 0 || host_->call_number != call_number) return FLHAL_OK;
    told_ = true;
    return fail(FLHAL_E_INVALID, "flhal_op_run: {}: {}", op, kernels::kernel_error_text(host_->error));
  }
  const uint64_t sequence = stream_->here().sequence;
  return stream_->look_after(sequence, Pending::look, new Pending{this, call_number, sequence, op});
}

void ChipFaults::look(uint64_t call_number, uint64_t sequence, const char* op) {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    if (gone_ || host_->error.code == 0 || host_->call_number != call_number) return;
    told_ = true;
    text = fmt::format("{}: {}", op, kernels::kernel_error_text(host_->error));
  }
  stream_->poison(FLHAL_E_OP_FAILED, std::move(text), sequence);
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

// conformance/mutants/device.cc: wrong in counting, describing, opening and closing, and in how calls are refused.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mutant.h"

namespace flhal::mutants {
namespace {

bool exists(Plugin p, uint32_t i) {
  uint32_t n = 0;
  base.device_count(p, &n);
  return i < n;
}

using Change = void (*)(flhal_p_device_info_v1*);
Change change = nullptr;
// device_info as it is, then changed.
void describe_with(Change c) {
  change = c;
  table.device_info = [](Plugin p, uint32_t i, flhal_p_device_info_v1* out) {
    flhal_status s = base.device_info(p, i, out);
    if (s == FLHAL_OK) change(out);
    return s;
  };
}
// What device_info does with an index past the count.
flhal_status (*answer_beyond)(Plugin, flhal_p_device_info_v1*) = nullptr;
void beyond_count(flhal_status (*answer)(Plugin, flhal_p_device_info_v1*)) {
  answer_beyond = answer;
  table.device_info = [](Plugin p, uint32_t i, flhal_p_device_info_v1* out) {
    return exists(p, i) ? base.device_info(p, i, out) : answer_beyond(p, out);
  };
}

}  // namespace

MUTATION(count_changes) {
  table.device_count = [](Plugin p, uint32_t* out) {
    static int calls = 0;
    flhal_status s = base.device_count(p, out);
    if (++calls > 10) ++*out;
    return s;
  };
}
MUTATION(order_changes) {
  static int starts = 0;
  table.init = [](const flhal_host_v1* h, const flhal_init_v1* in, Plugin* out) {
    ++starts;
    return base.init(h, in, out);
  };
  table.device_info = [](Plugin p, uint32_t i, flhal_p_device_info_v1* out) {
    return base.device_info(p, starts % 2 == 0 && i < 2 ? 1 - i : i, out);
  };
}
MUTATION(uuid_of_the_process) {
  describe_with([](flhal_p_device_info_v1* out) {
    pid_t id = getpid();
    std::memcpy(out->uuid, &id, sizeof id);
  });
}
MUTATION(uuid_is_zero) {
  describe_with([](flhal_p_device_info_v1* out) { std::memset(out->uuid, 0, sizeof out->uuid); });
}
MUTATION(uuid_of_the_model) {
  describe_with([](flhal_p_device_info_v1* out) { std::memcpy(out->uuid, "the same for all", sizeof out->uuid); });
}
MUTATION(chip_name_with_capitals) {
  describe_with([](flhal_p_device_info_v1* out) { out->chip = "MyChip"; });
}
MUTATION(texts_are_reused) {
  describe_with([](flhal_p_device_info_v1* out) {
    static char text[32];
    static int calls = 0;
    std::snprintf(text, sizeof text, "Chip, asked %d times", ++calls);
    out->product = text;
  });
}
MUTATION(largest_slab_above_the_memory) {
  describe_with([](flhal_p_device_info_v1* out) { out->largest_slab_bytes = 2 * out->memory_bytes; });
}
MUTATION(claims_host_views) {
  describe_with([](flhal_p_device_info_v1* out) { out->caps |= FLHAL_CAP_HOST_VISIBLE; });
}
MUTATION(dtype_listed_twice) {
  describe_with([](flhal_p_device_info_v1* out) {
    static const flhal_dtype kTypes[] = {FLHAL_F32, FLHAL_I32, FLHAL_F32};
    out->storage_dtypes = kTypes;
    out->n_storage_dtypes = 3;
  });
}
MUTATION(device_info_writes_past_the_struct) {
  describe_with([](flhal_p_device_info_v1* out) { std::memset(out + 1, 0, 8); });
}
MUTATION(every_index_is_a_chip) {
  beyond_count([](Plugin p, flhal_p_device_info_v1* out) { return base.device_info(p, 0, out); });
}
MUTATION(refuses_without_a_sentence) {
  beyond_count([](Plugin, flhal_p_device_info_v1*) -> flhal_status { return FLHAL_E_INVALID; });
}
MUTATION(sentence_of_another_status) {
  beyond_count([](Plugin, flhal_p_device_info_v1*) -> flhal_status {
    refuse(FLHAL_E_INTERNAL, "mutant: device_info: there is no such chip");
    return FLHAL_E_INVALID;
  });
}
MUTATION(status_of_its_own) {
  beyond_count([](Plugin, flhal_p_device_info_v1*) { return refuse(-77, "mutant: device_info: there is no such chip"); });
}
MUTATION(sentence_with_success) {
  table.device_count = [](Plugin p, uint32_t* out) {
    host->set_error(FLHAL_OK, 0, "mutant: counted");
    return base.device_count(p, out);
  };
}
MUTATION(refusal_gives_a_handle) {
  table.device_open = [](Plugin p, uint32_t i, Device* out) {
    if (!exists(p, i)) *out = reinterpret_cast<Device>(out);
    return base.device_open(p, i, out);
  };
}
MUTATION(refusal_breaks_the_device) {
  static bool broken = false;
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) {
    flhal_status s = base.memory_alloc(d, slab);
    broken = broken || s < 0;
    return s;
  };
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) {
    return broken ? refuse(FLHAL_E_INTERNAL, "mutant: copy: an earlier call failed") : base.copy(d, s, what);
  };
}
MUTATION(open_gives_no_handle) {
  table.device_open = [](Plugin, uint32_t, Device* out) -> flhal_status {
    *out = nullptr;
    return FLHAL_OK;
  };
}
MUTATION(opens_once) {
  table.device_open = [](Plugin p, uint32_t i, Device* out) {
    static int calls = 0;
    return calls++ == 0 ? base.device_open(p, i, out) : refuse(FLHAL_E_INTERNAL, "mutant: device_open: the chip was open before");
  };
}
MUTATION(close_leaves_a_file) {
  table.device_close = [](Device d) {
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) refuse(FLHAL_E_INTERNAL, "mutant: /dev/null");
    base.device_close(d);
  };
}
MUTATION(budget_above_the_total) {
  table.memory_budget = [](Device d, uint64_t* free_bytes, uint64_t* total_bytes) {
    flhal_status s = base.memory_budget(d, free_bytes, total_bytes);
    *free_bytes = *total_bytes + 1;
    return s;
  };
}

}  // namespace flhal::mutants

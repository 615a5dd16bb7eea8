// conformance/mutants/entry.cc: wrong in the library, its entry or the shape of its tables.
#include <unistd.h>

#include <cstring>

#include "mutant.h"

namespace flhal::mutants {

// These three are wrong as files: libflhal_mutant_<name>.so is linked in another way.
MUTATION(exports_another_symbol) {}
MUTATION(undefined_symbol) {}
MUTATION(needs_python) {}

MUTATION(build_id_counts_calls) {
  after_entry = [](flhal_plugin_info_v1* out) {
    static char texts[64][16];
    static int calls = 0;
    char* text = texts[calls++ % 64];
    text[0] = 'b', text[1] = static_cast<char>('0' + calls), text[2] = 0;
    out->build_id = text;
  };
}
MUTATION(entry_starts_thread) {
  after_entry = [](flhal_plugin_info_v1*) { start_thread([] { for (;;) pause(); }); };
}
MUTATION(entry_writes_past_the_struct) {
  after_entry = [](flhal_plugin_info_v1* out) { std::memset(out + 1, 0x11, 8); };
}
MUTATION(entry_changes_the_head) {
  after_entry = [](flhal_plugin_info_v1* out) { out->struct_type = FLHAL_ST_TABLE; };
}
MUTATION(entry_refuses_longer_struct) {
  before_entry = [](const flhal_plugin_info_v1* out) -> flhal_status {
    return out->struct_size == sizeof *out ? FLHAL_OK : refuse(FLHAL_E_ABI, "mutant: flhal_plugin_info_v1 has another size than mine");
  };
}
MUTATION(id_with_a_space) { info.id = "my chip"; }
MUTATION(versions_the_wrong_way_round) { info.oldest_host_minor = info.abi_minor + 1; }
MUTATION(unknown_flag) { info.flags |= 1u << 9; }
MUTATION(copy_is_missing) { table.copy = nullptr; }
MUTATION(half_of_the_module_slots) { table.function_get = nullptr; }
MUTATION(any_optional_table) {
  info.optional_table = [](const char*, uint32_t) -> const void* { return &ops; };
}
MUTATION(optional_table_moves) {
  info.optional_table = [](const char* name, uint32_t) -> const void* {
    return std::strcmp(name, "ops") == 0 ? new flhal_ops_v1(ops) : nullptr;
  };
}

}  // namespace flhal::mutants

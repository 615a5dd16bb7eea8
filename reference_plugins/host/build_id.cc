// reference_plugins/host/build_id.cc: finds the GNU build-id note in the library's own program headers. A date or a commit
// would either change without a change of the code or fail to change with one.
#include "build_id.h"

#include <elf.h>
#include <link.h>

#include <array>
#include <cstring>

extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace flhal::host {
namespace {

std::array<char, 65> read_build_id() {
  std::array<char, 65> text{"unknown"};
  const char* base = reinterpret_cast<const char*>(&__ehdr_start);
  auto* header = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
  for (int i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (header[i].p_type != PT_NOTE) continue;
    const char* at = base + header[i].p_vaddr;
    const char* end = at + header[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof *note;
      auto* bytes = reinterpret_cast<const unsigned char*>(name + ((note->n_namesz + 3) & ~3u));
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        const size_t n = note->n_descsz < 32 ? note->n_descsz : 32;
        for (size_t b = 0; b < n; ++b) {
          text[2 * b] = "0123456789abcdef"[bytes[b] >> 4];
          text[2 * b + 1] = "0123456789abcdef"[bytes[b] & 15];
        }
        text[2 * n] = 0;
        return text;
      }
      at = reinterpret_cast<const char*>(bytes) + ((note->n_descsz + 3) & ~3u);
    }
  }
  return text;
}

}  // namespace

const char* build_id() {
  static const std::array<char, 65> text = read_build_id();
  return text.data();
}

}  // namespace flhal::host

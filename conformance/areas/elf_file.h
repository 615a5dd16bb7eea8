// conformance/areas/elf_file.h: what a shared library exports and needs, read from its file.
#pragma once

#include <elf.h>

#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

#include "runner/record.h"

namespace flhal::conformance {

struct ElfFile {
  std::set<std::string> exported;    // defined, global or weak, visible
  std::set<std::string> needed;      // DT_NEEDED

  explicit ElfFile(const std::string& path) {
    std::string bytes = read_file(path);
    auto at = [&](uint64_t offset, uint64_t size) {
      if (offset > bytes.size() || size > bytes.size() - offset) throw std::runtime_error(path + " is a damaged ELF file");
      return bytes.data() + offset;
    };
    auto* head = reinterpret_cast<const Elf64_Ehdr*>(at(0, sizeof(Elf64_Ehdr)));
    if (std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
      throw std::runtime_error(path + " is no 64-bit ELF file");
    for (unsigned i = 0; i < head->e_shnum; ++i) {
      auto section = [&](uint64_t n) {
        return reinterpret_cast<const Elf64_Shdr*>(at(head->e_shoff + n * head->e_shentsize, sizeof(Elf64_Shdr)));
      };
      const Elf64_Shdr* s = section(i);
      if (s->sh_type != SHT_DYNSYM && s->sh_type != SHT_DYNAMIC) continue;
      const Elf64_Shdr* text = section(s->sh_link);
      auto name = [&](uint64_t offset) { return std::string(at(text->sh_offset + offset, 1)); };
      for (uint64_t o = 0; o + s->sh_entsize <= s->sh_size && s->sh_entsize != 0; o += s->sh_entsize) {
        if (s->sh_type == SHT_DYNSYM) {
          auto* symbol = reinterpret_cast<const Elf64_Sym*>(at(s->sh_offset + o, sizeof(Elf64_Sym)));
          unsigned char bind = ELF64_ST_BIND(symbol->st_info), visible = ELF64_ST_VISIBILITY(symbol->st_other);
          if (symbol->st_shndx != SHN_UNDEF && bind != STB_LOCAL && (visible == STV_DEFAULT || visible == STV_PROTECTED))
            exported.insert(name(symbol->st_name));
        } else {
          auto* entry = reinterpret_cast<const Elf64_Dyn*>(at(s->sh_offset + o, sizeof(Elf64_Dyn)));
          if (entry->d_tag == DT_NEEDED) needed.insert(name(entry->d_un.d_val));
        }
      }
    }
  }
};

}  // namespace flhal::conformance

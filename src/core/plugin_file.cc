// src/core/plugin_file.cc: reads the ELF header, program headers, dynamic section and symbol names of a library.
//
// Nothing in the file is trusted: every offset is checked against the file's size before it is used. The file is mapped,
// so a library of a gigabyte costs a few pages.
#include "core/plugin_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/abi_range.h"
#include "core/file_text.h"

namespace flhal {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr const char* kMachineName = "AArch64";
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
constexpr const char* kMachineName = "RISC-V";
#else
#error "name this processor family here"
#endif

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_386: return "32-bit x86";
    case EM_AARCH64: return "AArch64";
    case EM_ARM: return "32-bit ARM";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "POWER";
    case EM_S390: return "s390";
    default: return fmt::format("machine number {}", machine);
  }
}

struct Mapping {
  const unsigned char* bytes = nullptr;
  uint64_t size = 0;
  ~Mapping() {
    if (bytes != nullptr) munmap(const_cast<unsigned char*>(bytes), size);
  }
  template <typename T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    if (offset % alignof(T) != 0 || offset > size || count > (size - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(bytes + offset);
  }
  // A terminated string that lies in the file; nullptr otherwise.
  const char* text(uint64_t offset) const {
    if (offset >= size || memchr(bytes + offset, 0, size - offset) == nullptr) return nullptr;
    return reinterpret_cast<const char*>(bytes + offset);
  }
};

constexpr const char* kReinstall = "install the plugin's package again";

Refusal not_a_library(const std::string& path, std::string what, std::string remedy) {
  return refuse(FLHAL_E_INVALID, fmt::format("the library {} {}", path, what), std::move(remedy));
}

Refusal truncated(const std::string& path, uint64_t bytes, const char* what) {
  return not_a_library(path, fmt::format("is cut off: its {} lie beyond its end at {} bytes", what, bytes), kReinstall);
}

Refusal check_header(const std::string& path, const Mapping& file, const Elf64_Ehdr** out) {
  if (file.size < 4 || memcmp(file.bytes, ELFMAG, SELFMAG) != 0) {
    bool text = true;
    for (uint64_t i = 0; i < file.size && i < 256; ++i) text = text && (file.bytes[i] >= 32 || strchr("\t\r\n", file.bytes[i])) && file.bytes[i] != 0;
    return not_a_library(path, fmt::format("is not an ELF file: it is {}", file.size == 0 ? "empty" : text ? "a text file" : "some other binary file"),
                         "name the plugin's shared library (.so) or its manifest (.json)");
  }
  if (file.size < sizeof(Elf64_Ehdr)) return truncated(path, file.size, "first headers");
  const auto* header = file.at<Elf64_Ehdr>(0);
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != kMachine) {
    // e_machine lies at the same place in 32-bit files.
    return not_a_library(path, fmt::format("is for another processor: {}, and this process runs on {}", machine_name(header->e_machine), kMachineName),
                         "install the plugin's package for this processor");
  }
  if (header->e_type != ET_DYN)
    return not_a_library(path, "is an ELF file but no shared library", "name the plugin's shared library (.so)");
  *out = header;
  return {};
}

struct Contents {
  std::vector<std::string> needed, exported;   // exported: names that begin with flhal_plugin_v
  std::string run_path, build_id;
  bool symbols_seen = false;
};

uint64_t file_offset(const Elf64_Phdr* segments, size_t n, uint64_t address) {
  for (size_t i = 0; i < n; ++i)
    if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr && address - segments[i].p_vaddr < segments[i].p_filesz)
      return address - segments[i].p_vaddr + segments[i].p_offset;
  return UINT64_MAX;
}

void read_build_id(const Mapping& file, const Elf64_Phdr& segment, Contents* out) {
  uint64_t offset = segment.p_offset, end = segment.p_offset + segment.p_filesz;
  while (offset + sizeof(Elf64_Nhdr) <= end) {
    const auto* note = file.at<Elf64_Nhdr>(offset);
    if (note == nullptr) return;
    uint64_t name = offset + sizeof *note, text = name + ((note->n_namesz + 3ull) & ~3ull);
    const auto* bytes = file.at<unsigned char>(text, note->n_descsz);
    if (bytes == nullptr) return;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(file.bytes + name, "GNU", 4) == 0 && note->n_descsz <= 64) {
      for (uint32_t i = 0; i < note->n_descsz; ++i) out->build_id += fmt::format("{:02x}", bytes[i]);
      return;
    }
    offset = text + ((note->n_descsz + 3ull) & ~3ull);
  }
}

Refusal read_contents(const std::string& path, const Mapping& file, const Elf64_Ehdr* header, Contents* out) {
  const size_t n_segments = header->e_phnum;
  const auto* segments = file.at<Elf64_Phdr>(header->e_phoff, n_segments);
  if (segments == nullptr || header->e_phentsize != sizeof(Elf64_Phdr)) return truncated(path, file.size, "program headers");
  const Elf64_Phdr* dynamic = nullptr;
  for (size_t i = 0; i < n_segments; ++i) {
    if (segments[i].p_type != PT_LOAD && segments[i].p_type != PT_DYNAMIC) continue;
    if (segments[i].p_offset > file.size || segments[i].p_filesz > file.size - segments[i].p_offset)
      return truncated(path, file.size, "contents");
    if (segments[i].p_type == PT_DYNAMIC) dynamic = &segments[i];
  }
  for (size_t i = 0; i < n_segments && out->build_id.empty(); ++i)
    if (segments[i].p_type == PT_NOTE) read_build_id(file, segments[i], out);
  if (dynamic == nullptr)
    return not_a_library(path, "is an ELF file but no shared library (no dynamic section)", "name the plugin's shared library (.so)");

  const size_t n_entries = dynamic->p_filesz / sizeof(Elf64_Dyn);
  const auto* entries = file.at<Elf64_Dyn>(dynamic->p_offset, n_entries);
  if (entries == nullptr) return truncated(path, file.size, "dynamic entries");
  uint64_t strings = UINT64_MAX;
  for (size_t i = 0; i < n_entries && entries[i].d_tag != DT_NULL; ++i)
    if (entries[i].d_tag == DT_STRTAB) strings = file_offset(segments, n_segments, entries[i].d_un.d_ptr);
  if (strings == UINT64_MAX) return {};
  for (size_t i = 0; i < n_entries && entries[i].d_tag != DT_NULL; ++i) {
    const char* text = file.text(strings + entries[i].d_un.d_val);
    if (text == nullptr) continue;
    if (entries[i].d_tag == DT_NEEDED) out->needed.push_back(text);
    if (entries[i].d_tag == DT_RUNPATH || entries[i].d_tag == DT_RPATH) out->run_path = text;
  }

  // Symbol names by section headers. A file without section headers is legal: then dlsym has to tell.
  const auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (header->e_shoff == 0 || sections == nullptr) return {};
  for (size_t i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const size_t n_symbols = sections[i].sh_size / sizeof(Elf64_Sym);
    const auto* symbols = file.at<Elf64_Sym>(sections[i].sh_offset, n_symbols);
    if (symbols == nullptr) continue;
    out->symbols_seen = true;
    for (size_t s = 0; s < n_symbols; ++s) {
      if (symbols[s].st_shndx == SHN_UNDEF) continue;
      const char* name = file.text(strings + symbols[s].st_name);
      if (name != nullptr && strncmp(name, "flhal_plugin_v", 14) == 0) out->exported.push_back(name);
    }
  }
  return {};
}

Refusal check_exports(const std::string& path, const Contents& contents) {
  if (!contents.symbols_seen) return {};
  for (const std::string& name : contents.exported)
    if (name == "flhal_plugin_v1") return {};
  for (const std::string& name : contents.exported) {
    char* end = nullptr;
    unsigned long major = strtoul(name.c_str() + 14, &end, 10);
    if (end != name.c_str() + 14 && *end == 0 && major < 65536) {
      Refusal refusal = other_major(static_cast<uint32_t>(major), "");
      refusal.reason = fmt::format("the library {} was built for the plugin ABI {}.x and this flhal speaks 1.x", path, major);
      return refusal;
    }
  }
  return not_a_library(path, "does not export flhal_plugin_v1, so it is no plugin of flhal",
                       "name the plugin's own library; a plugin exports exactly that symbol (see flhal/plugin.h)");
}

// An instrumented plugin ends a plain process while it is being opened, so this cannot wait for the field `sanitizer`.
Refusal check_sanitizer(const std::string& path, const Contents& contents) {
  constexpr struct {
    const char* library, *name, *symbol;
  } kRuntimes[] = {{"libasan.so", "AddressSanitizer", "__asan_init"}, {"libtsan.so", "ThreadSanitizer", "__tsan_init"}};
  for (const auto& runtime : kRuntimes)
    for (const std::string& needed : contents.needed)
      if (needed.rfind(runtime.library, 0) == 0 && dlsym(RTLD_DEFAULT, runtime.symbol) == nullptr)
        return not_a_library(path, fmt::format("was built with {} and this process was not", runtime.name),
                             fmt::format("install the plain build of the plugin, or start the process with LD_PRELOAD={}", needed));
  return {};
}

}  // namespace

Refusal inspect_plugin_file(const std::string& path, PluginFile* out) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return open_failure(path, "library", errno);
  struct stat info{};
  Mapping file;
  Refusal refusal;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    refusal = not_a_library(path, S_ISDIR(info.st_mode) ? "is a folder" : "is not a regular file", "name the plugin's shared library (.so)");
  } else if (info.st_size > 0) {
    void* mapped = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      refusal = open_failure(path, "library", errno);
    } else {
      file.bytes = static_cast<const unsigned char*>(mapped);
      file.size = static_cast<uint64_t>(info.st_size);
    }
  }
  close(fd);
  FLHAL_REFUSE_ON(std::move(refusal));
  const Elf64_Ehdr* header = nullptr;
  FLHAL_REFUSE_ON(check_header(path, file, &header));
  Contents contents;
  FLHAL_REFUSE_ON(read_contents(path, file, header, &contents));
  FLHAL_REFUSE_ON(check_exports(path, contents));
  FLHAL_REFUSE_ON(check_sanitizer(path, contents));

  char* real = realpath(path.c_str(), nullptr);
  out->path = real ? real : path;
  free(real);
  out->bytes = file.size;
  out->device = info.st_dev;
  out->inode = info.st_ino;
  out->modified_ns = static_cast<int64_t>(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
  out->build_id = std::move(contents.build_id);
  out->needed = std::move(contents.needed);
  out->run_path = std::move(contents.run_path);
  return {};
}

}  // namespace flhal

// reference_plugins/host/elf_object.cc: checks of an ELF image, and dlopen of it through a file that has no name.
//
// The loader maps what the headers say and does not ask whether the file is that long: touching a page behind the end of a
// truncated file is SIGBUS. So the headers are read here first.
#include "elf_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace flhal::host {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr const char* kMachineName = "aarch64";
#endif

std::string system_text(int code) { return std::strerror(code); }

// A file without a name that holds `image`; negative: -errno.
int nameless_file(std::string_view image) {
  int file = memfd_create("flhal-host-elf", MFD_CLOEXEC);
  if (file < 0) return -errno;
  while (!image.empty()) {
    ssize_t n = write(file, image.data(), image.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int code = n < 0 ? errno : EIO;
      close(file);
      return -code;
    }
    image.remove_prefix(static_cast<size_t>(n));
  }
  return file;
}

}  // namespace

std::string fault_of_image(std::string_view image) {
  if (image.size() < sizeof(Elf64_Ehdr) || image.substr(0, SELFMAG) != std::string_view(ELFMAG, SELFMAG))
    return fmt::format("the {} bytes are no ELF image (and no path, which begins with \"/\")", image.size());
  Elf64_Ehdr head;
  std::memcpy(&head, image.data(), sizeof head);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != kMachine)
    return fmt::format("the ELF image is for another processor (machine {}, {} bits); this one is {}", head.e_machine,
                       head.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, kMachineName);
  if (head.e_type != ET_DYN)
    return fmt::format("the ELF image is no shared object (type {}); link it with -shared -fPIC", head.e_type);
  if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phoff > image.size() ||
      (image.size() - head.e_phoff) / sizeof(Elf64_Phdr) < head.e_phnum)
    return fmt::format("the ELF image is truncated: its {} program headers do not fit its {} bytes", head.e_phnum, image.size());
  bool loads = false, dynamic = false;
  for (uint16_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image.data() + head.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    (segment.p_type == PT_LOAD ? loads : dynamic) = true;
    if (segment.p_offset > image.size() || segment.p_filesz > image.size() - segment.p_offset)
      return fmt::format("the ELF image is truncated: segment {} ends at byte {} of {}", i, segment.p_offset + segment.p_filesz, image.size());
  }
  if (!loads || !dynamic) return "the ELF image has nothing that could be loaded; link it with -shared -fPIC";
  return "";
}

std::string ElfObject::open(std::string_view data) {
  while (!data.empty() && data.back() == 0 && data.front() == '/') data.remove_suffix(1);   // a path with its terminator
  std::string path;
  if (!data.empty() && data.front() == '/') {
    path = data;
    std::ifstream in(path, std::ios::binary);
    if (!in) return fmt::format("{}: {}", path, system_text(errno));
    if (!std::filesystem::is_regular_file(path)) return fmt::format("{}: it is no file", path);
    const std::string image{std::istreambuf_iterator<char>(in), {}};
    if (std::string why = fault_of_image(image); !why.empty()) return fmt::format("{}: {}", path, why);
  } else {
    if (std::string why = fault_of_image(data); !why.empty()) return why;
    file_ = nameless_file(data);
    if (file_ < 0) return fmt::format("no memory for the image: {}", system_text(-file_));
    path = fmt::format("/proc/self/fd/{}", file_);
  }
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return "";
  const char* why = dlerror();
  return why != nullptr ? why : "the loader refuses it";
}

void* ElfObject::find(const char* name) const { return dlsym(handle_, name); }

ElfObject::~ElfObject() {
  if (handle_ != nullptr) dlclose(handle_);
  if (file_ >= 0) close(file_);
}

}  // namespace flhal::host

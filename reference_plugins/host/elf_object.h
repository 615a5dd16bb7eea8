// reference_plugins/host/elf_object.h: a shared object from an image in memory or from a path, looked at before it is opened.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flhal::host {

class ElfObject {
 public:
  ElfObject() = default;
  ~ElfObject();
  ElfObject(const ElfObject&) = delete;
  ElfObject& operator=(const ElfObject&) = delete;

  // `data` is the image of a shared object for this processor, or the absolute path of one ("/..."). "" when it is open,
  // else why not: what was found and what is needed.
  std::string open(std::string_view data);
  void* find(const char* name) const;   // nullptr when it exports no such function

 private:
  void* handle_ = nullptr;
  int file_ = -1;                       // of an image; open as long as the object: the loader knows objects by their names
};

// Why `image` cannot be opened, "" when nothing speaks against it. Reads nothing past its end.
std::string fault_of_image(std::string_view image);

}  // namespace flhal::host

// reference_plugins/opencl/icd_files.cc: reads *.icd as ocl-icd and Khronos' loader do: one line, the library's name.
#include "icd_files.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace flhal::opencl {
namespace {

namespace fs = std::filesystem;

// OCL_ICD_VENDORS is a folder or one file for both loaders; OPENCL_VENDOR_PATH is Khronos' older name of the folder.
fs::path vendors() {
  for (const char* name : {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"})
    if (const char* value = secure_getenv(name); value && *value) return value;
  return "/etc/OpenCL/vendors";
}

std::vector<fs::path> icd_files() {
  std::vector<fs::path> files;
  std::error_code error;
  fs::path place = vendors();
  if (place.extension() == ".icd" && fs::is_regular_file(place, error)) return {place};
  for (const auto& entry : fs::directory_iterator(place, fs::directory_options::skip_permission_denied, error))
    if (entry.path().extension() == ".icd") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string complaint(const fs::path& file) {
  std::ifstream stream(file);
  std::string library;
  if (!stream) return fmt::format("{} cannot be read", file.string());
  std::getline(stream, library);
  while (!library.empty() && std::isspace(static_cast<unsigned char>(library.back()))) library.pop_back();
  if (library.empty() || library.size() > 4096) return fmt::format("{} names no library", file.string());
  // A library that the loader has opened is opened already: this adds a reference and runs nothing.
  if (void* opened = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(opened);
    return "";
  }
  const char* why = dlerror();
  return fmt::format("{} names the library \"{}\", which cannot be opened ({})", file.string(), library.substr(0, 200), why ? why : "no reason given");
}

}  // namespace

std::string icd_places() {
  fs::path place = vendors();
  std::error_code error;
  return place.string() + (fs::exists(place, error) ? "" : " (which does not exist)");
}

std::string broken_icd_files() {
  std::string text;
  int named = 0, more = 0;
  for (const fs::path& file : icd_files()) {
    std::string one = complaint(file);
    if (one.empty()) continue;
    if (named++ < 3) text += (text.empty() ? "" : "; ") + one;
    else ++more;
  }
  if (more) text += fmt::format("; and {} more", more);
  return text;
}

}  // namespace flhal::opencl

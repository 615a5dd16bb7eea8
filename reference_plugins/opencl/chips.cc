// reference_plugins/opencl/chips.cc: asking platforms and devices; see chips.h.
#include "chips.h"

#include <CL/cl_ext.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "../host/machine.h"
#include "code.h"
#include "icd_files.h"

namespace flhal::opencl {
namespace {

constexpr uint64_t kGranule = 65536;   // of core's address map: slabs begin at multiples of it

void warn(const std::string& text) {
  if (host() && host()->log) host()->log(1, ("opencl: " + text).c_str());
}

template <class Get>
std::string text_by(Get&& get) {
  size_t bytes = 0;
  if (get(size_t{0}, static_cast<void*>(nullptr), &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (get(bytes, static_cast<void*>(text.data()), static_cast<size_t*>(nullptr)) != CL_SUCCESS) return "";
  text.resize(strnlen(text.c_str(), text.size()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

std::string platform_text(cl_platform_id p, cl_platform_info what) {
  return text_by([&](size_t n, void* to, size_t* size) { return cl.clGetPlatformInfo(p, what, n, to, size); });
}
std::string device_text(cl_device_id d, cl_device_info what) {
  return text_by([&](size_t n, void* to, size_t* size) { return cl.clGetDeviceInfo(d, what, n, to, size); });
}

template <class T>
T device_value(cl_device_id d, cl_device_info what, T otherwise = T{}) {
  T value{};
  return cl.clGetDeviceInfo(d, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : otherwise;
}

// "OpenCL 3.0 PoCL" -> 30; 0 when it is none.
int version_number(const std::string& text, const char* prefix) {
  int major = 0, minor = 0;
  return sscanf(text.c_str(), (std::string(prefix) + " %d.%d").c_str(), &major, &minor) == 2 ? major * 10 + minor : 0;
}

bool has_word(const std::string& list, const std::string& word) { return (" " + list + " ").find(" " + word + " ") != std::string::npos; }

std::string pci_address(cl_device_id d, const std::string& extensions) {
  if (has_word(extensions, "cl_khr_pci_bus_info")) {
    auto at = device_value<cl_device_pci_bus_info_khr>(d, CL_DEVICE_PCI_BUS_INFO_KHR);
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at.pci_domain, at.pci_bus, at.pci_device, at.pci_function);
  }
  if (has_word(extensions, "cl_nv_device_attribute_query")) {
    constexpr cl_device_info kBus = 0x4008, kSlot = 0x4009, kDomain = 0x400A;   // CL_DEVICE_PCI_*_ID_NV; slot is device << 3
    auto slot = device_value<cl_uint>(d, kSlot);
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", device_value<cl_uint>(d, kDomain), device_value<cl_uint>(d, kBus), slot >> 3, slot & 7);
  }
  return "";
}

Memory memory_of(cl_device_id d, int version, const std::string& wanted) {
  auto svm = version >= 20 ? device_value<cl_device_svm_capabilities>(d, CL_DEVICE_SVM_CAPABILITIES) : 0;
  bool entries = cl.clSVMAlloc && cl.clSVMFree && cl.clEnqueueSVMMemcpy && cl.clEnqueueSVMMemFill && cl.clEnqueueSVMMap &&
                 cl.clEnqueueSVMUnmap && cl.clSetKernelArgSVMPointer;
  bool fine = entries && (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER), coarse = entries && (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
  if (wanted == "buffer" || (!fine && !coarse)) return Memory::kBuffer;
  if (fine && !(wanted == "coarse" && coarse)) return Memory::kFine;
  return Memory::kCoarse;
}

// The C versions a device compiles, best first, then the name of binaries. A device that knows a later C 2.0 or 3.0 knows
// 1.2 too: that one is what portable kernels are written in.
std::string dialects_of(cl_device_id d, int version) {
  std::string list;
  if (device_value<cl_bool>(d, CL_DEVICE_COMPILER_AVAILABLE)) {
    int c = version_number(device_text(d, CL_DEVICE_OPENCL_C_VERSION), "OpenCL C");
    if (version >= 30) c = std::max(c, 30);
    if (c >= 30) list += "opencl-c-3.0 ";
    if (c >= 20 && c < 30) list += "opencl-c-2.0 ";
    if (c >= 12) list += "opencl-c-1.2 ";
  }
  return list + "opencl-binary";
}

void make_uuid(Chip& chip, const std::string& platform, const std::string& extensions, std::map<std::string, int>& seen) {
  if (has_word(extensions, "cl_khr_device_uuid") &&
      cl.clGetDeviceInfo(chip.device, CL_DEVICE_UUID_KHR, 16, chip.info.uuid, nullptr) == CL_SUCCESS) {
    // Two platforms may show one chip: the second view is told apart, or core would refuse both.
    std::string text(reinterpret_cast<const char*>(chip.info.uuid), 16);
    if (seen[text]++ == 0) return;
  }
  static const flhal::host::Machine machine = flhal::host::read_machine();
  std::string identity = fmt::format("flhal opencl device 1/{}/{}/{}/{}/{}", std::string(reinterpret_cast<const char*>(machine.uuid), 16),
                                     platform, chip.vendor, chip.product, chip.pci);
  int twin = seen[identity]++;
  flhal::host::hash_to_uuid(identity + "/" + std::to_string(twin), chip.info.uuid);
}

void describe(Chip& chip, const std::string& platform_name, const std::string& platform_version, int version, const std::string& extensions,
              const std::string& wanted, std::map<std::string, int>& seen) {
  cl_device_id d = chip.device;
  chip.product = device_text(d, CL_DEVICE_NAME);
  chip.vendor = device_text(d, CL_DEVICE_VENDOR);
  chip.driver = fmt::format("{} {}", platform_name, device_text(d, CL_DRIVER_VERSION));
  chip.capability = fmt::format("{}.{}", version / 10, version % 10);
  chip.pci = pci_address(d, extensions);
  chip.fingerprint = fmt::format("{}/{}/{}/{}/{}", chip.product, device_text(d, CL_DEVICE_VERSION), device_text(d, CL_DRIVER_VERSION),
                                 platform_name, platform_version);
  chip.dialects = dialects_of(d, version);
  chip.memory = memory_of(d, version, wanted);
  chip.unified = device_value<cl_bool>(d, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  chip.base_alignment = std::max<uint64_t>(1, device_value<cl_uint>(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
  auto type = device_value<cl_device_type>(d, CL_DEVICE_TYPE);

  flhal_p_device_info_v1& info = chip.info;
  make_uuid(chip, platform_name, extensions, seen);
  info.chip = "opencl";
  info.product = chip.product.c_str();
  info.vendor = chip.vendor.c_str();
  info.driver = chip.driver.c_str();
  info.compute_capability = chip.capability.c_str();
  info.pci_address = chip.pci.c_str();
  info.fingerprint = chip.fingerprint.c_str();
  info.dialects = chip.dialects.c_str();
  info.caps = FLHAL_CAP_COMPUTE_COPY_OVERLAP | FLHAL_CAP_EVENT_HOST_SIGNAL;
  if (chip.memory != Memory::kBuffer) info.caps |= FLHAL_CAP_ADDRESSES | FLHAL_CAP_ADDRESSES_OURS;
  if (chip.memory == Memory::kFine) info.caps |= FLHAL_CAP_HOST_VISIBLE | FLHAL_CAP_HOST_COHERENT;
  if (device_value<cl_device_fp_config>(d, CL_DEVICE_DOUBLE_FP_CONFIG) != 0) info.caps |= FLHAL_CAP_FP64;
  if (device_text(d, CL_DEVICE_PROFILE) != "EMBEDDED_PROFILE" || has_word(extensions, "cles_khr_int64")) info.caps |= FLHAL_CAP_INT64;
  if (type & CL_DEVICE_TYPE_CPU) info.caps |= FLHAL_CAP_LANES_ARE_CORES;
  info.memory_bytes = device_value<cl_ulong>(d, CL_DEVICE_GLOBAL_MEM_SIZE);
  // Slabs of SVM are allocated with a granule more, to begin at one.
  uint64_t largest = device_value<cl_ulong>(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.largest_slab_bytes = largest > 2 * kGranule ? (largest - kGranule) / kGranule * kGranule : largest;
  info.slab_alignment = std::max<uint64_t>(kGranule, chip.base_alignment);
  info.preferred_vector_bytes = std::max<cl_uint>(1, device_value<cl_uint>(d, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)) * 4;
  info.max_local_bytes = static_cast<uint32_t>(std::min<cl_ulong>(device_value<cl_ulong>(d, CL_DEVICE_LOCAL_MEM_SIZE), UINT32_MAX));
  info.dlpack_device_type = 4;   // kDLOpenCL
  // Memory of any type can lie on any chip; what it computes with is told by the capabilities and by its compiler.
  info.device_class = type & CL_DEVICE_TYPE_CPU ? FLHAL_DEVICE_CLASS_CPU_DRIVER
                      : type & CL_DEVICE_TYPE_GPU ? FLHAL_DEVICE_CLASS_GPU : FLHAL_DEVICE_CLASS_ACCELERATOR;
}

void find_on(cl_platform_id platform, const std::string& wanted, std::map<std::string, int>& seen, std::deque<Chip>* out) {
  std::string name = platform_text(platform, CL_PLATFORM_NAME), text = platform_text(platform, CL_PLATFORM_VERSION);
  cl_uint n = 0;
  cl_int code = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n);
  if (code == CL_DEVICE_NOT_FOUND) return;
  std::vector<cl_device_id> devices(n);
  if (code == CL_SUCCESS && n != 0) code = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, devices.data(), nullptr);
  if (code != CL_SUCCESS) return warn(fmt::format("the platform \"{}\" is left out: clGetDeviceIDs answered {}", name, code_name(code)));
  for (cl_device_id device : devices) {
    std::string product = device_text(device, CL_DEVICE_NAME);
    int version = std::min(version_number(device_text(device, CL_DEVICE_VERSION), "OpenCL"), version_number(text, "OpenCL"));
    if (version < 12) {
      warn(fmt::format("the device \"{}\" of \"{}\" is left out: it speaks OpenCL {}.{}, and 1.2 is needed", product, name, version / 10, version % 10));
      continue;
    }
    if (!device_value<cl_bool>(device, CL_DEVICE_AVAILABLE)) {
      warn(fmt::format("the device \"{}\" of \"{}\" is left out: its driver says that it is not available", product, name));
      continue;
    }
    Chip& chip = out->emplace_back();   // its last place: `info` points into it
    chip.platform = platform;
    chip.device = device;
    describe(chip, name, text, version, device_text(device, CL_DEVICE_EXTENSIONS), wanted, seen);
  }
}

}  // namespace

std::string find_chips(const char* memory, std::deque<Chip>* out) {
  std::string wanted = memory ? memory : "auto";
  if (wanted != "auto" && wanted != "fine" && wanted != "coarse" && wanted != "buffer")
    return fmt::format("the setting opencl.memory (FLHAL_OPENCL_MEMORY) is \"{}\"; it takes auto, fine, coarse or buffer", wanted);
  cl_uint n = 0;
  cl_int code = cl.clGetPlatformIDs(0, nullptr, &n);
  std::string broken = broken_icd_files();
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && n == 0))
    return fmt::format("the OpenCL loader found no platform in {}{}; install the OpenCL driver of the chip (for processors, Debian: "
                       "pocl-opencl-icd), or correct OCL_ICD_VENDORS", icd_places(), broken.empty() ? "" : ": " + broken);
  if (code != CL_SUCCESS) return fmt::format("clGetPlatformIDs answered {}; see that the OpenCL driver is installed well", code_name(code));
  if (!broken.empty()) warn(broken + "; remove the file, or install the driver again");
  std::vector<cl_platform_id> platforms(n);
  if (cl_int again = cl.clGetPlatformIDs(n, platforms.data(), nullptr); again != CL_SUCCESS)
    return fmt::format("clGetPlatformIDs answered {}; see that the OpenCL driver is installed well", code_name(again));
  std::map<std::string, int> seen;
  for (cl_platform_id platform : platforms) find_on(platform, wanted, seen, out);
  return "";
}

}  // namespace flhal::opencl

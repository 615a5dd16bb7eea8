// csrc/bindings.cc: the few functions that Python calls. Stable C API only, so one file serves every Python version, and the
// library itself needs no Python symbol to be there before this module is imported.
//
// Whatever may wait or call into a plugin runs without the GIL.
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <flhal/flhal.h>

#include <limits>
#include <string>
#include <vector>

#include "call.h"
#include "call_site.h"
#include "config.h"
#include "device.h"
#include "errors.h"
#include "generator.h"
#include "host_view.h"
#include "vendor_ops.h"

namespace torch_fl {
namespace {

// Folders whose frames are not the user's: torch's and ours. Set once, when the package loads.
std::vector<std::string>& inner_folders() {
  static auto* folders = new std::vector<std::string>();
  return *folders;
}

bool is_inner(const std::string& file) {
  if (!file.empty() && file[0] == '<') return true;
  for (const auto& folder : inner_folders()) {
    if (file.compare(0, folder.size(), folder) == 0) return true;
  }
  return false;
}

// The nearest frame that is neither torch's nor ours.
std::string python_call_site() {
  if (!Py_IsInitialized()) return {};
  const PyGILState_STATE gil = PyGILState_Ensure();
  std::string site = "(autograd engine)";
  PyFrameObject* frame = PyEval_GetFrame();
  PyObject* at = reinterpret_cast<PyObject*>(frame);
  Py_XINCREF(at);
  while (at != nullptr && at != Py_None) {
    PyCodeObject* code = PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(at));
    PyObject* file = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_filename");
    const char* text = file != nullptr ? PyUnicode_AsUTF8AndSize(file, nullptr) : nullptr;
    const std::string name = text != nullptr ? text : "";
    const bool inner = is_inner(name);
    if (!inner || site[0] == '(') site = name + ":" + std::to_string(PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(at)));
    Py_XDECREF(file);
    Py_DECREF(reinterpret_cast<PyObject*>(code));
    if (!inner) break;
    PyObject* back = PyObject_GetAttrString(at, "f_back");
    Py_DECREF(at);
    at = back;
  }
  Py_XDECREF(at);
  PyErr_Clear();
  PyGILState_Release(gil);
  return site;
}

void python_clear_error() {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyErr_Clear();
  PyGILState_Release(gil);
}

// Runs `body` without the GIL; its exceptions become Python's.
template <typename Body>
bool guarded(Body&& body) {
  std::string text;
  PyObject* kind = nullptr;
  const char* name = nullptr;
  Py_BEGIN_ALLOW_THREADS
  try {
    body();
  } catch (const c10::NotImplementedError& e) {
    kind = PyExc_NotImplementedError, text = e.what_without_backtrace();
  } catch (const c10::OutOfMemoryError& e) {
    kind = PyExc_MemoryError, name = "OutOfMemoryError", text = e.what_without_backtrace();
  } catch (const c10::AcceleratorError& e) {
    kind = PyExc_RuntimeError, name = "AcceleratorError", text = e.what_without_backtrace();
  } catch (const c10::IndexError& e) {
    kind = PyExc_IndexError, text = e.what_without_backtrace();
  } catch (const c10::Error& e) {
    kind = PyExc_RuntimeError, text = e.what_without_backtrace();
  } catch (const std::exception& e) {
    kind = PyExc_RuntimeError, text = e.what();
  }
  Py_END_ALLOW_THREADS
  if (kind == nullptr) return true;
  // torch has classes of its own for these two; the same failure has the same class by every door.
  PyObject* torch = name != nullptr ? PyImport_ImportModule("torch") : nullptr;
  PyObject* own = torch != nullptr ? PyObject_GetAttrString(torch, name) : nullptr;
  if (own == nullptr) PyErr_Clear();
  PyErr_SetString(own != nullptr ? own : kind, text.c_str());
  Py_XDECREF(own);
  Py_XDECREF(torch);
  return false;
}

PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

void append(void* ctx, const char* text, uint64_t n) { static_cast<std::string*>(ctx)->append(text, n); }
PyObject* unicode(const std::string& s) { return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"); }

// An index that no device can have is told as it was given: cut to torch's eight bits it would name another device.
bool read_index(PyObject* argument, int* out) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(argument, &overflow);
  if (value == -1 && overflow == 0 && PyErr_Occurred()) return false;
  *out = static_cast<int>(value);
  if (overflow == 0 && value >= std::numeric_limits<c10::DeviceIndex>::min() && value <= std::numeric_limits<c10::DeviceIndex>::max()) return true;
  PyObject* digits = PyObject_Str(argument);
  const char* text = digits != nullptr ? PyUnicode_AsUTF8AndSize(digits, nullptr) : nullptr;
  if (text != nullptr) guarded([&] { raise_no_device(text); });
  Py_XDECREF(digits);
  return false;
}

#define TORCH_FL_INDEX(name)        \
  int name = 0;                     \
  if (!read_index(argument, &name)) return nullptr

PyObject* py_device_count(PyObject*, PyObject*) {
  int n = 0;
  if (!guarded([&] { n = device_count(); })) return nullptr;
  return PyLong_FromLong(n);
}

PyObject* py_current_device(PyObject*, PyObject*) {
  int index = 0;
  if (!guarded([&] { index = current_device(); })) return nullptr;
  return PyLong_FromLong(index);
}

PyObject* py_default_device(PyObject*, PyObject*) {
  int index = 0;
  if (!guarded([&] { index = default_device(); })) return nullptr;
  return PyLong_FromLong(index);
}

PyObject* py_set_device(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { set_current_device(static_cast<c10::DeviceIndex>(index)); }) ? none() : nullptr;
}

PyObject* py_exchange_device(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  int before = 0;
  if (!guarded([&] { before = exchange_current_device(static_cast<c10::DeviceIndex>(index)); })) return nullptr;
  return PyLong_FromLong(before);
}

PyObject* py_set_default_device(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { set_default_device(static_cast<c10::DeviceIndex>(index)); }) ? none() : nullptr;
}

bool read_texts(PyObject* list, std::vector<std::string>* out) {
  const Py_ssize_t n = PyList_Size(list);
  if (n < 0) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const char* text = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), nullptr);
    if (text == nullptr) return false;
    out->emplace_back(text);
  }
  return true;
}

PyObject* py_set_candidates(PyObject*, PyObject* argument) {
  std::vector<std::string> names;
  if (!read_texts(argument, &names)) return nullptr;
  set_device_candidates(std::move(names));
  return none();
}

PyObject* py_set_inner_folders(PyObject*, PyObject* argument) {
  std::vector<std::string> folders;
  if (!read_texts(argument, &folders)) return nullptr;
  inner_folders() = std::move(folders);
  return none();
}

PyObject* py_find_device(PyObject*, PyObject* argument) {
  const char* name = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (name == nullptr) return nullptr;
  uint32_t index = 0;
  const bool ok = guarded([&] {
    if (device_count() == 0) device_handle(0);
    check(flhal_device_find(name, &index), "flhal_device_find");
  });
  return ok ? PyLong_FromUnsignedLong(index) : nullptr;
}

PyObject* py_open_device(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { stream_of(static_cast<c10::DeviceIndex>(index), 0); }) ? none() : nullptr;
}

PyObject* py_is_open(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return PyBool_FromLong(device_opened(static_cast<c10::DeviceIndex>(index)));
}

PyObject* py_reset_device(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { reset_device(static_cast<c10::DeviceIndex>(index)); }) ? none() : nullptr;
}

PyObject* py_clear_errors(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { clear_errors(static_cast<c10::DeviceIndex>(index)); }) ? none() : nullptr;
}

PyObject* py_any_stream_busy(PyObject*, PyObject*) { return PyBool_FromLong(any_stream_busy()); }

PyObject* py_synchronize(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { check(flhal_device_synchronize(device_handle(static_cast<c10::DeviceIndex>(index))), "synchronize"); })
             ? none()
             : nullptr;
}

PyObject* py_host_visible(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  bool visible = false;
  if (!guarded([&] { visible = host_visible(static_cast<c10::DeviceIndex>(index)); })) return nullptr;
  return PyBool_FromLong(visible);
}

void put(PyObject* dict, const char* key, PyObject* value) {
  if (value == nullptr) return;
  PyDict_SetItemString(dict, key, value);
  Py_DECREF(value);
}

PyObject* py_device_info(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  flhal_device_info info{};
  info.struct_size = sizeof info;
  if (!guarded([&] { check(flhal_device_get_info(device_handle(static_cast<c10::DeviceIndex>(index)), &info), "device_info"); })) {
    return nullptr;
  }
  PyObject* d = PyDict_New();
  put(d, "index", PyLong_FromUnsignedLong(info.index));
  const std::pair<const char*, const char*> texts[] = {
      {"name", info.name}, {"chip", info.chip}, {"plugin", info.plugin}, {"product", info.product}, {"vendor", info.vendor},
      {"driver", info.driver}, {"plugin_version", info.plugin_version}, {"compute_capability", info.compute_capability},
      {"pci_address", info.pci_address}, {"dialects", info.dialects}};
  for (const auto& [key, text] : texts) put(d, key, unicode(text != nullptr ? text : ""));
  put(d, "uuid", PyBytes_FromStringAndSize(reinterpret_cast<const char*>(info.uuid), sizeof info.uuid));
  put(d, "memory_bytes", PyLong_FromUnsignedLongLong(info.memory_bytes));
  put(d, "largest_allocation_bytes", PyLong_FromUnsignedLongLong(info.largest_allocation_bytes));
  put(d, "caps", PyLong_FromUnsignedLongLong(info.caps));
  put(d, "device_class", PyLong_FromUnsignedLong(info.device_class));
  put(d, "state", PyLong_FromUnsignedLong(info.state));
  put(d, "queues", PyLong_FromUnsignedLong(info.queues));
  put(d, "is_asynchronous", PyBool_FromLong(info.is_asynchronous != 0));
  put(d, "has_ops", PyBool_FromLong(info.has_ops != 0));
  put(d, "has_kernels", PyBool_FromLong(info.has_kernels != 0));
  put(d, "dlpack_device_type", PyLong_FromUnsignedLong(info.dlpack_device_type));
  PyObject* dtypes = PyList_New(0);
  for (uint32_t i = 0; i < info.n_storage_dtypes; ++i) {
    PyObject* value = PyLong_FromUnsignedLong(info.storage_dtypes[i]);
    PyList_Append(dtypes, value);
    Py_DECREF(value);
  }
  put(d, "storage_dtypes", dtypes);
  return d;
}

PyObject* py_memory_stats(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  flhal_memory_stats s{};
  s.struct_size = sizeof s;
  if (!guarded([&] {
        flhal_device* device = device_handle(static_cast<c10::DeviceIndex>(index));
        if (device_opened(static_cast<c10::DeviceIndex>(index))) check(flhal_memory_get_stats(device, &s), "memory_stats");
      })) {
    return nullptr;
  }
  PyObject* d = PyDict_New();
#define TORCH_FL_STAT(name) put(d, #name, PyLong_FromUnsignedLongLong(s.name))
  TORCH_FL_STAT(requested), TORCH_FL_STAT(requested_peak), TORCH_FL_STAT(allocated), TORCH_FL_STAT(allocated_peak);
  TORCH_FL_STAT(reserved), TORCH_FL_STAT(reserved_peak), TORCH_FL_STAT(pending_free), TORCH_FL_STAT(largest_free_block);
  TORCH_FL_STAT(limit), TORCH_FL_STAT(device_free), TORCH_FL_STAT(device_total), TORCH_FL_STAT(n_allocations);
  TORCH_FL_STAT(n_frees), TORCH_FL_STAT(n_live), TORCH_FL_STAT(n_slabs), TORCH_FL_STAT(n_retries), TORCH_FL_STAT(n_out_of_memory);
#undef TORCH_FL_STAT
  return d;
}

PyObject* py_reset_peaks(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] { check(flhal_memory_reset_peaks(device_handle(static_cast<c10::DeviceIndex>(index))), "reset_peaks"); })
             ? none()
             : nullptr;
}

PyObject* py_trim(PyObject*, PyObject* argument) {
  TORCH_FL_INDEX(index);
  return guarded([&] {
           const auto i = static_cast<c10::DeviceIndex>(index);
           if (device_opened(i)) check(flhal_memory_trim(device_handle(i)), "empty_cache");
         })
             ? none()
             : nullptr;
}

PyObject* py_seed_all(PyObject*, PyObject* argument) {
  const unsigned long long seed = PyLong_AsUnsignedLongLongMask(argument);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] { seed_all(seed); }) ? none() : nullptr;
}

PyObject* py_config_set(PyObject*, PyObject* arguments) {
  const char *key = nullptr, *value = nullptr;
  if (!PyArg_ParseTuple(arguments, "ss", &key, &value)) return nullptr;
  const std::string k(key), v(value);
  return guarded([&] { check(flhal_config_set(k.c_str(), v.c_str()), "config_set"); }) ? none() : nullptr;
}

PyObject* py_config_get(PyObject*, PyObject* argument) {
  const char* key = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (key == nullptr) return nullptr;
  std::string text;
  if (!guarded([&] { text = config_text(key); })) return nullptr;
  return unicode(text);
}

PyObject* py_report(PyObject*, PyObject* argument) {
  const char* which = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (which == nullptr) return nullptr;
  std::string text;
  if (!guarded([&] { check(flhal_report(which, append, &text), "report"); })) return nullptr;
  return unicode(text);
}

PyObject* py_report_reset(PyObject*, PyObject* argument) {
  const char* which = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (which == nullptr) return nullptr;
  g_report_epoch.fetch_add(1);
  return guarded([&] { check(flhal_report_reset(which), "report_reset"); }) ? none() : nullptr;
}

PyObject* py_fallback_push(PyObject*, PyObject* arguments) {
  const char *policy = nullptr, *op = nullptr;
  if (!PyArg_ParseTuple(arguments, "sz", &policy, &op)) return nullptr;
  return guarded([&] { check(flhal_fallback_push(policy, op), "fallback"); }) ? none() : nullptr;
}

PyObject* py_fallback_pop(PyObject*, PyObject*) {
  return guarded([&] { check(flhal_fallback_pop(), "fallback"); }) ? none() : nullptr;
}

PyObject* py_scope_enter(PyObject*, PyObject* argument) {
  const char* name = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (name == nullptr) return nullptr;
  uint32_t outer = 0;
  return guarded([&] { check(flhal_scope_enter(name, &outer), "scope_enter"); }) ? PyLong_FromUnsignedLong(outer) : nullptr;
}

PyObject* py_scope_leave(PyObject*, PyObject* argument) {
  const unsigned long outer = PyLong_AsUnsignedLong(argument);
  if (PyErr_Occurred()) return nullptr;
  flhal_scope_leave(static_cast<uint32_t>(outer));
  return none();
}

PyObject* py_dry_run_begin(PyObject*, PyObject*) {
  dry_run_begin();
  return none();
}

// [(aten overload, flhal op number, route, reason), ...] in the order of the calls.
PyObject* py_dry_run_end(PyObject*, PyObject*) {
  const std::vector<RouteNote> notes = dry_run_end();
  PyObject* list = PyList_New(0);
  for (const RouteNote& note : notes) {
    PyObject* row = Py_BuildValue("(sIIs)", note.aten.c_str(), note.op, note.route, note.reason.c_str());
    PyList_Append(list, row);
    Py_XDECREF(row);
  }
  return list;
}

// (namespace, operator, the plugin's name of it, its schema)
PyObject* py_define_vendor_op(PyObject*, PyObject* arguments) {
  const char *space, *op, *vendor_name, *schema;
  if (!PyArg_ParseTuple(arguments, "ssss", &space, &op, &vendor_name, &schema)) return nullptr;
  return guarded([&] { define_vendor_op(space, op, vendor_name, schema); }) ? none() : nullptr;
}

PyObject* py_plugin_add(PyObject*, PyObject* argument) {
  const char* path = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (path == nullptr) return nullptr;
  return guarded([&] { check(flhal_plugin_add(path), "plugin_add"); }) ? none() : nullptr;
}

PyObject* py_init(PyObject*, PyObject*) {
  return guarded([&] { check(flhal_init(FLHAL_VERSION), "flhal_init"); }) ? none() : nullptr;
}

PyObject* py_versions(PyObject*, PyObject*) {
  const uint32_t library = flhal_version();
  return Py_BuildValue("{s:s,s:s,s:s}", "torch", TORCH_FL_TORCH_VERSION, "core",
                       (std::to_string(library >> 16) + "." + std::to_string(library & 0xffff)).c_str(), "core_header",
                       (std::to_string(FLHAL_VERSION_MAJOR) + "." + std::to_string(FLHAL_VERSION_MINOR)).c_str());
}

PyMethodDef kMethods[] = {
    {"init", py_init, METH_NOARGS, nullptr},
    {"versions", py_versions, METH_NOARGS, nullptr},
    {"device_count", py_device_count, METH_NOARGS, nullptr},
    {"current_device", py_current_device, METH_NOARGS, nullptr},
    {"default_device", py_default_device, METH_NOARGS, nullptr},
    {"set_device", py_set_device, METH_O, nullptr},
    {"exchange_device", py_exchange_device, METH_O, nullptr},
    {"set_default_device", py_set_default_device, METH_O, nullptr},
    {"set_candidates", py_set_candidates, METH_O, nullptr},
    {"set_inner_folders", py_set_inner_folders, METH_O, nullptr},
    {"find_device", py_find_device, METH_O, nullptr},
    {"open_device", py_open_device, METH_O, nullptr},
    {"is_open", py_is_open, METH_O, nullptr},
    {"clear_errors", py_clear_errors, METH_O, nullptr},
    {"reset_device", py_reset_device, METH_O, nullptr},
    {"synchronize", py_synchronize, METH_O, nullptr},
    {"any_stream_busy", py_any_stream_busy, METH_NOARGS, nullptr},
    {"host_visible", py_host_visible, METH_O, nullptr},
    {"device_info", py_device_info, METH_O, nullptr},
    {"memory_stats", py_memory_stats, METH_O, nullptr},
    {"reset_peaks", py_reset_peaks, METH_O, nullptr},
    {"trim", py_trim, METH_O, nullptr},
    {"seed_all", py_seed_all, METH_O, nullptr},
    {"config_set", py_config_set, METH_VARARGS, nullptr},
    {"config_get", py_config_get, METH_O, nullptr},
    {"report", py_report, METH_O, nullptr},
    {"report_reset", py_report_reset, METH_O, nullptr},
    {"fallback_push", py_fallback_push, METH_VARARGS, nullptr},
    {"fallback_pop", py_fallback_pop, METH_NOARGS, nullptr},
    {"scope_enter", py_scope_enter, METH_O, nullptr},
    {"scope_leave", py_scope_leave, METH_O, nullptr},
    {"dry_run_begin", py_dry_run_begin, METH_NOARGS, nullptr},
    {"dry_run_end", py_dry_run_end, METH_NOARGS, nullptr},
    {"plugin_add", py_plugin_add, METH_O, nullptr},
    {"define_vendor_op", py_define_vendor_op, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, kMethods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace torch_fl

#define TORCH_FL_JOIN_(a, b) a##b
#define TORCH_FL_JOIN(a, b) TORCH_FL_JOIN_(a, b)

extern "C" __attribute__((visibility("default"))) PyObject* TORCH_FL_JOIN(PyInit__C_, TORCH_FL_TORCH_MINOR)() {
  c10::register_privateuse1_backend(torch_fl::kDeviceName);
  torch_fl::g_python_call_site = &torch_fl::python_call_site;
  torch_fl::g_python_clear_error = &torch_fl::python_clear_error;
  return PyModule_Create(&torch_fl::kModule);
}

// src/tools/replay/arguments.cc: from JSON to structs, one function per kind; the other direction of layers/trace_arguments.cc.
#include "replay/arguments.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "kernels/kernel_plan.h"
#include "kernels/params.h"

namespace flhal::replay {
namespace {

const cJSON* item(const cJSON* object, const char* key) { return cJSON_GetObjectItemCaseSensitive(object, key); }
const char* string_of(const cJSON* node) { return cJSON_IsString(node) ? node->valuestring : nullptr; }

flhal_host_kernel host_kernel(const std::string& name) {
  static const std::map<std::string, flhal_host_kernel> all = [] {
    std::map<std::string, flhal_host_kernel> found;
    const flhal_host_module* module = kernels::host_module();
    for (uint32_t i = 0; i < module->n_functions; ++i) found[module->functions[i].name] = module->functions[i].run;
    return found;
  }();
  auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

bool is_named(const std::string& function) {
  constexpr const char* kNamed[] = {
#define NAMED(name) #name,
#include "kernels/named.def"
#undef NAMED
  };
  for (const char* name : kNamed)
    if (function == name) return true;
  return false;
}

bool ends_with(const std::string& text, const std::string& end) { return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0; }

// Core's kernels that can fail (plan->can_fail) are given a pointer of the process that was recorded; NULL: faults go unheard.
void forget_pointer(const std::string& function, unsigned char* value, size_t n) {
  size_t at = 0;
  if (function.rfind("gather_", 0) == 0 || function.rfind("scatter_", 0) == 0) at = offsetof(kernels::IndexParams, error);
  else if (function.find("pool2d_backward") != std::string::npos) at = offsetof(kernels::PoolParams, error);
  else if (!is_named(function) && (ends_with(function, "_i32") || ends_with(function, "_i64"))) at = offsetof(kernels::PointwiseParams, error);
  if (at != 0 && at + sizeof(void*) <= n) std::memset(value + at, 0, sizeof(void*));
}

}  // namespace

void* Arguments::handle(Kind kind, uint64_t number) const {
  if (number == 0) return nullptr;
  auto at = session_.handles_.find({kind, number});
  if (at == session_.handles_.end()) throw CannotMake(fmt::format("the {} {} was not made here", layers::handle_noun(kind), number));
  return at->second;
}

const char* Arguments::text(const cJSON* node) {
  const char* s = string_of(node);
  return s ? keep(std::string(s))->c_str() : nullptr;
}

unsigned char* Arguments::bytes(const char* hex) {
  auto* kept = keep(bytes_of_hex(hex));
  kept->reserve(16);                     // never a null pointer
  return kept->data();
}

template <typename T>
const T* Arguments::list(const cJSON* node) {
  const int n = cJSON_GetArraySize(node);
  T* out = array<T>(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) out[i] = static_cast<T>(cJSON_GetArrayItem(node, i)->valuedouble);
  return out;
}

const Session::Slab& Arguments::slab(uint64_t number) const {
  auto at = session_.slabs_.find(number);
  if (at == session_.slabs_.end()) throw CannotMake(fmt::format("the slab {} was not made here", number));
  return at->second;
}

flhal_p_place Arguments::place(const cJSON* node) {
  const uint64_t number = number_of(node, "memory");
  if (number == 0) return {};
  return {slab(number).memory, number_of(node, "offset"), nullptr};
}

flhal_p_copy_v1* Arguments::copy(const cJSON* node) {
  flhal_p_copy_v1 c{};
  c.struct_size = sizeof c;
  c.struct_type = FLHAL_ST_COPY;
  c.dst = place(item(node, "dst"));
  c.src = place(item(node, "src"));
  c.bytes = number_of(node, "bytes");
  c.rows = number_of(node, "rows");
  c.dst_pitch = number_of(node, "dst_pitch");
  c.src_pitch = number_of(node, "src_pitch");
  const uint64_t all = c.bytes * (c.rows ? c.rows : 1);
  auto& in_flight = session_.in_flight_[number_of(call_.argument(1))];
  if (c.src.memory == nullptr) {         // rows lie behind each other in the payload
    std::vector<unsigned char> given = bytes_of_hex(call_.payload.c_str());
    given.resize(all + 1);
    c.src.host = in_flight.emplace_back(std::move(given)).data();
    c.src_pitch = c.bytes;
  }
  if (c.dst.memory == nullptr) {
    c.dst.host = in_flight.emplace_back(all + 1).data();
    c.dst_pitch = c.bytes;
    if (!call_.payload.empty() && c.src.memory != nullptr) download_ = static_cast<unsigned char*>(c.dst.host);
  }
  return keep(c);
}

flhal_p_source_v1* Arguments::source(const cJSON* node) {
  flhal_p_source_v1 s{};
  s.struct_size = sizeof s;
  s.struct_type = FLHAL_ST_SOURCE;
  s.dialect = text(item(node, "dialect"));
  s.options = text(item(node, "options"));
  s.bytes = number_of(node, "bytes");
  s.build_log = array<char>(4096);
  s.build_log_capacity = 4096;
  const cJSON* names = item(node, "functions");
  if (names == nullptr) {
    s.data = bytes(string_of(item(node, "data")));
    return keep(s);
  }
  const int n = cJSON_GetArraySize(names);
  auto* functions = new flhal_host_function[static_cast<size_t>(n)];   // modules keep the pointer: for the life of the process
  for (int i = 0; i < n; ++i) {
    const char* name = strdup(cJSON_GetArrayItem(names, i)->valuestring);
    functions[i] = {name, host_kernel(name)};
    if (functions[i].run == nullptr) throw CannotMake(fmt::format("the kernel {} is code of the program that was recorded", name));
  }
  s.data = new flhal_host_module{sizeof(flhal_host_module), static_cast<uint32_t>(n), functions};
  return keep(s);
}

flhal_p_launch_v1* Arguments::launch(const cJSON* node) {
  flhal_p_launch_v1 l{};
  l.struct_size = sizeof l;
  l.struct_type = FLHAL_ST_LAUNCH;
  const uint64_t function = number_of(node, "function");
  l.function = static_cast<flhal_p_function*>(handle(Kind::kFunction, function));
  std::memcpy(l.groups, list<uint64_t>(item(node, "groups")), sizeof l.groups);
  std::memcpy(l.group_size, list<uint32_t>(item(node, "group_size")), sizeof l.group_size);
  l.local_bytes = static_cast<uint32_t>(number_of(node, "local_bytes"));
  const cJSON* args = item(node, "args");
  l.n_args = static_cast<uint32_t>(cJSON_GetArraySize(args));
  l.arg_stride = sizeof(flhal_p_arg);
  auto* out = array<flhal_p_arg>(l.n_args);
  for (uint32_t i = 0; i < l.n_args; ++i) {
    const cJSON* arg = cJSON_GetArrayItem(args, static_cast<int>(i));
    if (const char* value = string_of(item(arg, "value"))) {
      unsigned char* given = bytes(value);
      const auto n = static_cast<uint32_t>(std::strlen(value) / 2);
      forget_pointer(session_.functions_[function], given, n);
      out[i] = {FLHAL_ARG_VALUE, n, given, nullptr, 0, 0};
    } else if (item(arg, "memory") != nullptr) {
      const flhal_p_place p = place(arg);
      const uint64_t base = p.memory ? session_.slabs_[number_of(arg, "memory")].address : 0;
      out[i] = {FLHAL_ARG_MEMORY, 0, nullptr, p.memory, p.offset, base ? base + p.offset : 0};
    } else {
      out[i] = {FLHAL_ARG_LOCAL, static_cast<uint32_t>(number_of(arg, "local")), nullptr, nullptr, 0, 0};
    }
  }
  l.args = out;
  return keep(l);
}

flhal_tensor_v1 Arguments::tensor(const cJSON* node) {
  flhal_tensor_v1 t{};
  t.flags = static_cast<uint32_t>(number_of(node, "flags"));
  if (t.flags & FLHAL_TENSOR_ABSENT) return t;
  t.dtype = static_cast<flhal_dtype>(number_of(node, "dtype"));
  t.layout = static_cast<uint16_t>(number_of(node, "layout"));
  const cJSON* sizes = item(node, "sizes");
  t.rank = static_cast<uint16_t>(cJSON_GetArraySize(sizes));
  t.sizes = list<int64_t>(sizes);
  t.strides = list<int64_t>(item(node, "strides"));
  if (t.flags & FLHAL_TENSOR_HOST_SCALAR) {
    t.address = reinterpret_cast<uint64_t>(bytes(string_of(item(node, "value"))));
    return t;
  }
  const flhal_p_place p = place(node);
  t.memory = p.memory;
  t.offset = p.offset;
  t.extent = number_of(node, "extent");
  const uint64_t base = p.memory ? session_.slabs_[number_of(node, "memory")].address : 0;
  t.address = base ? base + p.offset : 0;
  return t;
}

flhal_attr_v1 Arguments::attribute(const cJSON* node) {
  flhal_attr_v1 a{};
  a.key = static_cast<uint32_t>(number_of(node, "key"));
  a.kind = static_cast<uint16_t>(number_of(node, "kind"));
  a.flags = static_cast<uint16_t>(number_of(node, "flags"));
  a.count = static_cast<uint32_t>(number_of(node, "count"));
  if (const char* i = string_of(item(node, "i"))) a.v.i = strtoll(i, nullptr, 10);
  if (const char* f = string_of(item(node, "f"))) std::memcpy(&a.v.f, bytes(f), sizeof a.v.f);
  if (const char* imag = string_of(item(node, "imag"))) std::memcpy(&a.imag, bytes(imag), sizeof a.imag);
  if (const char* p = string_of(item(node, "p"))) a.v.p = bytes(p);
  return a;
}

flhal_op_call_v1* Arguments::op_call(const cJSON* node) {
  flhal_op_call_v1 c{};
  c.struct_size = sizeof c;
  c.struct_type = FLHAL_ST_OP_CALL;
  c.op = static_cast<uint32_t>(number_of(node, "op"));
  c.op_version = static_cast<uint32_t>(number_of(node, "op_version"));
  c.name = text(item(node, "name"));
  c.n_outputs = static_cast<uint32_t>(number_of(node, "outputs"));
  c.n_inputs = static_cast<uint32_t>(number_of(node, "inputs"));
  const cJSON *tensors = item(node, "tensors"), *attrs = item(node, "attrs"), *groups = item(node, "groups");
  const int n = cJSON_GetArraySize(tensors);
  auto* t = array<flhal_tensor_v1>(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) t[i] = tensor(cJSON_GetArrayItem(tensors, i));
  c.tensors = t;
  c.tensor_stride = sizeof *t;
  if (cJSON_IsArray(groups)) {
    c.n_groups = static_cast<uint32_t>(cJSON_GetArraySize(groups));
    c.groups = list<uint32_t>(groups);
  }
  c.n_attrs = static_cast<uint32_t>(cJSON_GetArraySize(attrs));
  auto* a = array<flhal_attr_v1>(c.n_attrs);
  for (uint32_t i = 0; i < c.n_attrs; ++i) a[i] = attribute(cJSON_GetArrayItem(attrs, static_cast<int>(i)));
  c.attrs = a;
  c.attr_stride = sizeof *a;
  c.compute_dtype = static_cast<flhal_dtype>(number_of(node, "compute_dtype"));
  c.alias = static_cast<uint32_t>(number_of(node, "alias"));
  c.flags = static_cast<uint32_t>(number_of(node, "flags"));
  return keep(c);
}

uint64_t Arguments::word_of(size_t i, const cJSON* node) {
  const Kind kind = call_.info().kinds[i];
  if (kind == Kind::kMemory) return layers::to_word(slab(number_of(node)).memory);
  if (layers::is_handle(kind)) return layers::to_word(handle(kind, number_of(node)));
  if (layers::is_out_handle(kind)) return layers::to_word(array<void*>(1));
  switch (kind) {
    case Kind::kU32:
    case Kind::kU64: return number_of(node);
    case Kind::kI32: return static_cast<uint64_t>(static_cast<int64_t>(cJSON_GetNumberValue(node)));
    case Kind::kText: return layers::to_word(text(node));
    case Kind::kBytes: return layers::to_word(bytes(string_of(node)));
    case Kind::kPointer: return layers::to_word(handle(kind, number_of(node)));
    case Kind::kOutU32:
    case Kind::kOutU64:
    case Kind::kOutText:
    case Kind::kOutPointer: return layers::to_word(array<uint64_t>(1));
    case Kind::kHost: return layers::to_word(&kReplayHost);
    case Kind::kInit: return layers::to_word(keep(flhal_init_v1{sizeof(flhal_init_v1), FLHAL_ST_INIT, nullptr, static_cast<uint32_t>(number_of(node, "minor")), 0}));
    case Kind::kDeviceInfo: {
      auto* info = keep(flhal_p_device_info_v1{});
      info->struct_size = sizeof *info;
      info->struct_type = FLHAL_ST_DEVICE_INFO;
      return layers::to_word(info);
    }
    case Kind::kSlab: {
      auto* slab = keep(flhal_p_slab_v1{});
      slab->struct_size = sizeof *slab;
      slab->struct_type = FLHAL_ST_SLAB;
      slab->bytes = number_of(node, "bytes");
      slab->align = number_of(node, "align");
      slab->kind = static_cast<uint32_t>(number_of(node, "kind"));
      return layers::to_word(slab);
    }
    case Kind::kCopy: return layers::to_word(copy(node));
    case Kind::kPlace: return cJSON_IsNull(node) ? 0 : layers::to_word(keep(place(node)));
    case Kind::kSource: return layers::to_word(source(node));
    case Kind::kLaunch: return layers::to_word(launch(node));
    case Kind::kOpCall: return layers::to_word(op_call(node));
    case Kind::kPlanInfo: {
      auto* info = keep(flhal_plan_info_v1{});
      info->struct_size = sizeof *info;
      info->struct_type = FLHAL_ST_PLAN_INFO;
      info->n_wanted = static_cast<uint32_t>(number_of(node, "n_wanted"));
      if (info->n_wanted != 0) info->wanted_layouts = array<uint16_t>(info->n_wanted);
      return layers::to_word(info);
    }
    default: return 0;
  }
}

Arguments::Arguments(Session& session, const FlatCall& call) : session_(session), call_(call) {
  for (size_t i = 0; i < call.info().n; ++i) words[i] = word_of(i, call.argument(i));
  if (call.slot == SlotId::host_end && !call.payload.empty()) {   // what the program had written into the view
    const std::vector<unsigned char> given = bytes_of_hex(call.payload.c_str());
    std::memcpy(layers::from_word<void*>(words[4]), given.data(), given.size());
  }
}

void Arguments::take_results(flhal_status answer, std::string* difference) {
  if (answer != FLHAL_OK) return;
  const SlotInfo& info = call_.info();
  for (size_t i = 0; i < info.n; ++i) {
    const Kind kind = info.kinds[i];
    const uint64_t number = number_of(call_.argument(i));
    if (layers::is_out_handle(kind) && number != 0) session_.handles_[{layers::made_by(kind), number}] = *layers::from_word<void**>(words[i]);
    if (kind == Kind::kOutPointer && number != 0) session_.handles_[{Kind::kPointer, number}] = *layers::from_word<void**>(words[i]);
    if (kind == Kind::kSlab)
      if (const uint64_t memory = number_of(call_.argument(i), "memory")) {
        auto* slab = layers::from_word<const flhal_p_slab_v1*>(words[i]);
        session_.slabs_[memory] = {slab->memory, slab->bytes, slab->address};
      }
  }
  if (call_.slot == SlotId::function_get) session_.functions_[number_of(call_.argument(2))] = string_of(call_.argument(1));
  if (call_.slot == SlotId::stream_synchronize) session_.in_flight_[number_of(call_.argument(0))].clear();
  if (download_ != nullptr) {
    const std::vector<unsigned char> recorded = bytes_of_hex(call_.payload.c_str());
    size_t wrong = 0, first = 0;
    for (size_t i = recorded.size(); i-- > 0;)
      if (download_[i] != recorded[i]) ++wrong, first = i;
    if (wrong != 0) *difference = fmt::format("{} of {} bytes came back otherwise, the first at {}: {:#04x} instead of {:#04x}", wrong, recorded.size(), first, download_[first], recorded[first]);
  }
  if (call_.slot == SlotId::copy && words[1] == 0) session_.in_flight_[0].clear();
}

}  // namespace flhal::replay

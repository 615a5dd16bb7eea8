// src/layers/trace_arguments.cc: one function per kind of argument.
#include "layers/trace_arguments.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "layers/op_operands.h"

namespace flhal::layers {
namespace {

std::atomic<uint64_t> g_number{0};

std::string number_text(uint64_t n) { return n <= (1ull << 53) ? std::to_string(n) : fmt::format("\"{}\"", n); }

std::string place_json(const flhal_p_place* p, HandleNumbers& numbers) {
  if (p == nullptr) return "null";
  if (p->memory == nullptr) return R"({"memory":0})";
  return fmt::format(R"({{"memory":{},"offset":{}}})", numbers.of(Kind::kMemory, p->memory), number_text(p->offset));
}

template <typename T>
std::string list_json(const T* values, uint64_t n) {
  std::string text = "[";
  for (uint64_t i = 0; i < n; ++i) text += fmt::format("{}{}", i ? "," : "", values[i]);
  return text + "]";
}

std::string copy_json(const flhal_p_copy_v1* c, HandleNumbers& numbers) {
  return fmt::format(R"({{"dst":{},"src":{},"bytes":{},"rows":{},"dst_pitch":{},"src_pitch":{}}})", place_json(&c->dst, numbers),
                     place_json(&c->src, numbers), number_text(c->bytes), number_text(c->rows), number_text(c->dst_pitch),
                     number_text(c->src_pitch));
}

std::string source_json(const flhal_p_source_v1* s) {
  std::string data;
  if (std::strcmp(s->dialect, FLHAL_DIALECT_HOST) == 0) {   // code of this process: its names must do
    auto* module = static_cast<const flhal_host_module*>(s->data);
    data = "\"functions\":[";
    for (uint32_t i = 0; i < module->n_functions; ++i) data += (i ? "," : "") + json_text(module->functions[i].name);
    data += "]";
  } else {
    data = "\"data\":\"" + hex_text(s->data, s->bytes) + "\"";
  }
  return fmt::format(R"({{"dialect":{},"bytes":{},"options":{},{}}})", json_text(s->dialect), number_text(s->bytes),
                     s->options ? json_text(s->options) : "null", data);
}

std::string launch_json(const flhal_p_launch_v1* l, HandleNumbers& numbers) {
  std::string args;
  for (const flhal_p_arg& a : arguments_of(*l)) {
    if (!args.empty()) args += ",";
    switch (a.kind) {
      case FLHAL_ARG_VALUE: args += fmt::format(R"({{"value":"{}"}})", hex_text(a.value, a.size)); break;
      case FLHAL_ARG_MEMORY:
        args += fmt::format(R"({{"memory":{},"offset":{}}})", numbers.of(Kind::kMemory, a.memory), number_text(a.offset));
        break;
      default: args += fmt::format(R"({{"local":{}}})", a.size);
    }
  }
  return fmt::format(R"({{"function":{},"groups":{},"group_size":{},"local_bytes":{},"args":[{}]}})",
                     numbers.of(Kind::kFunction, l->function), list_json(l->groups, 3), list_json(l->group_size, 3), l->local_bytes, args);
}

std::string tensor_json(const flhal_tensor_v1& t, HandleNumbers& numbers) {
  if (t.flags & FLHAL_TENSOR_ABSENT) return fmt::format(R"({{"flags":{}}})", t.flags);
  std::string text = fmt::format(R"({{"dtype":{},"flags":{},"layout":{},"sizes":{},"strides":{},)", t.dtype, t.flags, t.layout,
                                 list_json(t.sizes, t.rank), list_json(t.strides, t.rank));
  if (t.flags & FLHAL_TENSOR_HOST_SCALAR)
    return text + fmt::format(R"("value":"{}"}})", hex_text(reinterpret_cast<const void*>(t.address), FLHAL_DTYPE_BYTES(t.dtype)));
  return text + fmt::format(R"("memory":{},"offset":{},"extent":{}}})", numbers.of(Kind::kMemory, t.memory), number_text(t.offset),
                            number_text(t.extent));
}

std::string attribute_json(const flhal_attr_v1& a) {
  std::string value;
  switch (a.kind) {
    case FLHAL_ATTR_INT: value = fmt::format("\"i\":\"{}\"", a.v.i); break;
    case FLHAL_ATTR_FLOAT: value = fmt::format("\"f\":\"{}\"", hex_text(&a.v.f, 8)); break;
    case FLHAL_ATTR_COMPLEX: value = fmt::format("\"f\":\"{}\",\"imag\":\"{}\"", hex_text(&a.v.f, 8), hex_text(&a.imag, 8)); break;
    case FLHAL_ATTR_STRING: value = fmt::format("\"p\":\"{}\"", hex_text(a.v.p, a.count)); break;
    case FLHAL_ATTR_PHILOX: value = fmt::format("\"p\":\"{}\"", hex_text(a.v.p, 16)); break;
    default: value = fmt::format("\"p\":\"{}\"", hex_text(a.v.p, uint64_t{a.count} * 8));
  }
  return fmt::format(R"({{"key":{},"kind":{},"flags":{},"count":{},{}}})", a.key, a.kind, a.flags, a.count, value);
}

std::string op_call_json(const flhal_op_call_v1* c, HandleNumbers& numbers) {
  std::string tensors, attrs;
  for (const flhal_tensor_v1& t : operands_of(*c)) tensors += (tensors.empty() ? "" : ",") + tensor_json(t, numbers);
  for (const flhal_attr_v1& a : attributes_of(*c)) attrs += (attrs.empty() ? "" : ",") + attribute_json(a);
  return fmt::format(
      R"({{"op":{},"op_version":{},"name":{},"outputs":{},"inputs":{},"tensors":[{}],"groups":{},"attrs":[{}],"compute_dtype":{},"alias":{},"flags":{}}})",
      c->op, c->op_version, json_text(c->name ? c->name : ""), c->n_outputs, c->n_inputs, tensors,
      c->groups ? list_json(c->groups, c->n_groups) : "null", attrs, c->compute_dtype, c->alias, c->flags);
}

std::string argument_json(const SlotCall& call, size_t i, HandleNumbers& numbers) {
  const Kind kind = call.info().kinds[i];
  const uint64_t word = call.words[i];
  const bool well = call.answer == FLHAL_OK && !call.injected;
  if (is_handle(kind)) return std::to_string(numbers.of(kind, from_word<const void*>(word)));
  if (is_out_handle(kind)) return std::to_string(well ? numbers.make(made_by(kind), *from_word<const void* const*>(word)) : 0);
  switch (kind) {
    case Kind::kU32: return std::to_string(static_cast<uint32_t>(word));
    case Kind::kI32: return std::to_string(static_cast<int32_t>(word));
    case Kind::kU64: return number_text(word);
    case Kind::kText: return word ? json_text(from_word<const char*>(word)) : "null";
    case Kind::kBytes: return "\"" + hex_text(from_word<const void*>(word), call.words[5]) + "\"";   // the pattern of fill
    case Kind::kPointer: return std::to_string(numbers.of(kind, from_word<const void*>(word)));
    case Kind::kOutPointer: return std::to_string(well ? numbers.make(Kind::kPointer, *from_word<void**>(word)) : 0);
    case Kind::kOutU32: return well ? std::to_string(*from_word<uint32_t*>(word)) : "null";
    case Kind::kOutU64: return well ? number_text(*from_word<uint64_t*>(word)) : "null";
    case Kind::kOutText: {
      const char* text = well ? *from_word<const char**>(word) : nullptr;
      return text ? json_text(text) : "null";
    }
    case Kind::kHost: return "null";
    case Kind::kInit: return fmt::format(R"({{"minor":{}}})", from_word<const flhal_init_v1*>(word)->negotiated_minor);
    case Kind::kDeviceInfo: {
      auto* info = from_word<const flhal_p_device_info_v1*>(word);
      return well && info->chip ? fmt::format(R"({{"chip":{}}})", json_text(info->chip)) : "{}";
    }
    case Kind::kSlab: {
      auto* s = from_word<const flhal_p_slab_v1*>(word);
      return fmt::format(R"({{"memory":{},"bytes":{},"align":{},"kind":{}}})", well ? numbers.make(Kind::kMemory, s->memory) : 0,
                         number_text(s->bytes), number_text(s->align), s->kind);
    }
    case Kind::kCopy: return copy_json(from_word<const flhal_p_copy_v1*>(word), numbers);
    case Kind::kPlace: return place_json(from_word<const flhal_p_place*>(word), numbers);
    case Kind::kSource: return source_json(from_word<const flhal_p_source_v1*>(word));
    case Kind::kLaunch: return launch_json(from_word<const flhal_p_launch_v1*>(word), numbers);
    case Kind::kOpCall: return op_call_json(from_word<const flhal_op_call_v1*>(word), numbers);
    case Kind::kPlanInfo: {
      auto* p = from_word<const flhal_plan_info_v1*>(word);
      return fmt::format(R"({{"n_wanted":{},"depends_on":{},"workspace_bytes":{},"workspace_align":{},"reason":{}}})", p->n_wanted,
                         number_text(p->depends_on), number_text(p->workspace_bytes), number_text(p->workspace_align),
                         call.answer == FLHAL_DECLINED && p->reason ? json_text(p->reason) : "null");
    }
    default: return "null";
  }
}

}  // namespace

uint64_t HandleNumbers::of(Kind kind, const void* handle) {
  if (handle == nullptr) return 0;
  auto [at, fresh] = numbers_.try_emplace({kind, handle}, 0);
  if (fresh) at->second = g_number.fetch_add(1, std::memory_order_relaxed) + 1;
  return at->second;
}

uint64_t HandleNumbers::make(Kind kind, const void* handle) {
  if (handle == nullptr) return 0;
  return numbers_[{kind, handle}] = g_number.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (c == '\n') out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + "\"";
}

std::string hex_text(const void* bytes, uint64_t n) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  if (bytes == nullptr) return out;
  out.reserve(n * 2);
  for (uint64_t i = 0; i < n; ++i) {
    const unsigned char c = static_cast<const unsigned char*>(bytes)[i];
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

std::string arguments_json(const SlotCall& call, HandleNumbers& numbers) {
  const SlotInfo& info = call.info();
  std::string text = "{";
  for (size_t i = 0; i < info.n; ++i)
    text += fmt::format("{}\"{}\":{}", i ? "," : "", argument_name(info, i), argument_json(call, i, numbers));
  if (call.slot == SlotId::function_get && call.answer == FLHAL_OK && !call.injected)
    numbers.name(numbers.of(Kind::kFunction, *call.argument<flhal_p_function**>(2)), call.argument<const char*>(1));
  return text + "}";
}

std::string subject_of(const SlotCall& call, HandleNumbers& numbers) {
  if (call.slot == SlotId::plan_create) return call.argument<const flhal_op_call_v1*>(1)->name;
  if (call.slot == SlotId::plan_run) return call.argument<const flhal_op_call_v1*>(2)->name;
  if (call.slot == SlotId::launch)
    return numbers.name_of(numbers.of(Kind::kFunction, call.argument<const flhal_p_launch_v1*>(2)->function));
  return "";
}

std::string payload_of(const SlotCall& call) {
  if (call.slot == SlotId::copy) {
    auto* c = call.argument<const flhal_p_copy_v1*>(2);
    const bool up = c->src.memory == nullptr && c->dst.memory != nullptr;
    const bool down = c->dst.memory == nullptr && c->src.memory != nullptr && call.words[1] == 0 && call.answer == FLHAL_OK;
    if (!up && !down) return "";
    const char* host = static_cast<const char*>(up ? c->src.host : c->dst.host) + (up ? c->src.offset : c->dst.offset);
    const uint64_t pitch = up ? c->src_pitch : c->dst_pitch;
    std::string text;
    for (uint64_t row = 0; row < (c->rows ? c->rows : 1); ++row) text += hex_text(host + row * pitch, c->bytes);
    return text;
  }
  if (call.slot == SlotId::host_end && (call.words[3] & FLHAL_WRITE)) return hex_text(call.argument<void*>(4), call.words[2]);
  return "";
}

}  // namespace flhal::layers

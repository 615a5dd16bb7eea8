// tests/fuzz/op_call.cc: flhal_op_run with any operands, sizes, strides, dtypes, attributes and flags.
//
// Method: all device operands lie in one small allocation with known bytes. Whatever the call is, it ends in an answer, a
// failure has a sentence, a call that was declined writes nothing, and no call changes a byte that is not an element of an output.
// Pointers are always good for what the struct says they point to: nobody can check those.
#include <algorithm>
#include <array>
#include <vector>

#include "chips.h"
#include "dispatch/opset/opset.h"

using namespace flhal;
using namespace flhal::fuzz;

namespace {

constexpr flhal_dtype kDtypes[] = {FLHAL_F32, FLHAL_F32, FLHAL_I64, FLHAL_BOOL, FLHAL_F16, FLHAL_BF16, FLHAL_F64, FLHAL_I32, FLHAL_I8,
                                   FLHAL_U8, FLHAL_I16, FLHAL_U16, FLHAL_U32, FLHAL_U64, FLHAL_C64, FLHAL_C128, FLHAL_C32,
                                   FLHAL_F8_E4M3FN, FLHAL_F8_E4M3FNUZ, FLHAL_F8_E5M2, FLHAL_F8_E5M2FNUZ};
constexpr uint64_t kElementsWorthRunning = 1 << 12;   // a broadcast input has more elements than bytes

struct Made {
  std::vector<Exact<int64_t>> axes;
  std::vector<Exact<uint8_t>> blocks;
  std::string name;
  flhal_op_call call{};
  bool heavy = false;
  flhal_tensor& tensor(uint32_t i) const {
    return *reinterpret_cast<flhal_tensor*>(reinterpret_cast<char*>(const_cast<flhal_tensor*>(call.tensors)) + uint64_t(i) * call.tensor_stride);
  }
  uint8_t* block(size_t bytes) {
    blocks.emplace_back(bytes);
    return blocks.back().data();
  }
};

int64_t take_size(Bytes& b) {
  static constexpr int64_t kSome[] = {1, 2, 3, 4, 5, 8, 0, 7, 16, 31, 64, 1, 2, 3};
  const uint32_t i = b.below(16);
  return i < 14 ? kSome[i] : b.number<int64_t>();
}

void take_tensor(Bytes& b, const Chip& chip, Made& made, flhal_tensor& t, const std::vector<int64_t>& shape, bool output) {
  const uint8_t how = b.byte();
  t.dtype = (how & 1) ? kDtypes[b.below(sizeof kDtypes / sizeof *kDtypes)] : FLHAL_F32;
  if (how == 0xff) t.dtype = b.number<uint32_t>();
  std::vector<int64_t> sizes = shape;
  if (how & 2) {
    sizes.resize(b.below(32) == 0 ? b.below(20) : b.below(6));
    for (int64_t& s : sizes) s = take_size(b);
  }
  t.rank = static_cast<uint16_t>(sizes.size());
  made.axes.emplace_back(sizes.size());
  int64_t* at = made.axes.back().data();
  made.axes.emplace_back(sizes.size());
  int64_t* steps = made.axes.back().data();
  uint64_t elements = 1;
  for (uint32_t d = t.rank; d-- > 0;) {
    at[d] = sizes[d];
    steps[d] = static_cast<int64_t>(elements);
    if (sizes[d] > 0 && __builtin_mul_overflow(elements, static_cast<uint64_t>(sizes[d]), &elements)) elements = 1ull << 62;
  }
  made.heavy |= elements > kElementsWorthRunning;
  if (how & 4)
    for (uint32_t d = 0; d < t.rank; ++d) steps[d] = b.below(24) ? b.below(9) : b.number<int64_t>();
  t.sizes = at;
  t.strides = steps;
  t.layout = how == 0xfe ? b.byte() : 0;
  const uint64_t element = std::max(FLHAL_DTYPE_BYTES(t.dtype), 1u);
  if ((how & 8) && !output) {
    t.flags = b.below(3) ? FLHAL_TENSOR_ABSENT : FLHAL_TENSOR_HOST_SCALAR;
    if (t.flags == FLHAL_TENSOR_HOST_SCALAR) {
      t.rank = b.below(8) ? 0 : t.rank;
      uint8_t* value = made.block(element);
      for (uint64_t i = 0; i < element; ++i) value[i] = b.byte();
      t.address = reinterpret_cast<uint64_t>(value);
    }
    return;
  }
  t.flags = (how & 16) ? b.byte() & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_STABLE) : 0;
  uint64_t offset = (how & 32) ? b.number<uint16_t>() % (kArenaBytes + 64) : b.byte() * 16ull;
  if (how & 64) offset = offset / element * element;
  t.address = chip.arena + offset;
}

void take_attribute(Bytes& b, const opset::OpDef* def, uint32_t op, Made& made, flhal_attr& a) {
  const uint32_t n = def && def->n_attrs ? def->n_attrs : 1, number = b.below(8) ? 1 + b.below(n) : b.byte();
  a.key = b.below(32) ? op << 8 | number : b.number<uint32_t>();
  const opset::Attr* row = def && number - 1 < def->n_attrs ? &def->attrs[number - 1] : nullptr;
  a.kind = row && b.below(16) ? row->kind : static_cast<uint16_t>(b.below(9));
  a.flags = b.below(8) ? 0 : b.byte();
  static constexpr double kFloats[] = {0, 1, -1, 0.5, 1e-5, 1e300, -1e30, 3};
  switch (a.kind) {
    case FLHAL_ATTR_INT: a.v.i = b.below(8) ? static_cast<int8_t>(b.byte()) : b.number<int64_t>(); break;
    case FLHAL_ATTR_COMPLEX: a.imag = b.number<double>(); [[fallthrough]];
    case FLHAL_ATTR_FLOAT: a.v.f = b.below(4) ? kFloats[b.below(8)] : b.number<double>(); break;
    case FLHAL_ATTR_INTS:
    case FLHAL_ATTR_FLOATS: {
      a.count = b.below(16) ? (row ? row->count : 2) : b.number<uint16_t>() % 5000;
      auto* values = reinterpret_cast<int64_t*>(made.block(a.count * 8ull));
      for (uint32_t i = 0; i < a.count; ++i) {
        values[i] = b.below(8) ? b.below(6) : b.number<int64_t>();
        if (a.kind == FLHAL_ATTR_FLOATS) std::memcpy(&values[i], &kFloats[i % 8], 8);
      }
      a.v.p = values;
      break;
    }
    case FLHAL_ATTR_STRING: {
      a.count = b.below(16) ? b.below(40) : b.number<uint16_t>() % 40000;
      a.v.p = made.block(a.count);
      break;
    }
    default: {
      auto* philox = reinterpret_cast<flhal_philox*>(made.block(sizeof(flhal_philox)));
      *philox = {b.number<uint64_t>(), b.number<uint64_t>()};
      a.v.p = philox;
    }
  }
}

// Every op of the tables, and now and then a number that is none.
uint32_t take_op(Bytes& b) {
  static const auto& numbers = *[] {
    auto* all = new std::vector<uint32_t>;
    for (uint32_t f = 0; f < opset::kFamilies; ++f)
      for (const opset::OpDef& d : opset::family_rows(f)) all->push_back(d.number);
    return all;
  }();
  const uint8_t i = b.byte();
  return i == 255 ? b.number<uint32_t>() : numbers[i % numbers.size()];
}

void take_call(Bytes& b, const Chip& chip, Made& made) {
  flhal_op_call& call = made.call;
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = take_op(b);
  const opset::OpDef* def = opset::row_of(call.op);
  const uint8_t how = b.byte();
  if (how == 0xff) {
    static const char* const kNames[] = {"mock.sum_of_squares", "add", "", "mock.no_such"};
    call.op = 0;
    call.name = kNames[b.below(4)];
    def = nullptr;
  }
  call.n_outputs = def ? def->n_outputs : 1;
  call.n_inputs = def ? def->n_inputs : 2;
  if (def && def->variadic()) call.n_inputs += b.below(15);
  if (how >= 0xf8 && how < 0xff) {
    call.n_outputs = b.below(4);
    call.n_inputs = b.below(5);
  }
  std::vector<int64_t> shape(b.below(8) ? b.below(4) : b.below(7));
  for (int64_t& s : shape) s = take_size(b);

  const uint32_t n = call.n_outputs + call.n_inputs;
  call.tensor_stride = sizeof(flhal_tensor) + (b.below(16) == 0 ? 8 * b.below(4) : 0) - (b.below(64) == 0 ? 8 : 0);
  call.tensors = reinterpret_cast<flhal_tensor*>(made.block(std::max<size_t>(n, 1) * std::max<size_t>(call.tensor_stride, sizeof(flhal_tensor))));
  if (call.tensor_stride < sizeof(flhal_tensor)) made.heavy = true;   // they overlap here; only the refusal is wanted
  else
    for (uint32_t i = 0; i < n; ++i) take_tensor(b, chip, made, made.tensor(i), shape, i < call.n_outputs);
  call.n_attrs = def && def->n_attrs ? b.below(def->n_attrs + 2u) : b.below(16) == 0;
  if (how == 0xf7) call.n_attrs = b.byte();
  call.attr_stride = sizeof(flhal_attr) + (b.below(16) == 0 ? 8 : 0);
  if (call.n_attrs) {
    auto* attrs = made.block(call.n_attrs * size_t{call.attr_stride});
    for (uint32_t i = 0; i < call.n_attrs; ++i)
      take_attribute(b, def, call.op, made, *reinterpret_cast<flhal_attr*>(attrs + size_t{i} * call.attr_stride));
    call.attrs = reinterpret_cast<flhal_attr*>(attrs);
  }
  if (how & 1) {      // outputs as the shape rule says, so that more calls are good ones
    std::vector<flhal_tensor> outputs(call.n_outputs);
    for (uint32_t i = 0; i < call.n_outputs; ++i) {
      outputs[i] = made.tensor(i);
      made.axes.emplace_back(16);
      outputs[i].sizes = made.axes.back().data();
      made.axes.emplace_back(16);
      outputs[i].strides = made.axes.back().data();
      for (uint32_t d = 0; d < 16 && d < outputs[i].rank; ++d) const_cast<int64_t*>(outputs[i].sizes)[d] = made.tensor(i).sizes[d];
      if (outputs[i].rank > 16) outputs[i].rank = 0;
    }
    if (flhal_op_infer(&call, outputs.data()) == FLHAL_OK)
      for (uint32_t i = 0; i < call.n_outputs; ++i) made.tensor(i) = outputs[i];
  }
  call.compute_dtype = b.below(3) ? 0 : kDtypes[b.below(sizeof kDtypes / sizeof *kDtypes)];
  call.flags = b.below(8) ? 0 : b.byte() & (FLHAL_CALL_NO_HOST_ROUTE | FLHAL_CALL_NO_COMPOSITE);
}

using Arena = std::array<uint8_t, kArenaBytes>;

Arena pattern(uint8_t seed) {
  Arena a;
  for (uint64_t i = 0; i < kArenaBytes; ++i) a[i] = static_cast<uint8_t>((i * 37 + seed) ^ (i >> 5));
  if (seed % 4 == 1)                                   // small indices
    for (uint64_t i = 0; i < kArenaBytes; i += 8) {
      const int64_t v = static_cast<int64_t>(i / 8 * 7 % 4);
      std::memcpy(&a[i], &v, 8);
    }
  if (seed % 4 == 2)                                   // ordinary numbers
    for (uint64_t i = 0; i < kArenaBytes; i += 4) {
      const float v = static_cast<float>(static_cast<int>(i % 29) - 14) / 4;
      std::memcpy(&a[i], &v, 4);
    }
  return a;
}

// Marks the bytes of a view's elements that lie in the arena.
void mark(const flhal_tensor& t, flhal_addr arena, std::vector<bool>* may_change) {
  if (t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR)) return;
  std::array<int64_t, 32> at{};
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] <= 0) return;
  for (;;) {
    uint64_t place = t.address - arena;
    for (uint32_t d = 0; d < t.rank; ++d) place += static_cast<uint64_t>(at[d] * t.strides[d]) * FLHAL_DTYPE_BYTES(t.dtype);
    for (uint64_t i = 0; i < FLHAL_DTYPE_BYTES(t.dtype); ++i)
      if (place + i < kArenaBytes) (*may_change)[place + i] = true;
    uint32_t d = t.rank;
    while (d > 0 && ++at[d - 1] == t.sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

void run(const Chip& chip, const Made& made, uint8_t seed) {
  const Arena before = pattern(seed);
  FLHAL_MUST(flhal_copy(chip.stream, chip.arena, reinterpret_cast<uint64_t>(before.data()), kArenaBytes, 0) == FLHAL_OK);
  const flhal_status answer = flhal_op_run(chip.stream, &made.call);
  char text[1024] = "";
  if (answer < 0) FLHAL_MUST(flhal_last_error(text, sizeof text, nullptr) == answer && text[0] != 0);
  FLHAL_MUST(answer != FLHAL_E_INTERNAL && answer != FLHAL_E_DEVICE_LOST);
  const flhal_status end = flhal_stream_synchronize(chip.stream);
  FLHAL_MUST(end == FLHAL_OK || end == FLHAL_E_OP_FAILED);
  if (end != FLHAL_OK) FLHAL_MUST(flhal_stream_clear_error(chip.stream) == FLHAL_OK);
  Arena after;
  FLHAL_MUST(flhal_copy(chip.stream, reinterpret_cast<uint64_t>(after.data()), chip.arena, kArenaBytes, 0) == FLHAL_OK);
  if (after == before) return;
  std::vector<bool> may_change(kArenaBytes);
  if (answer != FLHAL_DECLINED) {
    const opset::OpDef* def = opset::row_of(made.call.op);
    for (uint32_t i = 0; i < made.call.n_outputs + made.call.n_inputs; ++i)
      if (i < made.call.n_outputs || (def && !def->variadic() && def->input(i - made.call.n_outputs).written))
        mark(made.tensor(i), chip.arena, &may_change);
  }
  for (uint64_t i = 0; i < kArenaBytes; ++i) {
    if (after[i] == before[i] || may_change[i]) continue;
    std::fprintf(stderr, "op %#x answered %d (%s) and changed byte %llu, which is no output's\n", made.call.op, answer, text,
                 static_cast<unsigned long long>(i));
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes b(data, size);
  const uint8_t how = b.byte();
  const Chip& c = chip(how & 1);
  Made made;
  take_call(b, c, made);
  uint32_t route = 0;
  const char* reason = nullptr;
  const flhal_status planned = flhal_op_route(c.device, &made.call, &route, &reason);
  FLHAL_MUST(planned != FLHAL_OK || (route >= FLHAL_ROUTE_NATIVE && route <= FLHAL_ROUTE_DECLINED && reason != nullptr));
  if (!made.heavy) run(c, made, how >> 1);
  return 0;
}

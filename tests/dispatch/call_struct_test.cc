// tests/dispatch/call_struct_test.cc: the struct of a call itself: where it lies, how long it says it is, what hangs on it.
#include <catch2/catch.hpp>

#include <cstddef>
#include <vector>

#include "call.h"

using namespace flhal::test;
using Catch::Contains;

namespace {

// A call of add over three tensors, in words that a test may place and lengthen.
struct Words {
  static constexpr size_t kTail = 32;                       // words behind the struct
  explicit Words(flhal_stream* s) : a(floats(s, {4})), b(floats(s, {4})), out(empty(s, {4})) {
    raw = {out.raw(), a.raw(), b.raw()};
    flhal_op_call call{};
    call.struct_size = sizeof call;
    call.struct_type = FLHAL_ST_OP_CALL;
    call.op = FLHAL_OP_ADD;
    call.tensors = raw.data();
    call.tensor_stride = sizeof(flhal_tensor);
    call.n_outputs = 1;
    call.n_inputs = 2;
    std::memcpy(words, &call, sizeof call);
  }
  flhal_op_call& call(size_t first_word = 0) {
    if (first_word != 0) std::memmove(words + first_word, words, sizeof(flhal_op_call));
    return *reinterpret_cast<flhal_op_call*>(words + first_word);
  }
  Tensor a, b, out;
  std::vector<flhal_tensor> raw;
  alignas(16) uint64_t words[sizeof(flhal_op_call) / 8 + kTail] = {};
};

}  // namespace

TEST_CASE("run: a call's struct may lie at any multiple of eight", "[dispatch][abi]") {
  // Found by a frozen program whose compiler had put it there: core read it as if it lay at a multiple of 16.
  for (const char* chip : {"chip_a", "ram"}) {
    flhal_stream* s = stream_of(chip);
    for (size_t first_word : {0, 1}) {
      Words w(s);
      flhal_op_call& call = w.call(first_word);
      uint32_t route;
      const char* reason;
      CAPTURE(chip, first_word);
      for (int i = 0; i < 3; ++i) CHECK(flhal_op_run(s, &call) == FLHAL_OK);
      call.compute_dtype = FLHAL_F32;                         // the hot path
      for (int i = 0; i < 3; ++i) CHECK(flhal_op_run(s, &call) == FLHAL_OK);
      CHECK(flhal_op_route(flhal_stream_device(s), &call, &route, &reason) == FLHAL_OK);
    }
  }
}

TEST_CASE("run: a longer struct must be zero behind what is known, and a size that is none is not read up to", "[dispatch][abi]") {
  flhal_stream* s = stream_of("chip_a");
  Words w(s);
  flhal_op_call& call = w.call();
  call.struct_size = sizeof call + 64;
  CHECK(flhal_op_run(s, &call) == FLHAL_OK);
  reinterpret_cast<char*>(w.words)[sizeof call + 63] = 1;
  REQUIRE(flhal_op_run(s, &call) == FLHAL_E_ABI);
  CHECK_THAT(last_text(), Contains("sets a field at offset " + std::to_string(sizeof call + 63)));
  call.struct_size = offsetof(flhal_op_call, flags) + 3;      // shorter than 1.0
  REQUIRE(flhal_op_run(s, &call) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("at least 88 is needed"));
  for (uint32_t size : {0x10001u, 0x80000000u, ~0u}) {
    call.struct_size = size;
    REQUIRE(flhal_op_run(s, &call) == FLHAL_E_INVALID);
    CHECK_THAT(last_text(), Contains("which is no size"));
  }
}

TEST_CASE("run: extensions are ignored or refused by their high bit, and a chain without an end is refused", "[dispatch][abi]") {
  flhal_stream* s = stream_of("chip_a");
  Words w(s);
  struct Link {
    uint32_t struct_size, struct_type;
    const void* next;
  };
  std::vector<Link> links(65, {sizeof(Link), 0x1234, nullptr});
  for (size_t i = 1; i < 64; ++i) links[i - 1].next = &links[i];
  flhal_op_call& call = w.call();
  call.next = links.data();
  CHECK(flhal_op_run(s, &call) == FLHAL_OK);
  links[63].struct_type |= 0x80000000u;
  REQUIRE(flhal_op_run(s, &call) == FLHAL_E_UNSUPPORTED);
  CHECK_THAT(last_text(), Contains("0x80001234"));
  links[63] = {sizeof(Link), 0x1234, &links[64]};
  REQUIRE(flhal_op_run(s, &call) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("more than 64 links"));
  links[63].next = &links[0];
  CHECK(flhal_op_run(s, &call) == FLHAL_E_INVALID);
}

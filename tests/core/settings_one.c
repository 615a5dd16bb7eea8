/* tests/core/settings_one.c: a C program that only uses chips; what the settings of its environment do is seen in what it prints.
 *
 *   limit        "limit <device> <bytes>": the ceiling of each device's pool
 *   ops <n>      n times add on the first device and relu on the last one: "ops <first failure> <sentence>"
 *   leave <n>    n times the framework's permission to leave the first device: "leave <first failure> <sentence>"
 *   done         does an add, without waiting: "done <1 when the stream is idle>"
 *   get <key>    "<key> = <value>" */
#include <flhal/flhal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* sentence(void) {
  static char text[16384];
  flhal_last_error(text, sizeof text, NULL);
  return text;
}

static void print(void* ctx, const char* utf8, uint64_t n) {
  (void)ctx;
  fwrite(utf8, 1, (size_t)n, stdout);
}

static flhal_status run(flhal_stream* stream, uint32_t op, uint32_t n_inputs, flhal_addr memory) {
  static const int64_t sizes[] = {4}, strides[] = {1};
  flhal_tensor t[3];
  flhal_op_call call;
  uint32_t i;
  memset(t, 0, sizeof t);
  memset(&call, 0, sizeof call);
  for (i = 0; i < 3; ++i) {
    t[i].address = memory;
    t[i].sizes = sizes;
    t[i].strides = strides;
    t[i].dtype = FLHAL_F32;
    t[i].rank = 1;
  }
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = op;
  call.tensors = t;
  call.tensor_stride = sizeof t[0];
  call.n_outputs = 1;
  call.n_inputs = n_inputs;
  return flhal_op_run(stream, &call);
}

static flhal_addr memory_on(flhal_stream* stream) {
  static const float ones[4] = {1, 1, 1, 1};
  flhal_addr address = 0;
  if (flhal_alloc(stream, 16, &address) != FLHAL_OK || flhal_copy(stream, address, (flhal_addr)(uintptr_t)ones, 16, 0) != FLHAL_OK) {
    printf("alloc ! %s\n", sentence());
    exit(1);
  }
  return address;
}

int main(int argc, char** argv) {
  const uint32_t count = flhal_device_count();
  flhal_device *first = flhal_device_at(0), *last = flhal_device_at(count - 1);
  flhal_stream *s, *t;
  int i;
  if (count == 0 || flhal_device_open(first) != FLHAL_OK) {
    printf("open ! %s\n", sentence());
    return 1;
  }
  s = flhal_stream_default(first);
  t = flhal_stream_default(last);
  for (i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "limit")) {
      uint32_t d;
      for (d = 0; d < count; ++d) {
        flhal_memory_stats stats;
        memset(&stats, 0, sizeof stats);
        stats.struct_size = sizeof stats;
        flhal_device_open(flhal_device_at(d));
        flhal_memory_get_stats(flhal_device_at(d), &stats);
        printf("limit %u %llu\n", d, (unsigned long long)stats.limit);
      }
    } else if (!strcmp(argv[i], "ops")) {
      flhal_status status = FLHAL_OK;
      int n = atoi(argv[++i]);
      flhal_addr a = memory_on(s), b = memory_on(t);
      while (n-- > 0 && status == FLHAL_OK) {
        status = run(s, FLHAL_OP_ADD, 2, a);
        if (status == FLHAL_OK) status = run(t, FLHAL_OP_RELU, 1, b);
      }
      printf("ops %d %s\n", status, status < 0 ? sentence() : "");
    } else if (!strcmp(argv[i], "leave")) {
      flhal_status status = FLHAL_OK;
      int n = atoi(argv[++i]);
      while (n-- > 0 && status == FLHAL_OK) {
        uint64_t ticket = 0;
        status = flhal_fallback_enter(first, n % 10 ? "my::often" : "my::seldom", "no kernel of mine", &ticket);
        if (status == FLHAL_OK) status = flhal_fallback_leave(ticket, 16, 16, "model.c:7");
      }
      printf("leave %d %s\n", status, status < 0 ? sentence() : "");
    } else if (!strcmp(argv[i], "done")) {
      flhal_addr a = memory_on(s);
      flhal_status status = flhal_stream_synchronize(s);
      if (status == FLHAL_OK) status = run(s, FLHAL_OP_ADD, 2, a);
      printf("done %d\n", status == FLHAL_OK && flhal_stream_query(s) == FLHAL_OK);
    } else if (!strcmp(argv[i], "get")) {
      printf("%s = ", argv[++i]);
      if (flhal_config_get(argv[i], print, NULL) != FLHAL_OK) printf("! %s", sentence());
      printf("\n");
    }
  }
  fflush(stdout);
  return 0;
}

/* tests/loading/scan_one.c: prints the devices, whether each one works, and the load report. Public ABI only.
 *
 * Lines: "device <index> <name> product=<text> streams=<0|1> kernels=<0|1> ops=<0|1>", then "works <name>" or
 * "fails <name>: <sentence>", at last "report <json>". Exit code 0 when at least one device works, else 1. */
#include <flhal/flhal.h>
#include <stdio.h>
#include <string.h>

static void print(void* ctx, const char* utf8, uint64_t n) {
  (void)ctx;
  fwrite(utf8, 1, (size_t)n, stdout);
}

static const char* sentence(void) {
  static char text[16384];
  flhal_last_error(text, sizeof text, NULL);
  return text;
}

/* A fill and a copy each way, over two allocations. */
static int works(flhal_device* device) {
  enum { kBytes = 100000 };
  static unsigned char sent[kBytes], got[kBytes];
  flhal_addr a = 0, b = 0;
  uint32_t pattern = 0x01020304;
  int i;
  flhal_stream* stream = flhal_stream_default(device);
  if (stream == NULL) return 0;
  for (i = 0; i < kBytes; ++i) sent[i] = (unsigned char)(i * 7 + i / 256);
  if (flhal_alloc(stream, kBytes, &a) || flhal_alloc(stream, kBytes, &b)) return 0;
  if (flhal_copy(stream, a, (flhal_addr)(uintptr_t)sent, kBytes, 0)) return 0;
  if (flhal_copy(stream, b, a, kBytes, 0)) return 0;
  if (flhal_fill(stream, b, 400, &pattern, 4)) return 0;
  if (flhal_copy(stream, (flhal_addr)(uintptr_t)got, b, kBytes, 0) || flhal_stream_synchronize(stream)) return 0;
  if (flhal_free(a) || flhal_free(b)) return 0;
  if (memcmp(got + 400, sent + 400, kBytes - 400) != 0 || got[0] != 4 || got[399] != 1) {
    printf("wrong bytes\n");
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  uint32_t i, count, good = 0;
  if (argc > 1 && strcmp(argv[1], "--find") == 0) {       /* scan_one --find <name>: the index of a name */
    uint32_t index = 0;
    if (flhal_device_find(argv[2], &index) != FLHAL_OK) {
      printf("not found: %s\n", sentence());
      return 1;
    }
    printf("index %u\n", index);
    return 0;
  }
  count = flhal_device_count();
  printf("count %u\n", count);
  if (count == 0) printf("none: %s\n", sentence());
  for (i = 0; i < count; ++i) {
    flhal_device_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (flhal_device_get_info(flhal_device_at(i), &info) != FLHAL_OK) {
      printf("no info for %u: %s\n", i, sentence());
      continue;
    }
    printf("device %u %s product=%s streams=%u kernels=%u ops=%u\n", i, info.name, info.product, info.is_asynchronous,
           info.has_kernels, info.has_ops);
    if (works(flhal_device_at(i))) {
      printf("works %s\n", info.name);
      ++good;
    } else {
      printf("fails %s: %s\n", info.name, sentence());
    }
  }
  printf("report ");
  flhal_report("load", print, NULL);
  printf("\n");
  return good > 0 ? 0 : 1;
}

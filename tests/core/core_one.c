/* tests/core/core_one.c: does what its arguments say, through the public ABI, and prints what came of it.
 *
 *   init            "init <status> <sentence>"
 *   get <key>       "<key> = <value>" or "<key> ! <sentence>"
 *   set <key> <v>   "set <status> <sentence>"
 *   count           "count <n>" and, for none, the sentence
 *   names           one line "device <index> <name>" each
 *   open            opens device 0: "open <status> <sentence>"
 *   find <name>     "find <index>" or "find ! <sentence>"
 *   load            the load report
 *   fork            forks after opening device 0; the child tries everything and prints "child ..." lines
 *   shutdown        "shutdown <status>", then what count, at and open answer */
#include <flhal/flhal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void print(void* ctx, const char* utf8, uint64_t n) {
  (void)ctx;
  fwrite(utf8, 1, (size_t)n, stdout);
}

static const char* sentence(void) {
  static char text[16384];
  flhal_last_error(text, sizeof text, NULL);
  return text;
}

static void told(const char* what, flhal_status status) { printf("%s %d %s\n", what, status, status < 0 ? sentence() : ""); }

static void at(void) {
  const char* what = flhal_device_at(0) ? "a device" : "none";   /* before the sentence: arguments have no order */
  printf("at %s %s\n", what, sentence());
}

static void in_child(flhal_device* device, flhal_stream* stream, flhal_addr address) {
  uint32_t index = 0;
  flhal_device_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  told("child free", flhal_free(address));
  told("child release", flhal_stream_release(stream));
  printf("child count %u\n", flhal_device_count());
  at();
  told("child open", flhal_device_open(device));
  told("child info", flhal_device_get_info(device, &info));
  told("child find", flhal_device_find("ram", &index));
  told("child alloc", flhal_alloc(stream, 100, &address));
  told("child synchronize", flhal_device_synchronize(device));
  told("child shutdown", flhal_shutdown());
  fflush(stdout);
}

int main(int argc, char** argv) {
  int i;
  for (i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "init")) {
      told("init", flhal_init(FLHAL_VERSION));
    } else if (!strcmp(argv[i], "get")) {
      const char* key = argv[++i];
      printf("%s = ", key);
      if (flhal_config_get(key, print, NULL) != FLHAL_OK) printf("! %s", sentence());
      printf("\n");
    } else if (!strcmp(argv[i], "set")) {
      told("set", flhal_config_set(argv[i + 1], argv[i + 2]));
      i += 2;
    } else if (!strcmp(argv[i], "count")) {
      uint32_t count = flhal_device_count();
      printf("count %u%s%s\n", count, count ? "" : " ", count ? "" : sentence());
    } else if (!strcmp(argv[i], "names")) {
      uint32_t d;
      for (d = 0; d < flhal_device_count(); ++d) {
        flhal_device_info info;
        memset(&info, 0, sizeof info);
        info.struct_size = sizeof info;
        flhal_device_get_info(flhal_device_at(d), &info);
        printf("device %u %s\n", d, info.name);
      }
    } else if (!strcmp(argv[i], "open")) {
      flhal_device* device = flhal_device_at(0);
      told("open", device ? flhal_device_open(device) : FLHAL_E_NOT_FOUND);
    } else if (!strcmp(argv[i], "find")) {
      uint32_t index = 0;
      if (flhal_device_find(argv[++i], &index) == FLHAL_OK) printf("find %u\n", index);
      else printf("find ! %s\n", sentence());
    } else if (!strcmp(argv[i], "load")) {
      flhal_report("load", print, NULL);
      printf("\n");
    } else if (!strcmp(argv[i], "fork")) {
      flhal_device* device = flhal_device_at(0);
      flhal_stream* stream = flhal_stream_default(device);
      flhal_addr address = 0;
      int status = 0;
      pid_t child;
      told("alloc", flhal_alloc(stream, 1000, &address));
      fflush(stdout);
      child = fork();
      if (child == 0) {
        alarm(20);
        in_child(device, stream, address);
        exit(0);
      }
      waitpid(child, &status, 0);
      printf("child ended %d\n", status);
      told("free", flhal_free(address));
    } else if (!strcmp(argv[i], "shutdown")) {
      flhal_device* device = flhal_device_at(0);
      told("shutdown", flhal_shutdown());
      at();
      told("open", flhal_device_open(device));
      told("again", flhal_shutdown());
    } else {
      fprintf(stderr, "core_one: what is %s?\n", argv[i]);
      return 64;
    }
  }
  return 0;
}

/* full_disk.c: a disk that is full below one folder, for the process that preloads this library.
 *
 *   LD_PRELOAD=full_disk.so FULL_DISK=/folder program
 *
 * What would take space below the folder fails with ENOSPC: bytes written to files, and new folders. New files are made, since a
 * full disk mostly still has room for a name: the failure comes after the file is there, which is the harder case.
 * A tmpfs of a few pages would be the real thing, but mounting one needs a right that containers do not give, not even to root. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int below(const char* path) {
  const char* full = getenv("FULL_DISK");
  size_t n = full ? strlen(full) : 0;
  return n != 0 && strncmp(path, full, n) == 0;
}

static int full(int fd) {
  char link[64], path[PATH_MAX];
  ssize_t n;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return below(path);
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

ssize_t write(int fd, const void* bytes, size_t n) {
  static ssize_t (*next)(int, const void*, size_t);
  if (n != 0 && full(fd)) return errno = ENOSPC, -1;
  if (!next) next = NEXT(ssize_t (*)(int, const void*, size_t), "write");
  return next(fd, bytes, n);
}

ssize_t writev(int fd, const struct iovec* parts, int n) {
  static ssize_t (*next)(int, const struct iovec*, int);
  if (n != 0 && full(fd)) return errno = ENOSPC, -1;
  if (!next) next = NEXT(ssize_t (*)(int, const struct iovec*, int), "writev");
  return next(fd, parts, n);
}

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t at) {
  static ssize_t (*next)(int, const void*, size_t, off_t);
  if (n != 0 && full(fd)) return errno = ENOSPC, -1;
  if (!next) next = NEXT(ssize_t (*)(int, const void*, size_t, off_t), "pwrite");
  return next(fd, bytes, n, at);
}

int mkdir(const char* path, mode_t mode) {
  static int (*next)(const char*, mode_t);
  if (below(path) && access(path, F_OK) != 0) return errno = ENOSPC, -1;
  if (!next) next = NEXT(int (*)(const char*, mode_t), "mkdir");
  return next(path, mode);
}

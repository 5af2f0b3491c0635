/* Goes between a program and the C library: slow or failing syncs and another wall clock, as a file of three numbers says.
 *
 * The file is mapped, so what a test writes into it holds at once:
 *   [0] how long each sync takes longer, in milliseconds
 *   [1] how many syncs fail with EIO from now on
 *   [2] how far the wall clock is off, in milliseconds
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t nothing[3];
static _Atomic int64_t *orders = nothing;

__attribute__((constructor)) static void map_orders(void) {
  const char *path = getenv("ATLAS_TEST_SHIM");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) orders = mapped;
}

static int synced(const char *name, int fd) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int64_t ms = atomic_load(&orders[0]);
  if (ms > 0) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
  }
  int64_t failures = atomic_load(&orders[1]);
  while (failures > 0) {
    if (atomic_compare_exchange_weak(&orders[1], &failures, failures - 1)) {
      errno = EIO;
      return -1;
    }
  }
  return sync(fd);
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }

static void shift(struct timespec *at) {
  int64_t ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + atomic_load(&orders[2]) * 1000000;
  at->tv_sec = ns / 1000000000;
  at->tv_nsec = ns % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, at);
  if (result == 0 && clock == CLOCK_REALTIME) shift(at);
  return result;
}

time_t time(time_t *into) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (into) *into = at.tv_sec;
  return at.tv_sec;
}

int gettimeofday(struct timeval *at, void *zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

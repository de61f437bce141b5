/* Functions that the library and libstdc++ use and that GLIBC_2.28 does not export under any name. For x86-64. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* libstdc++ skips atomic operations while this is nonzero, which means that there is only one thread. */
char __libc_single_threaded = 0;

/* Exported since 2.33; before, the headers wrapped functions of other names. On x86-64 struct stat is the kernel's. */
int stat(const char* restrict path, struct stat* restrict of) { return (int)syscall(SYS_stat, path, of); }
int fstat(int file, struct stat* of) { return (int)syscall(SYS_fstat, file, of); }
int lstat(const char* restrict path, struct stat* restrict of) { return (int)syscall(SYS_lstat, path, of); }
int fstatat(int folder, const char* restrict path, struct stat* restrict of, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, of, flags);
}

/* Exported since 2.30. */
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* Exported since 2.30. Waits by the wall clock, in slices of at most a second, so that setting the clock shifts a wait by at most that. The
 * caller must expect early returns, as of any condition variable. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  struct timespec now, wall;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  clock_gettime(clock, &now);
  long long left = (until->tv_sec - now.tv_sec) * 1000000000LL + (until->tv_nsec - now.tv_nsec);
  if (left <= 0) return ETIMEDOUT;
  const int is_slice = left > 1000000000LL;
  if (is_slice) left = 1000000000LL;
  clock_gettime(CLOCK_REALTIME, &wall);
  left += wall.tv_nsec;
  wall.tv_sec += left / 1000000000LL;
  wall.tv_nsec = left % 1000000000LL;
  const int status = pthread_cond_timedwait(condition, mutex, &wall);
  return is_slice && status == ETIMEDOUT ? 0 : status;
}

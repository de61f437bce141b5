#include "failing_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPath = 4096, kLine = 3 * kPath };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char failing[16], under[kPath];
static long at, seen;
static int and_after, error_number, log_file = -1;
static unsigned slow_seconds;
static int is_on; /* atomic: most calls read nothing else */

/* Holds the lock. */
static void look_whether_on(void) { __atomic_store_n(&is_on, failing[0] != '\0' || log_file >= 0, __ATOMIC_RELEASE); }

void failing_disk_fail(const char* call, const char* which, int error) {
  pthread_mutex_lock(&lock);
  char* end = NULL;
  snprintf(failing, sizeof failing, "%s", call ? call : "");
  at = call ? strtol(which, &end, 10) : 0;
  and_after = end && *end == '+';
  error_number = error;
  seen = 0;
  look_whether_on();
  pthread_mutex_unlock(&lock);
}

void failing_disk_watch(const char* prefix, const char* log) {
  pthread_mutex_lock(&lock);
  snprintf(under, sizeof under, "%s", prefix ? prefix : "");
  if (log_file >= 0) syscall(SYS_close, log_file);
  log_file = log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  seen = 0;
  look_whether_on();
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void read_environment(void) {
  const char *call = getenv("ST_FAIL_CALL"), *which = getenv("ST_FAIL_AT"), *error = getenv("ST_FAIL_ERRNO");
  failing_disk_fail(call, which ? which : "1", error ? atoi(error) : ENOSPC);
  const char* seconds = getenv("ST_FAIL_SECONDS");
  slow_seconds = seconds ? (unsigned)atoi(seconds) : 0;
  failing_disk_watch(getenv("ST_FAIL_UNDER"), getenv("ST_CALL_LOG"));
}

/* The absolute path of a call's argument; may be truncated. */
static void resolve(char* out, int folder, const char* path) {
  char link[64];
  out[0] = '\0';
  if (path[0] != '/') {
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    const ssize_t length = readlink(link, out, kPath - 2);
    if (length < 0) return;
    out[length] = '/';
    out[length + 1] = '\0';
  }
  strncat(out, path, kPath - 1 - strlen(out));
}

static void resolve_file(char* out, int file) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, out, kPath - 1);
  out[length < 0 ? 0 : length] = '\0';
}

/* Whether this call must fail; sets errno then. `rest`: logged after the path. */
static int fails(const char* call, const char* path, const char* rest) {
  if (!__atomic_load_n(&is_on, __ATOMIC_ACQUIRE)) return 0;
  pthread_mutex_lock(&lock);
  if (strncmp(path, under, strlen(under)) != 0) {
    pthread_mutex_unlock(&lock);
    return 0;
  }
  int fail = 0;
  const int error = error_number;
  if (strcmp(call, failing) == 0) {
    ++seen;
    fail = seen == at || (and_after && seen > at);
  }
  if (log_file >= 0 && strcmp(call, "read") != 0) {
    static char line[kLine];
    const char* name = fail ? strerrorname_np(error_number) : NULL;
    const int length = snprintf(line, sizeof line, "%s %s%s%s%s\n", call, path, rest, fail ? " = " : "", fail ? (name ? name : "?") : "");
    if (length > 0) syscall(SYS_write, log_file, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
  }
  pthread_mutex_unlock(&lock);
  if (fail && slow_seconds > 0) {
    sleep(slow_seconds);
    return 0;
  }
  if (fail) errno = error;
  return fail;
}

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY) {
    char full[kPath];
    resolve(full, folder, path);
    if (fails("open", full, "")) return -1;
  }
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0; }

#define OPEN(name)                               \
  int name(const char* path, int flags, ...) {   \
    va_list rest;                                \
    va_start(rest, flags);                       \
    const mode_t mode = mode_of(flags, rest);    \
    va_end(rest);                                \
    return open_at(AT_FDCWD, path, flags, mode); \
  }
#define OPENAT(name)                                       \
  int name(int folder, const char* path, int flags, ...) { \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    const mode_t mode = mode_of(flags, rest);              \
    va_end(rest);                                          \
    return open_at(folder, path, flags, mode);             \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

static int write_fails(const char* call, int file, const char* rest) {
  char path[kPath];
  if (!__atomic_load_n(&is_on, __ATOMIC_ACQUIRE)) return 0; /* writes to standard output pass here, too */
  resolve_file(path, file);
  return fails(call, path, rest);
}

ssize_t read(int file, void* bytes, size_t size) { return write_fails("read", file, "") ? -1 : syscall(SYS_read, file, bytes, size); }

ssize_t write(int file, const void* bytes, size_t size) {
  char rest[64];
  snprintf(rest, sizeof rest, " %zu", size);
  return write_fails("write", file, rest) ? -1 : syscall(SYS_write, file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  char rest[64];
  snprintf(rest, sizeof rest, " %zu @%lld", size, (long long)offset);
  return write_fails("pwrite", file, rest) ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) { return pwrite(file, bytes, size, offset); }

int sync_file_range(int file, off64_t offset, off64_t size, unsigned int flags) {
  char rest[64];
  snprintf(rest, sizeof rest, " %lld @%lld", (long long)size, (long long)offset);
  return write_fails("sync_file_range", file, rest) ? -1 : (int)syscall(SYS_sync_file_range, file, offset, size, flags);
}

int fsync(int file) { return write_fails("fsync", file, "") ? -1 : (int)syscall(SYS_fsync, file); }

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned int flags) {
  char source[kPath], target[kPath + 1] = " ";
  resolve(source, from_folder, from);
  resolve(target + 1, to_folder, to);
  return fails("rename", source, target) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) { return renameat2(from_folder, from, to_folder, to, 0); }

int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int mkdirat(int folder, const char* path, mode_t mode) {
  char full[kPath];
  resolve(full, folder, path);
  return fails("mkdir", full, "") ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode);
}

int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int folder, const char* path, int flags) {
  char full[kPath];
  resolve(full, folder, path);
  return fails(flags & AT_REMOVEDIR ? "rmdir" : "unlink", full, "") ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

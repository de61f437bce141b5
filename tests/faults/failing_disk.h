/* A disk that fails on demand, for tests. Linked into a program or preloaded (LD_PRELOAD), it replaces calls of the C library, counts those
 * on paths under a prefix, makes the n-th fail, and logs all of them in order.
 *
 *   ST_FAIL_CALL   open (one that writes) | pwrite | write | sync_file_range | fsync | rename | mkdir | unlink | rmdir
 *                  or read, which is not logged
 *   ST_FAIL_AT     which of those fails, from 1; "5+": that one and all after it, as on a full disk
 *   ST_FAIL_ERRNO  a number; ENOSPC if not given
 *   ST_FAIL_SECONDS  such a call takes this long and then succeeds
 *   ST_FAIL_UNDER  a prefix of absolute paths, links resolved; other files are not affected and not counted
 *   ST_CALL_LOG    a file to which each of these calls is appended: "rename /tmp/a/b.tmp /tmp/a/b", "pwrite /tmp/a/x 4096 @0", with
 *                  " = ENOSPC" after one that was made to fail
 *
 * It does not see mmap, nor calls inside the C library (fopen). */
#ifndef ST_FAILING_DISK_H
#define ST_FAILING_DISK_H

#ifdef __cplusplus
extern "C" {
#endif

/* The same for a program that it is linked into; `call` NULL: nothing fails. Both functions restart the count. */
void failing_disk_fail(const char* call, const char* at, int error);
/* `log` NULL: no log. */
void failing_disk_watch(const char* under, const char* log);

#ifdef __cplusplus
}
#endif

#endif

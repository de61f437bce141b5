/* A disk that fails when told to, for tests: stands before the C library's calls of a program that it is linked into or preloaded to
 * (LD_PRELOAD), counts those that touch paths under a prefix, lets the n-th fail, and writes all of them down in order.
 *
 *   ST_FAIL_CALL   open (one that writes) | pwrite | write | sync_file_range | fsync | rename | mkdir | unlink | rmdir
 *                  or read, which is not written down
 *   ST_FAIL_AT     which of those fails, from 1; "5+": that one and all after it, as on a disk that is full
 *   ST_FAIL_ERRNO  a number; ENOSPC if not given
 *   ST_FAIL_SECONDS  such a call takes so long, and then does what it should
 *   ST_FAIL_UNDER  a prefix of absolute paths, links resolved: other files are left alone and not counted
 *   ST_CALL_LOG    a file to which each of these calls is appended: "rename /tmp/a/b.tmp /tmp/a/b", "pwrite /tmp/a/x 4096 @0", and
 *                  " = ENOSPC" behind one that was made to fail
 *
 * An mmap, and what the C library calls of itself (fopen), is not seen. */
#ifndef ST_FAILING_DISK_H
#define ST_FAILING_DISK_H

#ifdef __cplusplus
extern "C" {
#endif

/* The same for a program that it is linked into; `call` NULL: nothing fails. Both start counting anew. */
void failing_disk_fail(const char* call, const char* at, int error);
/* NULL `log`: none. */
void failing_disk_watch(const char* under, const char* log);

#ifdef __cplusplus
}
#endif

#endif

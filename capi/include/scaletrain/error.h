/* Statuses and errors. Every call but st_last_error returns st_status; the message of the last failed call of this thread is
 * st_last_error(): what was asked, with which values, and the way out. Nothing is thrown, printed or exited across this boundary. */
#ifndef SCALETRAIN_ERROR_H
#define SCALETRAIN_ERROR_H

#include <scaletrain/export.h>

ST_BEGIN

typedef int32_t st_status;
enum {
  ST_OK = 0,
  ST_INVALID_ARGUMENT = 1,
  ST_INVALID_HANDLE = 2, /* NULL, stale, of another kind, or never one of ours */
  ST_WRONG_STATE = 3,
  ST_NOT_FOUND = 4,
  ST_OUT_OF_MEMORY = 5, /* told before anything was touched, with need and supply */
  ST_UNAVAILABLE = 6,   /* a device or plug-in that is not here */
  ST_UNSUPPORTED = 7,
  ST_CANCELLED = 8,
  ST_BUSY = 9, /* another thread is inside a call on this handle */
  ST_TIMEOUT = 10,
  ST_RANK_FAILED = 11,
  ST_RANK_MISMATCH = 12,
  ST_CORRUPT = 13,
  ST_IO = 14,
  ST_NOT_FINITE = 15,
  ST_CALLBACK = 16, /* a callback of the host's returned an error */
  ST_INTERNAL = 17  /* a defect of ours: please report it */
};

/* This thread's last error; "" when there was none. Beyond 8 KB it loses its middle. Never NULL; valid until this thread's next call. */
ST_API const char* st_last_error(void);

/* The same as data. Texts are NULL and numbers -1 where unknown; texts are valid until this thread's next call. */
typedef struct st_error_info {
  uint32_t struct_size;
  st_status status;
  const char* op;     /* "matmul" */
  const char* tensor; /* a parameter, an input or an output: "block.3.mlp.expand.weight" */
  const char* file;
  const char* host;
  const char* collective;
  int64_t offset; /* in the file, bytes */
  int64_t step;   /* the attempt, from 1, that step, advance, forward, backward or apply failed in */
  int32_t rank;
  int32_t reserved;
} st_error_info;

/* For a callback of the host's, as its last call before it returns something else than ST_OK: why, in words. The error that its caller gets
 * has them after the status, as in: on_step returned 42 ("the sensor is gone"). Copied, for this thread, at most 500 bytes; NULL: nothing.
 */
ST_API st_status st_callback_error(const char* text);

ST_API st_status st_error_info_init(st_error_info* info, size_t size);
ST_API st_status st_last_error_info(st_error_info* info);

ST_END
#endif

/* Statuses and errors. Every call except st_last_error returns st_status. st_last_error() is the message of this thread's last failed call:
 * the operation, its values and the way out. The library never throws, prints or exits. */
#ifndef SCALETRAIN_ERROR_H
#define SCALETRAIN_ERROR_H

#include <scaletrain/export.h>

ST_BEGIN

typedef int32_t st_status;
enum {
  ST_OK = 0,
  ST_INVALID_ARGUMENT = 1,
  ST_INVALID_HANDLE = 2, /* NULL, stale, foreign, or of another kind */
  ST_WRONG_STATE = 3,
  ST_NOT_FOUND = 4,
  ST_OUT_OF_MEMORY = 5, /* nothing was changed; the message has the bytes needed and available */
  ST_UNAVAILABLE = 6,   /* a device or plug-in is missing */
  ST_UNSUPPORTED = 7,
  ST_CANCELLED = 8,
  ST_BUSY = 9, /* another thread is inside a call on this handle */
  ST_TIMEOUT = 10,
  ST_RANK_FAILED = 11,
  ST_RANK_MISMATCH = 12,
  ST_CORRUPT = 13,
  ST_IO = 14,
  ST_NOT_FINITE = 15,
  ST_CALLBACK = 16, /* a callback of the host returned an error */
  ST_INTERNAL = 17  /* a bug in the library: please report it */
};

/* This thread's last error; "" if there was none. Longer than 8 KB, it is cut in the middle. Never NULL; valid until this thread's next
 * call. */
ST_API const char* st_last_error(void);

/* The same as data. Texts are NULL and numbers -1 where unknown; texts are valid until this thread's next call. */
typedef struct st_error_info {
  uint32_t struct_size;
  st_status status;
  const char* op;     /* "matmul" */
  const char* tensor; /* a parameter, input or output: "block.3.mlp.expand.weight" */
  const char* file;
  const char* host;
  const char* collective;
  int64_t offset; /* in the file, in bytes */
  int64_t step;   /* the attempt, from 1, in which step, advance, forward, backward or apply failed */
  int32_t rank;
  int32_t reserved;
} st_error_info;

/* Gives the reason for a failure of a host callback: the callback calls this last, before it returns a status other than ST_OK. The error
 * of the outer call then includes the text: on_step returned 42 ("the sensor is gone"). (C), for this thread, at most 500 bytes; NULL: no
 * text. */
ST_API st_status st_callback_error(const char* text);

ST_API st_status st_error_info_init(st_error_info* info, size_t size);
ST_API st_status st_last_error_info(st_error_info* info);

ST_END
#endif

/* Pending: work that continues after the call that started it. With NULL in place of the out pointer that call returns when the work is
 * done. */
#ifndef SCALETRAIN_PENDING_H
#define SCALETRAIN_PENDING_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_pending st_pending;

/* Returns the status of the work, the same each time, with its message and st_last_error_info. From any thread, any number at once.
 * milliseconds below 0: no limit. ST_TIMEOUT: the work is still running, wait again; or it is a collective that ended at its deadline (then
 * st_pending_poll says done). */
ST_API st_status st_pending_wait(st_pending* pending, int64_t milliseconds);
/* done 1: the work has ended, and the next wait returns at once. */
ST_API st_status st_pending_poll(st_pending* pending, int32_t* done);
/* Waits for the work to end; an error that was not fetched is lost. But a save into a checkpoint continues without a wait, and
 * st_checkpoint_wait reports its error. ST_BUSY while another thread waits. */
ST_API st_status st_pending_destroy(st_pending* pending);

ST_END
#endif

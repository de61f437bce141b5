/* Pending: work that goes on after the call which began it. What such a call is given may be NULL: then it returns when all is done. */
#ifndef SCALETRAIN_PENDING_H
#define SCALETRAIN_PENDING_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_pending st_pending;

/* From any thread, by any number at once. milliseconds below 0: as long as it takes. ST_TIMEOUT: still under way, ask again; or, of a
 * collective whose deadline has passed, what it ended with: st_pending_poll tells which. Else the status of the work itself, each time it
 * is asked, with its message and its st_last_error_info. */
ST_API st_status st_pending_wait(st_pending* pending, int64_t milliseconds);
/* done 1: the next wait returns at once. */
ST_API st_status st_pending_poll(st_pending* pending, int32_t* done);
/* Waits for the end; an error that nobody asked for is lost. Of a save into a checkpoint neither: the checkpoint goes on with it, and tells
 * (st_checkpoint_wait). ST_BUSY while another thread waits. */
ST_API st_status st_pending_destroy(st_pending* pending);

ST_END
#endif

/* A distributed sampler: which rows this rank reads next, for a host whose own training loop shares an epoch's rows between ranks. A
 * trainer with data does not need it. The order is a trainer's: each epoch is a permutation of (seed, epoch). The position is one number,
 * the items that all ranks have taken together. So a run can continue on another number of ranks, and in the epoch no row is read twice and
 * none is left out. */
#ifndef SCALETRAIN_DISTRIBUTED_SAMPLER_H
#define SCALETRAIN_DISTRIBUTED_SAMPLER_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_distributed_sampler st_distributed_sampler;

/* How an epoch ends when fewer rows are left than all ranks together would take. */
typedef int32_t st_last_rows;
enum {
  ST_LAST_ROWS_SHARE = 1, /* each row once, divided evenly, the first ranks get one more; a rank may get none */
  ST_LAST_ROWS_DROP = 2,  /* no rank reads them */
  ST_LAST_ROWS_JOIN = 3   /* epochs have no end: the next one's first rows follow, as in a trainer's data. Rows and order are those of a
                           * trainer's micro-batches of `count` rows, one micro-batch a rank */
};

typedef struct st_distributed_sampler_options {
  uint32_t struct_size;
  int32_t shuffle;   /* 0: an epoch is the rows 0, 1, 2, ...; default 1 */
  int32_t rank;      /* this one; default 0 */
  int32_t size;      /* ranks; default 1 */
  int64_t seed;      /* default 0. Like all options but rank, the same on all ranks */
  st_last_rows last; /* default ST_LAST_ROWS_SHARE */
  int32_t reserved;
} st_distributed_sampler_options;
ST_API st_status st_distributed_sampler_options_init(st_distributed_sampler_options* options, size_t size);

/* For `rows` rows, 1 or more, positioned at the first of epoch 0. Memory does not grow with rows. options NULL: the defaults. */
ST_API st_status st_distributed_sampler_create(int64_t rows, const st_distributed_sampler_options* options,
                                               st_distributed_sampler** sampler);
ST_API st_status st_distributed_sampler_destroy(st_distributed_sampler* sampler);

/* The next `count` rows of this rank: slice `rank` of the next size x count items. count, 1 to 2^30, is the same on all ranks. `rows` has
 * room for count; `own` is the number written, less than count only at an epoch's end. `all`: the number for all ranks together, equal on
 * each, so all ranks make the same number of steps; weight means by own / all. all 0: the epoch has ended, and the next call begins the
 * next one, with or without set_epoch. ST_INVALID_ARGUMENT: ST_LAST_ROWS_DROP would drop a whole epoch. */
ST_API st_status st_distributed_sampler_next(st_distributed_sampler* sampler, int64_t count, int64_t* rows, int64_t* own, int64_t* all);

/* Moves to the first row of an epoch, from 0 on. */
ST_API st_status st_distributed_sampler_set_epoch(st_distributed_sampler* sampler, int64_t epoch);
/* Items that all ranks have taken since epoch 0, for a checkpoint: epoch x rows plus those in the epoch; at an epoch's end, the next one's
 * first. A sampler of the same rows and seed, on any number of ranks, continues from such a cursor with the rows that no rank has read. */
ST_API st_status st_distributed_sampler_cursor(st_distributed_sampler* sampler, int64_t* cursor);
ST_API st_status st_distributed_sampler_set_cursor(st_distributed_sampler* sampler, int64_t cursor);

ST_END
#endif

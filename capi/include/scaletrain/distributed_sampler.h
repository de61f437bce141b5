/* A distributed sampler: which rows this rank reads next, for a host with a training loop of its own whose ranks share the rows of an
 * epoch. A trainer with data has none of this to do. The order is a trainer's: each epoch is a permutation of (seed, epoch), and where a
 * sampler stands is one number, the items that all ranks together have taken; so a run goes on with another number of ranks, and none of
 * the rows that were read is read again in the epoch, none left out. */
#ifndef SCALETRAIN_DISTRIBUTED_SAMPLER_H
#define SCALETRAIN_DISTRIBUTED_SAMPLER_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_distributed_sampler st_distributed_sampler;

/* What becomes of an epoch's last rows, where all ranks together would take more. */
typedef int32_t st_last_rows;
enum {
  ST_LAST_ROWS_SHARE = 1, /* each row once: they are dealt out evenly, the first ranks one more; a rank may have none */
  ST_LAST_ROWS_DROP = 2,  /* no rank gets them */
  ST_LAST_ROWS_JOIN = 3   /* epochs have no end: the next one's first rows follow, as in a trainer's data; the rows and their order are
                             those of a trainer's micro-batches of as many rows, one a rank */
};

typedef struct st_distributed_sampler_options {
  uint32_t struct_size;
  int32_t shuffle;   /* 0: an epoch is the rows 0, 1, 2, ...; default 1 */
  int32_t rank;      /* this one; default 0 */
  int32_t size;      /* ranks; default 1 */
  int64_t seed;      /* alike on all ranks, as all but rank; default 0 */
  st_last_rows last; /* default ST_LAST_ROWS_SHARE */
  int32_t reserved;
} st_distributed_sampler_options;
ST_API st_status st_distributed_sampler_options_init(st_distributed_sampler_options* options, size_t size);

/* Of `rows` rows, 1 or more, at the first of epoch 0. Nothing is kept by row. options NULL: the defaults. */
ST_API st_status st_distributed_sampler_create(int64_t rows, const st_distributed_sampler_options* options,
                                               st_distributed_sampler** sampler);
ST_API st_status st_distributed_sampler_destroy(st_distributed_sampler* sampler);

/* The next `count` rows of each rank, 1 to 2^30, on all ranks the same: of the next size x count items the rank-th slice. `rows` has room
 * for count of them; `own` says how many were written, fewer only at an epoch's end. `all`: of all ranks together, on each the same number,
 * so that means are weighted by own / all and all ranks make as many steps; 0: the epoch has ended, and the next call begins the next one,
 * whether set_epoch is called or not. ST_INVALID_ARGUMENT: ST_LAST_ROWS_DROP would drop all of an epoch. */
ST_API st_status st_distributed_sampler_next(st_distributed_sampler* sampler, int64_t count, int64_t* rows, int64_t* own, int64_t* all);

/* To the first row of an epoch, from 0 on. */
ST_API st_status st_distributed_sampler_set_epoch(st_distributed_sampler* sampler, int64_t epoch);
/* Items that all ranks have taken since epoch 0, for a checkpoint: epoch x rows, and those of the epoch. At an epoch's end it is the next
 * one's first. A sampler of the same rows and seed that is set there, of any number of ranks, goes on with what nobody has read. */
ST_API st_status st_distributed_sampler_cursor(st_distributed_sampler* sampler, int64_t* cursor);
ST_API st_status st_distributed_sampler_set_cursor(st_distributed_sampler* sampler, int64_t cursor);

ST_END
#endif

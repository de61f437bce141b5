/* Data parallel without a trainer, for a host with its own forward and backward: replaces each rank's gradients, in the host's own arrays
 * and during backward, by the sum or mean over all ranks.
 *
 *   each rank: st_data_parallel_create(...)   once, with its gradients in the order of the forward
 *   each step: as backward makes gradient i:  st_data_parallel_gradient_ready(dp, i)
 *              after backward:                st_data_parallel_synchronize(dp), then clip and step
 *
 * Sums are those of st_communicator: in rank order, in fp32 (f64: fp64), rounded once to the gradient's dtype. The bits are the same on
 * every rank, for any bucket_bytes, order in which backward makes the gradients, and transport. */
#ifndef SCALETRAIN_DATA_PARALLEL_H
#define SCALETRAIN_DATA_PARALLEL_H

#include <scaletrain/communicator.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_data_parallel st_data_parallel;

typedef struct st_data_parallel_options {
  uint32_t struct_size;
  st_reduce_op op;      /* ST_REDUCE_MEAN, the default, or ST_REDUCE_SUM */
  int64_t bucket_bytes; /* bytes of gradients that are exchanged together; 1 or more, default 26214400. Changes the speed, but no bit */
} st_data_parallel_options;
ST_API st_status st_data_parallel_options_init(st_data_parallel_options* options, size_t size);

/* All ranks call it, and check that they exchange the same: ST_RANK_MISMATCH, on all, names the rank and the gradient, with both sides.
 * options NULL: the defaults.
 * - n gradients, 1 to 2^20: their data is held (H) until st_data_parallel_destroy has returned; names, dims and strides are copied (C).
 *   ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, row-major without gaps, aligned to their dtype; no two share memory. name NULL: "gradient
 *   3", by its index.
 * - Consecutive gradients of one dtype form a bucket, beginning with the last gradient. They are exchanged in place; 16-bit ones need a
 *   buffer for this rank's share of a bucket in fp32.
 * - Calls here count as calls on the communicator. Only the exchange runs in the background, in the order in which it was started, as
 *   pending collectives do; other collectives may be made in between, at the same place on all ranks. */
ST_API st_status st_data_parallel_create(st_communicator* communicator, int64_t n, const st_named_view* gradients,
                                         const st_data_parallel_options* options, st_data_parallel** data_parallel);
/* Waits for running exchanges. */
ST_API st_status st_data_parallel_destroy(st_data_parallel* data_parallel);

/* Backward has finished gradient i, from 0 on, and will not read or write it again in this step (a parameter that is used twice: after its
 * last use). In any order; from one thread at a time. A bucket's exchange starts when all its gradients and the buckets before it are
 * ready. ST_INVALID_ARGUMENT: no such gradient. ST_WRONG_STATE: it was ready already; the message names it. Nothing has changed then.
 * ST_OUT_OF_MEMORY: it counts as ready nevertheless. */
ST_API st_status st_data_parallel_gradient_ready(st_data_parallel* data_parallel, int64_t i);
/* Returns when all gradients of the step hold the sum or mean over all ranks; then the next step begins. ST_WRONG_STATE names the first
 * that is not ready, and how many are not: for an unused parameter set the gradient to zero, report it as ready, and call again; other
 * ranks wait for that, up to their deadline. Other errors are the exchange's (communicator.h): the group is over, and the arrays have
 * undefined values. */
ST_API st_status st_data_parallel_synchronize(st_data_parallel* data_parallel);
/* on 1: nothing is exchanged from now on, and gradient_ready and synchronize do nothing; for micro-batches whose gradients the host adds up
 * in its arrays. 0: exchanges resume with the next backward. The same on all ranks. ST_WRONG_STATE: gradients of a step are ready
 * already. */
ST_API st_status st_data_parallel_no_sync(st_data_parallel* data_parallel, int32_t on);

ST_END
#endif

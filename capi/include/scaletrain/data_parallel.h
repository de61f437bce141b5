/* Data parallel by itself, for a host with its own forward and backward: the gradients of all ranks become their sum or mean, in the host's
 * own arrays, while backward goes on. A trainer on ranks needs none of this.
 *
 *   each rank: st_data_parallel_create(...)   once, with its gradients in the order of the forward
 *   each step: as backward makes gradient i:  st_data_parallel_gradient_ready(dp, i)
 *              behind backward:               st_data_parallel_synchronize(dp), then clip and step
 *
 * Sums are st_communicator's: in the order of the ranks, in fp32 (f64: fp64), rounded once to the gradient's dtype; the same bits on every
 * rank, with any bucket_bytes, any order in which backward makes them, any transport. */
#ifndef SCALETRAIN_DATA_PARALLEL_H
#define SCALETRAIN_DATA_PARALLEL_H

#include <scaletrain/communicator.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_data_parallel st_data_parallel;

typedef struct st_data_parallel_options {
  uint32_t struct_size;
  st_reduce_op op;      /* ST_REDUCE_MEAN, the default, or ST_REDUCE_SUM */
  int64_t bucket_bytes; /* of gradients that are exchanged together; 1 or more, default 26214400. Changes speed, no bit */
} st_data_parallel_options;
ST_API st_status st_data_parallel_options_init(st_data_parallel_options* options, size_t size);

/* Called by all ranks, which find out here whether they exchange the same: ST_RANK_MISMATCH, on all, names the rank and the gradient, with
 * both sides. n gradients, 1 to 2^20: (H) their data until st_data_parallel_destroy has returned, names, dims and strides copied. ST_F32,
 * ST_F64, ST_BF16 or ST_F16 in any mix, row-major without gaps, aligned to their dtype; no two share memory. name NULL: "gradient 3", by
 * its place. Neighbours of one dtype are a bucket, from the last one on. They are exchanged where they lie; for 16 bits there is room for
 * this rank's share of a bucket in fp32. options NULL: the defaults. A call here is one of the communicator's too, but for the exchange
 * itself, which is done behind the calls like what is pending there: in the order in which it was begun, so other collectives may be made
 * in between, on all ranks at the same place. */
ST_API st_status st_data_parallel_create(st_communicator* communicator, int64_t n, const st_named_view* gradients,
                                         const st_data_parallel_options* options, st_data_parallel** data_parallel);
/* Waits for what is being exchanged. */
ST_API st_status st_data_parallel_destroy(st_data_parallel* data_parallel);

/* Backward has made gradient i, from 0 on, and reads and writes it no more in this step: a parameter that is used twice is ready after its
 * last use. When all of its bucket are, and the buckets before it, their exchange begins. In any order; from one thread at a time.
 * ST_INVALID_ARGUMENT: there is no such gradient. ST_WRONG_STATE: it is ready twice, which the message names. Nothing has changed then.
 * ST_OUT_OF_MEMORY: it is ready all the same. */
ST_API st_status st_data_parallel_gradient_ready(st_data_parallel* data_parallel, int64_t i);
/* Returns when all gradients of the step hold the sum or mean of all ranks; then the next step begins. ST_WRONG_STATE names the first that
 * is not ready, and how many are not: where a parameter was not used, set its gradient to zero, say that it is ready, and call again; other
 * ranks wait for that, at most to their deadline. Else what the exchange came to, as st_communicator says: the group is over, and the
 * arrays hold anything. */
ST_API st_status st_data_parallel_synchronize(st_data_parallel* data_parallel);
/* on 1: from now on nothing is exchanged, gradient_ready and synchronize do nothing; for micro-batches whose gradients the host adds up in
 * its arrays. 0: the next backward's are exchanged again; alike on all ranks. ST_WRONG_STATE: gradients of a step are ready already. */
ST_API st_status st_data_parallel_no_sync(st_data_parallel* data_parallel, int32_t on);

ST_END
#endif

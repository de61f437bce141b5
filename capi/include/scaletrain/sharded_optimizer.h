/* A sharded optimizer (ZeRO, Rajbhandari et al. 2020), for a host with its own forward and backward on several ranks. Each rank keeps the
 * state of its shards of the parameters and updates only these, so N ranks together need the memory and arithmetic of one optimizer. A
 * trainer on ranks does not need it.
 *
 *   each rank: st_sharded_optimizer_create(...)        once, with the same parameters, of the same values
 *   each step: backward, then st_sharded_optimizer_step(optimizer, n, gradients, &report)
 *
 * A step reduces the ranks' gradients (do not reduce them before), computes the norm, clips, updates, and gathers the parameters: then all
 * ranks hold the same ones. The bits are those of st_data_parallel's synchronize and st_optimizer's step, on every rank, for any
 * bucket_bytes, threads and transport, at either stage. If a gradient of any rank is inf or NaN, no rank changes anything. (ST_F64
 * gradients whose squares exceed fp64, above 1e154, count as inf.) */
#ifndef SCALETRAIN_SHARDED_OPTIMIZER_H
#define SCALETRAIN_SHARDED_OPTIMIZER_H

#include <scaletrain/communicator.h>
#include <scaletrain/optimizer.h>

ST_BEGIN

typedef struct st_sharded_optimizer st_sharded_optimizer;

typedef struct st_sharded_optimizer_options {
  uint32_t struct_size;
  /* 1, the default: the state is sharded. Gradients are reduced in place: after a step this rank's shards of them hold the sums or means,
   * the rest is unchanged. 2: the sums are sharded too, in the optimizer's memory, 4 bytes for each element of this rank's shards (ST_F64:
   * 8). Gradients are only read; st_sharded_optimizer_gradient_ready takes them one by one during backward, so a host never holds all of
   * them. */
  int32_t stage;
  st_reduce_op op; /* ST_REDUCE_MEAN, the default, or ST_REDUCE_SUM */
  /* 1: for a parameter with a copy (st_sharded_optimizer_keep_copies) a step gathers only the copy, 2 bytes an element instead of 6. Of the
   * parameter itself, its fp32 master, a rank has only the shard that it updates; the rest is outdated until
   * st_sharded_optimizer_gather_state, on the ranks that get the state. Call that before the masters are written to a file, read, or copied
   * by another keep_copies (ST_WRONG_STATE). 0, the default: parameters are gathered too */
  int32_t shard_masters;
  int64_t bucket_bytes; /* bytes of gradients that are exchanged together; 1 or more, default 26214400. Changes the speed, but no bit */
} st_sharded_optimizer_options;
ST_API st_status st_sharded_optimizer_options_init(st_sharded_optimizer_options* options, size_t size);

/* All ranks call it, and check that they train the same: ST_RANK_MISMATCH, on all, names the rank and what differs, with both sides. json,
 * n and parameters as for st_optimizer_create. options NULL: the defaults.
 * - Parameters are sharded at multiples of 1024 elements, except those that the optimizer needs whole (muon's matrices, adafactor's): each
 *   of these belongs to one rank. A rank may have no shard of some parameters.
 * - Calls below count as calls on the communicator: all ranks make them, and other collectives, in the same order. If one rank's call is
 *   refused (a bad view), the others wait for it, up to their deadline. */
ST_API st_status st_sharded_optimizer_create(st_communicator* communicator, const char* json, int64_t n, const st_named_view* parameters,
                                             const st_sharded_optimizer_options* options, st_sharded_optimizer** optimizer);
/* Waits for running exchanges. */
ST_API st_status st_sharded_optimizer_destroy(st_sharded_optimizer* optimizer);

/* Stage 2 only: backward has made gradient i (B), as for st_optimizer_step; in the same order on all ranks. It is copied into a bucket, so
 * its memory may be reused at once; a full bucket is exchanged in the background.
 * - Given again before the step, with the same dtype, it is another micro-batch's. Sums are fp32 (ST_F64: fp64), over micro-batches in
 *   order and over ranks in order within each, and rounded to the gradients' dtype once, by the step.
 * - A frozen parameter's is not read. ST_INVALID_ARGUMENT: no such gradient. ST_WRONG_STATE: stage 1, where a step takes all.
 * - Memory: two buckets, or twice the largest gradient. */
ST_API st_status st_sharded_optimizer_gradient_ready(st_sharded_optimizer* optimizer, int64_t i, const st_view* gradient);

/* One update, in place, on all ranks. The report is the same on all ranks; an inf or NaN on one skips the step on all.
 * - n gradients (B), as for st_optimizer_step, one for each parameter. Stage 1 writes them. Stage 2 only reads them, and adds them to those
 *   given before; n 0: only those, and ST_WRONG_STATE names the first that was not given.
 * - ST_RANK_MISMATCH, on all and before anything is written: a rank is at another step, or has another lr, scale or dtype, with both sides.
 *   After any other error of the exchange (communicator.h) the group is over, and parameters and state have undefined values: resume from a
 *   checkpoint in a new group. */
ST_API st_status st_sharded_optimizer_step(st_sharded_optimizer* optimizer, int64_t n, const st_view* gradients,
                                           st_optimizer_report* report);
/* unscale, clip and step of `scaler`'s order in one call, as st_optimizer_step_scaled. Each rank has its own scaler, made with the same
 * options; all see the same steps skipped, so their scales stay equal. */
ST_API st_status st_sharded_optimizer_step_scaled(st_sharded_optimizer* optimizer, st_loss_scaler* scaler, int64_t n,
                                                  const st_view* gradients, st_optimizer_report* report);

/* As st_optimizer_keep_copies; a step gathers the copies too. Every rank calls it, independently, with the same dtypes. ST_WRONG_STATE:
 * gradients of a step were given already; or shard_masters is set and the masters are not whole here since a step. */
ST_API st_status st_sharded_optimizer_keep_copies(st_sharded_optimizer* optimizer, int64_t n, const st_view* copies);

/* "lr", from the next step on, the same on all ranks; as st_optimizer_set. */
ST_API st_status st_sharded_optimizer_set(st_sharded_optimizer* optimizer, const char* key, const char* json);

/* Called by all ranks, between two steps: gathers the whole state, for a checkpoint, on rank `rank`, or on every rank (-1). Names, dtypes
 * and dims are those of st_optimizer_state_views. There `views` and their data are (O); on other ranks n is 0. With shard_masters it
 * also makes the parameters whole on those ranks, in place. */
ST_API st_status st_sharded_optimizer_gather_state(st_sharded_optimizer* optimizer, int32_t rank, int64_t* n, const st_named_view** views);
/* Continues from such a state (B), given whole, in any order; also from an st_optimizer's, or from another number of ranks or stage, if
 * json and parameters are the same. Every rank calls it, independently, and takes its shards. Views are row-major without gaps; one element
 * may have any dims. The host loads the parameters itself, whole, before the next keep_copies. ST_NOT_FOUND names what is missing,
 * ST_INVALID_ARGUMENT what does not belong to this optimizer; then nothing has changed. */
ST_API st_status st_sharded_optimizer_load_state(st_sharded_optimizer* optimizer, int64_t n, const st_named_view* views);

ST_END
#endif

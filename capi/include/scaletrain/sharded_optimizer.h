/* An optimizer in shards (ZeRO, Rajbhandari et al. 2020), for a host with its own forward and backward on several ranks: each rank keeps
 * the state of its pieces of the parameters alone and updates these, so that N ranks together need the memory of one optimizer, and no more
 * arithmetic. A trainer on ranks needs none of this.
 *
 *   each rank: st_sharded_optimizer_create(...)        once, with the same parameters, of the same values
 *   each step: backward, then st_sharded_optimizer_step(optimizer, n, gradients, &report)
 *
 * A step sums the ranks' own gradients (nobody reduces them before), takes the norm and clips, updates, and gathers the parameters: then
 * all ranks hold the same ones. Bits: those of st_data_parallel's synchronize and st_optimizer's step, on every rank, with any number of
 * bucket_bytes, threads or transport, at either stage; and where a gradient of any rank is inf or NaN, none of them changes anything. (But
 * ST_F64 gradients whose squares pass fp64's range, above 1e154, count as inf.) */
#ifndef SCALETRAIN_SHARDED_OPTIMIZER_H
#define SCALETRAIN_SHARDED_OPTIMIZER_H

#include <scaletrain/communicator.h>
#include <scaletrain/optimizer.h>

ST_BEGIN

typedef struct st_sharded_optimizer st_sharded_optimizer;

typedef struct st_sharded_optimizer_options {
  uint32_t struct_size;
  /* 1, the default: the state is in pieces. Gradients are summed where they lie: behind a step, those of this rank's pieces are the sums
   * or means, and others are as they were. 2: the sums are in pieces too, in memory of the optimizer's own, 4 bytes for each element of
   * this rank's pieces (ST_F64: 8). Gradients are read alone; st_sharded_optimizer_gradient_ready takes them one by one as backward makes
   * them, so that a host never has all of them. */
  int32_t stage;
  st_reduce_op op; /* ST_REDUCE_MEAN, the default, or ST_REDUCE_SUM */
  /* 1: of a parameter that has a copy (st_sharded_optimizer_keep_copies) a step gathers the copy alone, 2 bytes an element in place of 6:
   * of the parameter itself, its fp32 master, a rank has what it updates, and the rest is as it was. Before they are written to a file,
   * read, or copied by another keep_copies (ST_WRONG_STATE until then) st_sharded_optimizer_gather_state makes them whole where it leaves
   * the state. 0, the default: parameters are gathered too */
  int32_t masters_in_pieces;
  int64_t bucket_bytes; /* of gradients that are exchanged together; 1 or more, default 26214400. Changes speed, no bit */
} st_sharded_optimizer_options;
ST_API st_status st_sharded_optimizer_options_init(st_sharded_optimizer_options* options, size_t size);

/* Called by all ranks, which find out here whether they train the same: ST_RANK_MISMATCH, on all, names the rank and what differs, with
 * both sides. json, n, parameters as st_optimizer_create has them. Parameters are cut at multiples of 1024 elements, but those that the
 * optimizer must see whole (muon's matrices, adafactor's): each is one rank's. A rank may have no piece of some. options NULL: the
 * defaults. The calls below are the communicator's too: all ranks make them, and its other collectives, in one order. Where one rank's call
 * is refused (a bad view), others wait for it, at most to their deadline. */
ST_API st_status st_sharded_optimizer_create(st_communicator* communicator, const char* json, int64_t n, const st_named_view* parameters,
                                             const st_sharded_optimizer_options* options, st_sharded_optimizer** optimizer);
/* Waits for what is being exchanged. */
ST_API st_status st_sharded_optimizer_destroy(st_sharded_optimizer* optimizer);

/* Of stage 2: backward has made gradient i (B), as st_optimizer_step has it; in the same order on all ranks. It is copied into a bucket,
 * which is exchanged behind the calls when it is full: the memory may be used again at once. Given again before the step, it is of another
 * micro-batch, of the same dtype: sums are fp32 (ST_F64: fp64), of micro-batches in their order and in each of ranks in theirs, and rounded
 * to the gradients' dtype once, by the step. A frozen parameter's is not looked at. ST_INVALID_ARGUMENT: it is no such gradient.
 * ST_WRONG_STATE: stage 1, where a step takes all. Room: two buckets, or twice the largest gradient. */
ST_API st_status st_sharded_optimizer_gradient_ready(st_sharded_optimizer* optimizer, int64_t i, const st_view* gradient);

/* One update, in place, on all ranks. n gradients as st_optimizer_step takes them, one for each parameter; (B), of stage 1 written, of
 * stage 2 read, and added to those that were given before. n 0, of stage 2: those alone; ST_WRONG_STATE names the first that was not given.
 * The report is the same on all ranks, and so are found inf or NaN. ST_RANK_MISMATCH, on all and before anything is written: a rank is at
 * another step, or has another lr, scale or dtype, with both sides. Other errors of the exchange are the communicator's: the group is over,
 * parameters and state hold anything, and another group goes on from a checkpoint. */
ST_API st_status st_sharded_optimizer_step(st_sharded_optimizer* optimizer, int64_t n, const st_view* gradients,
                                           st_optimizer_report* report);
/* unscale, clip and step of `scaler`'s order in one, as st_optimizer_step_scaled. Each rank has a scaler of its own, made alike: they see
 * the same steps skipped, so their scales stay equal. */
ST_API st_status st_sharded_optimizer_step_scaled(st_sharded_optimizer* optimizer, st_loss_scaler* scaler, int64_t n,
                                                  const st_view* gradients, st_optimizer_report* report);

/* As st_optimizer_keep_copies: a step gathers the copies too. By each rank alone, but of the same dtypes on all. ST_WRONG_STATE:
 * gradients of a step were given already, or with masters_in_pieces the parameters are not whole here since a step. */
ST_API st_status st_sharded_optimizer_keep_copies(st_sharded_optimizer* optimizer, int64_t n, const st_view* copies);

/* "lr", from the next step on, alike on all ranks; as st_optimizer_set. */
ST_API st_status st_sharded_optimizer_set(st_sharded_optimizer* optimizer, const char* key, const char* json);

/* The whole state, for a checkpoint, between two steps: the names, dtypes and dims of st_optimizer_state_views, on rank `rank`, or on
 * every rank (-1). There `views` (O) and their data are valid until the next call on this handle; elsewhere n is 0. With
 * masters_in_pieces the parameters are then whole there, where they lie. Called by all ranks. */
ST_API st_status st_sharded_optimizer_gather_state(st_sharded_optimizer* optimizer, int32_t rank, int64_t* n, const st_named_view** views);
/* Goes on from such a state (B), all of it, in any order, by an optimizer of the same json and parameters on any number of ranks and at
 * either stage, or an st_optimizer: each rank takes its pieces out of it. Row-major without gaps; one element may have any dims. By each
 * rank alone, and by all of them; the parameters are the host's to load, whole, before the next keep_copies. ST_NOT_FOUND
 * names what is missing, ST_INVALID_ARGUMENT what is not of this optimizer; then nothing has changed. */
ST_API st_status st_sharded_optimizer_load_state(st_sharded_optimizer* optimizer, int64_t n, const st_named_view* views);

ST_END
#endif

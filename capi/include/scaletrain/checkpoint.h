/* Checkpoints: a run's folder, saved into in the background, survived by the newest whole checkpoint whatever happens, and loaded on any
 * number of ranks. Weights and optimizer state are safetensors files, which every tool of the field reads; a manifest beside them has the
 * rest and a checksum of each MiB (runtime/checkpoint/README.md has the format, byte by byte). For a trainer: st_trainer_save and
 * st_trainer_resume. For a host with its own loop: its named buffers, by st_checkpoint_save and st_checkpoint_load. */
#ifndef SCALETRAIN_CHECKPOINT_H
#define SCALETRAIN_CHECKPOINT_H

#include <scaletrain/context.h>
#include <scaletrain/model.h>
#include <scaletrain/pending.h>
#include <scaletrain/trainer.h>
#include <scaletrain/view.h>

ST_BEGIN

/* The manager of one folder. */
typedef struct st_checkpoint st_checkpoint;

typedef struct st_checkpoint_options {
  uint32_t struct_size;
  int32_t read_only;       /* 1: lists, verifies and loads only, also beside a process that saves; takes no lock. Default 0. By such a
                              handle ranks other than 0 save their pieces (st_trainer_save) */
  int64_t keep_last;       /* the newest so many stay, and the newest whose weights and loss are finite; 0: all. Default 3 */
  int64_t keep_every;      /* and each whose step is a multiple of it; 0, the default: none */
  int64_t keep_best;       /* and the best so many by `best`; 0, the default: none */
  const char* best;        /* (C) a number in a checkpoint's metadata or training state, "validation_loss"; needed with keep_best */
  int32_t best_is_higher;  /* 1: higher is better. Default 0 */
  int32_t queue;           /* saves that may wait behind the one being written, each with a snapshot of its own; where more come, the call
                              waits. 0 to 16, default 0 */
  double bytes_per_second; /* what the writing may take of the disk; 0, the default: all there is */
  int64_t file_bytes;      /* a file takes tensors up to so many bytes, and one that is larger alone. 1 MiB or more, default 4 GiB */
} st_checkpoint_options;
ST_API st_status st_checkpoint_options_init(st_checkpoint_options* options, size_t size);

/* Makes the folder, takes its lock until destroy, and removes what a killed save left. ST_BUSY names the process that saves there already.
 * read_only: the folder must be there (ST_NOT_FOUND); it may also be one checkpoint of a run's folder, and then calls that take a name
 * mean that one by NULL. options NULL: the defaults. */
ST_API st_status st_checkpoint_create(st_context* context, const char* folder, const st_checkpoint_options* options,
                                      st_checkpoint** checkpoint);
/* Waits for the saves that are under way, which then take all there is of the disk; the lock goes when no trainer saves there any more
 * (st_trainer_save_every). */
ST_API st_status st_checkpoint_destroy(st_checkpoint* checkpoint);

/* Saves n named views, 1 to 1048576, of any dtype, dims and strides: as they are now, since they are copied before the call returns (into
 * memory of the context that is kept for the next save, of the views' size). metadata: a JSON object of texts, numbers and booleans, the
 * host's own (loading gives each back as a text), or NULL. With pending the files come to be meanwhile, and an error is the pending one's;
 * where its handle is destroyed unasked, the error is told by st_checkpoint_wait; ST_OUT_OF_MEMORY where a copy does not fit into the
 * context's memory_limit or the machine. NULL: the call returns when all is on the disk, and needs no such memory. A save that fails leaves
 * the older checkpoints as they were. Behind a save, those that the options do not keep are removed, but none that somebody is reading.
 * ST_WRONG_STATE: read_only. */
ST_API st_status st_checkpoint_save(st_checkpoint* checkpoint, int64_t step, int64_t n, const st_named_view* views, const char* metadata,
                                    st_pending** pending);

typedef struct st_load_report { /* texts are owned by the checkpoint until its next call */
  uint32_t struct_size;
  int32_t reserved;
  int64_t step;             /* of the checkpoint that was loaded */
  const char* name;         /* "step-00000120" */
  const char* metadata;     /* JSON */
  int64_t read;             /* tensors */
  int64_t missing_count;    /* asked for, and not in the checkpoint */
  int64_t unexpected_count; /* in the checkpoint, and not asked for */
  int64_t skipped_count;    /* newer checkpoints that were passed over since they are not whole, and why */
  int64_t changed_count; /* of a trainer: keys of the recipe that differ from the checkpoint's, with both values; an optimizer that begins
                            anew */
  const char* const* missing;
  const char* const* unexpected;
  const char* const* skipped; /* "step-00000130: model.safetensors: block.0.attention.qkv.weight: block 2 ..." */
  const char* const* changed;
} st_load_report;
ST_API st_status st_load_report_init(st_load_report* report, size_t size);

/* Loads into n named views of the tensors' dims and any strides; floating dtypes are converted. name NULL: the newest that is whole; else
 * that one, "step-00000120". options: as for st_model_read; NULL: each view must be there and nothing else. What is needed is read twice:
 * first to check all of it, then into the views, checked again (with overwrite once, straight into the views). So ST_CORRUPT names file,
 * tensor and block, and then, as with every error, no view has changed; but if somebody changes the files between the two. Beyond a buffer
 * a thread it needs no memory. ST_NOT_FOUND: there is no checkpoint, or none of that name, or a view's name is not in it. report may be
 * NULL; its names are filled also when they did not fit. */
ST_API st_status st_checkpoint_load(st_checkpoint* checkpoint, const char* name, int64_t n, const st_named_view* views,
                                    const st_read_options* options, st_load_report* report);

/* The folder's checkpoints, newest first: [{"name":"step-00000120","step":120,"problem":null},..]; "problem" says why a manifest is no
 * good. This text and the next three are owned by the checkpoint until its next call. */
ST_API st_status st_checkpoint_list(st_checkpoint* checkpoint, const char** json);
/* The manifest of one (NULL: the newest) as JSON, without its checksums: format version, step, training state, recipe, metadata, files,
 * tensors with kind, dtype, shape and place. */
ST_API st_status st_checkpoint_inspect(st_checkpoint* checkpoint, const char* name, const char** json);
/* Reads all of one (NULL: the newest): {"name":..,"problems":[{"file":..,"tensor":..,"block":..,"offset":..,"message":..}]}; an
 * empty list says that every byte is as it was written. */
ST_API st_status st_checkpoint_verify(st_checkpoint* checkpoint, const char* name, const char** json);
/* 32 hex digits: of a trainer's checkpoint its st_trainer_digest, of a host's the same over its tensors. */
ST_API st_status st_checkpoint_hash(st_checkpoint* checkpoint, const char* name, const char** hex);

/* Writes one (NULL: the newest that is whole) anew into `folder`, which must not be there or be empty, as `shards` files of each kind with
 * equal parts of each tensor, so that each of as many ranks reads its own; or, with shards 0, whole tensors in files of the options'
 * file_bytes. The result is a checkpoint of the same name, state and hash. */
ST_API st_status st_checkpoint_reshard(st_checkpoint* checkpoint, const char* name, const char* folder, int32_t shards);
/* Writes one (NULL: the newest that is whole) as one safetensors file: its weights, and with everything 1 the optimizer's state too. */
ST_API st_status st_checkpoint_export(st_checkpoint* checkpoint, const char* name, const char* path, int32_t everything);

/* Waits until no save is under way, below 0 milliseconds as long as it takes; ST_TIMEOUT: one still is. Returns the error of a save that
 * nobody was told of yet, once. From any thread at any time; read_only: returns at once. */
ST_API st_status st_checkpoint_wait(st_checkpoint* checkpoint, int64_t milliseconds);

typedef struct st_save_progress {
  uint32_t struct_size;
  int32_t reserved;
  int64_t bytes_done; /* of the save that is being written */
  int64_t bytes_all;  /* 0: none is */
  int64_t waiting;    /* saves behind it */
  int64_t saved;      /* since create */
  int64_t failed;
  int64_t saved_step;     /* of the newest that is on the disk, by this handle; -1: none */
  double blocked_seconds; /* that the last save kept its caller */
  double write_seconds;   /* that the last one took to be written */
} st_save_progress;
ST_API st_status st_save_progress_init(st_save_progress* progress, size_t size);
/* From any thread at any time. */
ST_API st_status st_checkpoint_progress(st_checkpoint* checkpoint, st_save_progress* progress);

/* --- of a trainer --- */

/* Saves all that a run is: weights, optimizer state, averages, step, learning rate, loss scale, random numbers, the place in the data, the
 * recipe; metadata and pending as st_checkpoint_save's. ST_WRONG_STATE while a step is under way. The checkpoint may be in use by other
 * calls: one save waits for the other's copy.
 * Of trainers that are the ranks of a communicator and have pieces of the state (zero 1 or more) all ranks call, between the same steps,
 * and write in parallel, each its own pieces: rank 0 by the handle that has the folder, the others by read_only ones of it, which may be
 * other paths to it. Rank 0 commits when all have synced theirs, and then is the call done, or the pending one, on all of them. What fails
 * on one rank is told on all, with its rank, and training goes on. A rank that has ended, is silent for the communicator's deadline, or
 * lives and writes nothing for 16 of them ends a save that is being written; before, it is as with a step. */
ST_API st_status st_trainer_save(st_trainer* trainer, st_checkpoint* checkpoint, const char* metadata, st_pending** pending);
/* From now on st_trainer_step, run, advance and apply save in the background after each step that is a multiple of `steps` (0: none), and
 * when `minutes` have passed since the last such save (0: never). An error of such a save is told in the report of a later step, in
 * save_error, and logged as a warning, and training goes on. Memory for the copies is taken now where there is enough of it, so that the
 * first save is as quick as the others; where there is none for a copy the step returns when the save is on the disk. checkpoint NULL: no
 * more, and steps and minutes are 0. Until then, or until the trainer is destroyed, it keeps the folder's lock, also when the checkpoint's
 * handle was destroyed. ST_WRONG_STATE: read_only. Ranks that save together (above) all call, with the same numbers; rank 0's clock counts.
 */
ST_API st_status st_trainer_save_every(st_trainer* trainer, st_checkpoint* checkpoint, int64_t steps, double minutes);
/* Makes the trainer what it was when that checkpoint was saved (NULL: the newest that is whole): the steps from here on are, bit by bit,
 * those of the run that was not interrupted. A newer one that is not whole is passed over, and the report says why. Seed, batch
 * and micro-batches must be the checkpoint's; the data by its number of rows, its fields and some of its values; the model by the names,
 * dtypes and dims of its parameters and, where this version of the library saved it and `partial` is 0, by its whole graph. Other keys of
 * the recipe may differ, and the report names them. options: partial and renames as for st_model_read, for weights and their optimizer
 * state together; NULL: strict. A checkpoint that a host or an import saved may hold weights alone: the optimizer's state then begins
 * anew, and the report's `changed` says so. NaN in such a checkpoint is refused (ST_NOT_FINITE). ST_NOT_FOUND: the folder holds no
 * checkpoint; ST_CORRUPT: some, and none is whole. After an error the trainer is what it was. report may be NULL. Ranks that have pieces of
 * the state (zero 1 or more) all call, with the same name (another one is ST_RANK_MISMATCH on all), on the same folder: each reads its own
 * pieces, of whatever number of ranks and stage saved them; rank 0 says which is the newest, and what is not whole for one of them is
 * passed over by all. */
ST_API st_status st_trainer_resume(st_trainer* trainer, st_checkpoint* checkpoint, const char* name, const st_read_options* options,
                                   st_load_report* report);
/* The weights alone, into a model: to predict, to fine-tune. NaN in them is refused (ST_NOT_FINITE, with tensor and first element). */
ST_API st_status st_model_load(st_model* model, st_checkpoint* checkpoint, const char* name, const st_read_options* options,
                               st_load_report* report);

ST_END
#endif

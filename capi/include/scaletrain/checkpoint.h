/* Checkpoints: a run's folder, saved into in the background, and loaded on any number of ranks. Whatever happens during a save, the newest
 * valid checkpoint survives. Weights and optimizer state are safetensors files, which all common tools read; a manifest has the rest and a
 * checksum of each MiB (format: runtime/checkpoint/README.md). For a trainer: st_trainer_save and st_trainer_resume. For a host with its
 * own loop: st_checkpoint_save and st_checkpoint_load of named buffers. */
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
  int32_t read_only;       /* 1: only lists, verifies and loads, also while a process saves there; takes no lock. Default 0. Ranks other
                            * than 0 save their shards through such a handle (st_trainer_save_collective) */
  int64_t keep_last;       /* keep the newest so many, and the newest whose weights and loss are finite; 0: all. Default 3. Those of
                            * another run are kept and not counted; a warning in the log names them. Of another run are those of a
                            * trainer with another model, and, until st_trainer_resume or st_checkpoint_load has read one through
                            * this handle, those that were in the folder at create */
  int64_t keep_every;      /* keep also each whose step is a multiple of this; 0, the default: none */
  int64_t keep_best;       /* keep also the best so many by `best`; 0, the default: none */
  const char* best;        /* (C) a number in a checkpoint's metadata or training state, "validation_loss"; needed with keep_best */
  int32_t best_is_higher;  /* 1: higher is better. Default 0 */
  int32_t queue;           /* saves that may wait for the one being written, each with its own snapshot; a further save blocks its caller. 0
                            * to 16, default 0 */
  double bytes_per_second; /* limit of the write rate; 0, the default: none */
  int64_t file_bytes;      /* maximum size of a file, unless one tensor is larger. 1 MiB or more, default 4 GiB */
} st_checkpoint_options;
ST_API st_status st_checkpoint_options_init(st_checkpoint_options* options, size_t size);

/* Makes the folder, locks it until destroy, and removes what a killed save left. ST_BUSY names the process that saves there already.
 * read_only: the folder must exist (ST_NOT_FOUND); it may also be one checkpoint of a run's folder, which is then what name NULL means
 * below. options NULL: the defaults. */
ST_API st_status st_checkpoint_create(st_context* context, const char* folder, const st_checkpoint_options* options,
                                      st_checkpoint** checkpoint);
/* Waits for running saves, which then write without a rate limit. The lock is released when no trainer saves there any more
 * (st_trainer_save_every). */
ST_API st_status st_checkpoint_destroy(st_checkpoint* checkpoint);

/* Saves n named views, 1 to 1048576, of any dtype, dims and strides, with their values at the call. metadata: a JSON object of texts,
 * numbers and booleans (loading gives each back as a text), or NULL.
 * - With pending: the values are copied before the call returns, into context memory of the views' size that is kept for the next save; the
 *   files are written in the background. An error is the pending's; if that was destroyed before, st_checkpoint_wait returns it.
 *   ST_OUT_OF_MEMORY: the copy exceeds the context's memory_limit or the machine.
 * - pending NULL: the call returns when everything is on disk, and needs no such memory.
 * - A save that fails leaves older checkpoints unchanged. After a save, those that the options do not keep are removed, except ones being
 *   read.
 * - ST_WRONG_STATE: read_only. */
ST_API st_status st_checkpoint_save(st_checkpoint* checkpoint, int64_t step, int64_t n, const st_named_view* views, const char* metadata,
                                    st_pending** pending);

typedef struct st_load_report { /* texts are owned by the checkpoint until its next call */
  uint32_t struct_size;
  int32_t reserved;
  int64_t step;             /* of the checkpoint that was loaded */
  const char* name;         /* "step-00000120" */
  const char* metadata;     /* JSON */
  int64_t read;             /* tensors */
  int64_t missing_count;    /* requested, but not in the checkpoint */
  int64_t unexpected_count; /* in the checkpoint, but not requested */
  int64_t skipped_count;    /* newer checkpoints that are not valid, and why */
  int64_t changed_count; /* for a trainer: recipe keys that differ from the checkpoint's, with both values; an optimizer state that starts
                          * afresh */
  const char* const* missing;
  const char* const* unexpected;
  const char* const* skipped; /* "step-00000130: model.safetensors: block.0.attention.qkv.weight: block 2 ..." */
  const char* const* changed;
} st_load_report;
ST_API st_status st_load_report_init(st_load_report* report, size_t size);

/* Loads into n named views of the tensors' dims and any strides, and converts floating dtypes. name NULL: the newest valid one; else as
 * "step-00000120". options: as for st_model_read; NULL: the views must be exactly the checkpoint's tensors.
 * - It reads twice: first to check everything it needs, then into the views, with another check. So after an error no view has changed,
 *   unless someone changes the files in between. With overwrite it reads once, directly into the views.
 * - It needs no memory except a buffer for each thread.
 * - ST_NOT_FOUND: no checkpoint, or none of that name. ST_INVALID_ARGUMENT: the views do not fit, for example one is not in it. ST_CORRUPT
 *   names file, tensor and block.
 * - report may be NULL; its names are filled also if they do not match. */
ST_API st_status st_checkpoint_load(st_checkpoint* checkpoint, const char* name, int64_t n, const st_named_view* views,
                                    const st_read_options* options, st_load_report* report);

/* The folder's checkpoints, newest first: [{"name":"step-00000120","step":120,"problem":null},..]; "problem" says why a manifest is not
 * valid. This text and the next three are owned by the checkpoint until its next call. */
ST_API st_status st_checkpoint_list(st_checkpoint* checkpoint, const char** json);
/* The manifest of one (NULL: the newest) as JSON, without checksums: format version, step, training state, recipe, metadata, files, and
 * tensors with kind, dtype, shape, file and offset. */
ST_API st_status st_checkpoint_inspect(st_checkpoint* checkpoint, const char* name, const char** json);
/* Reads all of one (NULL: the newest): {"name":..,"problems":[{"file":..,"tensor":..,"block":..,"offset":..,"message":..}]}; an empty list
 * means that every byte is as written. */
ST_API st_status st_checkpoint_verify(st_checkpoint* checkpoint, const char* name, const char** json);
/* 32 hex digits: for a trainer's checkpoint its st_trainer_digest, for a host's the same over its tensors. */
ST_API st_status st_checkpoint_hash(st_checkpoint* checkpoint, const char* name, const char** hex);

/* Rewrites one (NULL: the newest valid) into `folder`, which must be absent or empty, as `shards` files of each kind with equal shards of
 * each tensor, so that each of as many ranks reads its own file; shards 0: whole tensors in files of the options' file_bytes. The result is
 * a checkpoint of the same name, state and hash. */
ST_API st_status st_checkpoint_reshard(st_checkpoint* checkpoint, const char* name, const char* folder, int32_t shards);
/* Writes one (NULL: the newest valid) as one safetensors file: its weights, and with everything 1 the optimizer state too. */
ST_API st_status st_checkpoint_export(st_checkpoint* checkpoint, const char* name, const char* path, int32_t everything);

/* Waits until no save is running; milliseconds below 0: no limit. ST_TIMEOUT: one still is. Returns, once, the error of a failed save that
 * was not reported yet. From any thread at any time. read_only: returns at once. */
ST_API st_status st_checkpoint_wait(st_checkpoint* checkpoint, int64_t milliseconds);

typedef struct st_save_progress {
  uint32_t struct_size;
  int32_t reserved;
  int64_t bytes_done; /* of the save that is being written */
  int64_t bytes_all;  /* 0: no save is being written */
  int64_t waiting;    /* saves in the queue */
  int64_t saved;      /* since create */
  int64_t failed;
  int64_t saved_step;     /* of the newest checkpoint that this handle saved; -1: none */
  double blocked_seconds; /* how long the last save blocked its caller */
  double write_seconds;   /* how long the last save took to write */
} st_save_progress;
ST_API st_status st_save_progress_init(st_save_progress* progress, size_t size);
/* From any thread at any time. */
ST_API st_status st_checkpoint_progress(st_checkpoint* checkpoint, st_save_progress* progress);

/* --- for trainers --- */

/* Saves the whole run: weights, optimizer state, averages, step, learning rate, loss scale, random numbers, position in the data, recipe.
 * metadata and pending: as for st_checkpoint_save. ST_WRONG_STATE while a step is under way. Other calls may use the checkpoint; a save
 * waits while another takes its snapshot.
 * The local call saves what this rank has, which must be the whole state; else ST_WRONG_STATE (trainer.h). The collective one:
 * - All ranks call it between the same steps and write their own shards in parallel: rank 0 through the handle that owns the folder, the
 *   others through read_only handles of it, whose paths may differ. What each rank has whole, rank 0 writes.
 * - Rank 0 commits when all have synced their files; then the call, or the pending, is done on all ranks.
 * - A failure on one rank is reported on all, with its rank, and training continues.
 * - With tensor, ranks first exchange what of weights and state is cut within rows, into memory of about that size, until it is copied.
 * - A save being written ends when a rank has ended, is silent for the communicator's deadline, or is alive but writes nothing for 16
 *   deadlines. Before that the rules of a step apply. */
ST_API st_status st_trainer_save(st_trainer* trainer, st_checkpoint* checkpoint, const char* metadata, st_pending** pending);
ST_API st_status st_trainer_save_collective(st_trainer* trainer, st_checkpoint* checkpoint, const char* metadata, st_pending** pending);
/* From now on st_trainer_step, run, advance and apply save in the background: after each step that is a multiple of `steps` (0: none), and
 * when `minutes` have passed since the last such save (0: never). checkpoint NULL (then steps and minutes are 0): stops this.
 * - An error of such a save is in the report of a later step (save_error) and logged as a warning; training continues.
 * - Memory for the snapshots is allocated now if there is enough, so that the first save is as quick as later ones. Without memory for a
 *   snapshot, the step returns when the save is on disk.
 * - The trainer keeps the folder's lock until it stops saving there or is destroyed, even if the checkpoint's handle is destroyed.
 * - ST_WRONG_STATE: read_only.
 * - Collective: all ranks call it with the same numbers, and save together as by st_trainer_save_collective; rank 0's clock counts. */
ST_API st_status st_trainer_save_every(st_trainer* trainer, st_checkpoint* checkpoint, int64_t steps, double minutes);
ST_API st_status st_trainer_save_every_collective(st_trainer* trainer, st_checkpoint* checkpoint, int64_t steps, double minutes);
/* Restores the trainer to the state of that checkpoint (NULL: the newest valid): later steps have the bits of an uninterrupted run. After
 * an error the trainer is unchanged. report may be NULL.
 * - A newer checkpoint that is not valid is skipped, and the report says why.
 * - What decides a step's rows, its random numbers and the meaning of the state must match (below), else ST_INVALID_ARGUMENT shows both
 *   values. Every other recipe key is the trainer's; the report's `changed` names those that differ from the checkpoint.
 * - Must match: seed, batch and micro-batches; the data's number of rows, fields and some of its values; the names, dtypes and dims of the
 *   model's parameters, and its whole graph if this library version saved it and `partial` is 0.
 * - options: partial and renames as for st_model_read, for weights and their optimizer state; NULL: strict.
 * - A checkpoint that a host or an import saved may hold weights only. The optimizer state then starts afresh (the report's `changed`), and
 *   NaN is ST_NOT_FINITE.
 * - ST_NOT_FOUND says only this: the folder holds no checkpoint (name NULL), or none of that name. A new run may then begin there.
 *   ST_INVALID_ARGUMENT: the checkpoint does not fit, for example it is of another model. ST_CORRUPT: there are some, but none is valid.
 * - Ranks with sharded state all call it, with the same name (else ST_RANK_MISMATCH on all) and on the same folder. Each
 *   reads its own shards, whatever number of ranks and stage saved them. Rank 0 decides which is the newest; one that is not valid for some
 *   rank is skipped by all. */
ST_API st_status st_trainer_resume(st_trainer* trainer, st_checkpoint* checkpoint, const char* name, const st_read_options* options,
                                   st_load_report* report);
/* Loads only the weights, into a model: to predict or fine-tune. NaN is ST_NOT_FINITE, with tensor and first element. ST_NOT_FOUND,
 * ST_INVALID_ARGUMENT and ST_CORRUPT as for st_trainer_resume. */
ST_API st_status st_model_load(st_model* model, st_checkpoint* checkpoint, const char* name, const st_read_options* options,
                               st_load_report* report);

ST_END
#endif

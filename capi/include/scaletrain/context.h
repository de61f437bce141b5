/* A context: the device, threads, allocator and log that computing uses. Graphs, models, data and trainers keep theirs alive. */
#ifndef SCALETRAIN_CONTEXT_H
#define SCALETRAIN_CONTEXT_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_context st_context;

enum { ST_LOG_ERROR = 0, ST_LOG_WARNING = 1, ST_LOG_INFO = 2, ST_LOG_DEBUG = 3 };

/* Called once for each record, from any thread. text has no newline and is valid during the call. */
typedef void (*st_log_fn)(void* user, int32_t level, const char* area, const char* text);

/* The host's parallel-for: calls task(arg, i) for every 0 <= i < n, in any order, on any threads, and returns when all are done. No task
 * waits for another, so a pool of one thread is enough. */
typedef void (*st_task_fn)(void* arg, int64_t i);
typedef void (*st_parallel_fn)(void* user, int64_t n, st_task_fn task, void* arg);

/* The host's allocator, for a context and everything made in it: buffers (parameters, gradients, optimizer state, activations, workspace,
 * batches, snapshots, tensors; aligned to 64) and small objects (graphs, plans, names; aligned to 16).
 * - bytes > 0; align is a power of two. NULL from alloc makes the call that needed the memory ST_OUT_OF_MEMORY.
 * - Called from any thread, until the context and every handle made in it are destroyed. Must not call the library.
 * - Not allocated here: recipes and schedules (they have no context), errors, the handle table, thread stacks, the C library's open
 *   files. */
typedef void* (*st_alloc_fn)(void* user, size_t bytes, size_t align);
typedef void (*st_free_fn)(void* user, void* memory);

typedef struct st_context_options {
  uint32_t struct_size;
  int32_t threads;      /* per trainer, at most 4096; 0: $SCALETRAIN_THREADS, else this process's cores (affinity and cgroup quota) divided
                         * by the launcher's ranks on this machine */
  const char* device;   /* "cpu" (default); "reference": slow, accumulates in fp64; NAME or NAME:INDEX of a plug-in's device ("cuda"), which
                         * is looked for in $SCALETRAIN_BACKEND_PATH and next to this library: ST_UNAVAILABLE says why there is none.
                         * Trainers take it, unless their recipe's key `device` names another one: ST_INVALID_ARGUMENT. Optimizers and
                         * other parts over a host's arrays then compute on the host's processor */
  int64_t memory_limit; /* in bytes, of all buffers together; 0: what the machine has */
  st_log_fn log;        /* NULL: silent; the library never prints */
  void* log_user;
  st_parallel_fn parallel; /* NULL: the library's own threads */
  void* parallel_user;
  st_alloc_fn alloc; /* set both or neither; NULL: the system's allocator */
  st_free_fn free;
  void* memory_user;
  /* (C) File of measured product schedules, used by plans and recipes that ask for tuning (tune_ms, "tune"). NULL:
   * $SCALETRAIN_TUNING_CACHE, else scaletrain/gemm-tuning.txt in $XDG_CACHE_HOME or ~/.cache; "": none. A damaged or inaccessible file is a
   * warning, not an error. */
  const char* tuning_cache;
  /* 1: a model allocates its parameters at their first use, which may be ST_OUT_OF_MEMORY: all of them, or only this rank's part if the
   * first use is a trainer in a group (st_trainer_create_in_group) with zero 3, with zero 1 or 2 in 16 bits, or with stages. So a model may
   * be larger than a rank's memory. 0: a model is created with its parameters. */
  int32_t late_parameters;
  int32_t reserved;
} st_context_options;

ST_API st_status st_context_options_init(st_context_options* options, size_t size);

/* options NULL: all defaults. */
ST_API st_status st_context_create(const st_context_options* options, st_context** context);
ST_API st_status st_context_destroy(st_context* context);

/* Ends what is running in this context with ST_CANCELLED; calls that start later are not affected.
 * - Steps, runs, evaluations and predictions end at their next instruction; a step that has begun its update finishes it first.
 * - Checkpoint calls (a save that is waited for, load, verify, hash, reshard, export) end as soon as the disk allows. Unfinished files are
 *   removed; views of a load are changed only if it has overwrite.
 * - A rank that waits in a collective ends its group for good, on every rank: make a new group.
 * - Async-signal-safe, from any thread: it reports a failure by its status only and leaves st_last_error unchanged. */
ST_API st_status st_context_cancel(st_context* context);

/* Frees memory that is only kept for speed: buffers of idle predictors and evaluations, checkpoint snapshots that no save is writing. */
ST_API st_status st_context_trim(st_context* context);

/* The host's stream on the context's device: a cudaStream_t of that device; 1, CUDA's legacy default stream, as in DLPack; -1: none. 1
 * until this is called. ST_UNSUPPORTED for any but -1 on a device that has no streams (cpu), ST_INVALID_ARGUMENT for a stream of another
 * device and for 2, the default stream of each thread, since ranks are other threads.
 * - A call that takes an array in the device's memory (device >= 1 in st_view) first waits, on the device, for the work that this stream
 *   has been given. Its own work is done when it returns, so what the stream is given then comes after it.
 * - With -1 the host has waited for its work before each such call.
 * - The stream must exist as long as it is set, and such calls from several threads share it. */
ST_API st_status st_context_use_stream(st_context* context, int64_t stream);
ST_API st_status st_context_stream(st_context* context, int64_t* stream);

/* The roles of buffers. The first nine are those of "memory" in st_trainer_plan, which covers a step; evaluation, ragged micro-batches,
 * predictors and the weight average add to them. */
enum {
  ST_MEMORY_PARAMETERS = 0, /* of models and of predictors' snapshots */
  ST_MEMORY_GRADIENTS = 1,  /* and sums of accumulators */
  ST_MEMORY_OPTIMIZER = 2,
  ST_MEMORY_ACTIVATIONS = 3,
  ST_MEMORY_STASH = 4, /* activations kept for backward, and outputs */
  ST_MEMORY_BUCKETS = 5,
  ST_MEMORY_PACKED = 6,    /* parameters packed for products, 16-bit working copies, st_packed */
  ST_MEMORY_WORKSPACE = 7, /* scratch of ops and products */
  ST_MEMORY_CONTROL = 8,   /* learning rates, counters, losses */
  ST_MEMORY_INPUTS = 9,    /* prefetched rows, row-major copies of strided batches */
  ST_MEMORY_TENSORS = 10,  /* st_tensor_create */
  ST_MEMORY_OTHER = 11,    /* temporary memory of a call, snapshots that checkpoints are written from */
  ST_MEMORY_FILE = 12,     /* parameters and optimizer state in a file (recipe key offload_folder): not memory, in no sum */
  ST_MEMORY_HOST = 13,     /* what a device offloads to the host's memory (recipe key offload): in no sum */
  ST_MEMORY_ROLES = 16     /* array size; unused roles are 0 */
};

typedef struct st_memory_stats {
  uint32_t struct_size;
  int32_t reserved;
  int64_t allocated_bytes; /* of buffers on the device, now: the sum of role_bytes without ST_MEMORY_FILE and _HOST */
  int64_t available_bytes; /* on this machine, within the cgroup's limit and memory_limit */
  int64_t resident_bytes;  /* of this process */
  int64_t peak_bytes;      /* maximum of allocated_bytes, as torch.cuda.max_memory_allocated */
  int64_t limit_bytes;     /* the context's memory_limit; 0: none */
  int64_t role_bytes[ST_MEMORY_ROLES];
  int64_t role_peak_bytes[ST_MEMORY_ROLES]; /* of each role by itself; peaks may be at different times */
} st_memory_stats;

ST_API st_status st_memory_stats_init(st_memory_stats* stats, size_t size);
/* Counts buffers, and this rank's part of the memory shared between processes (role other); not names, graphs or plans. Counts change when
 * a buffer is allocated or freed, which no step after the first does on whole batches without gaps. */
ST_API st_status st_context_memory(st_context* context, st_memory_stats* stats);
/* Sets every peak to the present value, as torch.cuda.reset_peak_memory_stats. */
ST_API st_status st_context_reset_peak(st_context* context);
/* "parameters", ..., "host"; never freed. ST_NOT_FOUND if the number is not a role. */
ST_API st_status st_memory_role_name(int32_t role, const char** name);

ST_END
#endif

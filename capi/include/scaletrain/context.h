/* A context: where computing happens, and what the host lends for it. Graphs, models, data and trainers keep theirs alive. */
#ifndef SCALETRAIN_CONTEXT_H
#define SCALETRAIN_CONTEXT_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_context st_context;

enum { ST_LOG_ERROR = 0, ST_LOG_WARNING = 1, ST_LOG_INFO = 2, ST_LOG_DEBUG = 3 };

/* One call a record, from any thread; text without a newline, borrowed during the call. */
typedef void (*st_log_fn)(void* user, int32_t level, const char* area, const char* text);

/* The host's parallel-for: calls task(arg, i) for every 0 <= i < n, in any order, on any threads, and returns when all are done. No task
 * waits for another, so a pool of one thread will do. */
typedef void (*st_task_fn)(void* arg, int64_t i);
typedef void (*st_parallel_fn)(void* user, int64_t n, st_task_fn task, void* arg);

/* Memory of a context and of all that is made in it: buffers (parameters, gradients, optimizer state, activations, workspace, batches,
 * snapshots, tensors; aligned to 64) and what is small (graphs, plans, names; aligned to 16). bytes > 0, align a power of two; NULL from
 * alloc is ST_OUT_OF_MEMORY for the call that needed it. Called from any thread, until the context and every handle made in it are
 * destroyed; must not call the library. A recipe is of no context, and errors, the table of handles, threads' stacks and the C library's
 * open files are the process's. */
typedef void* (*st_alloc_fn)(void* user, size_t bytes, size_t align);
typedef void (*st_free_fn)(void* user, void* memory);

typedef struct st_context_options {
  uint32_t struct_size;
  int32_t threads;      /* per trainer, at most 4096; 0: $SCALETRAIN_THREADS, else this process's cores (affinity and cgroup quota) by a
                         * launcher's ranks here */
  const char* device;   /* "cpu" (default) or "reference": slow, double-accumulating */
  int64_t memory_limit; /* bytes of all buffers together; 0: what the machine has */
  st_log_fn log;        /* NULL: silent; nothing is ever printed */
  void* log_user;
  st_parallel_fn parallel; /* NULL: threads of the library's own */
  void* parallel_user;
  st_alloc_fn alloc; /* both or neither: where all memory comes from; NULL: the system */
  st_free_fn free;
  void* memory_user;
  /* (C) File of schedules that were measured where a plan or recipe asked for it (tune_ms, "tune"). NULL: $SCALETRAIN_TUNING_CACHE, else
   * scaletrain/gemm-tuning.txt in $XDG_CACHE_HOME or ~/.cache; "": none. One that is damaged or cannot be had is a warning, no error. */
  const char* tuning_cache;
  int32_t late_parameters; /* 1: a model here has no parameters until something asks for them, and then all, but for a trainer in a group
                              (st_trainer_create_in_group) of zero 3, or of zero 1 and 2 with 16 bits, which makes its rank's pieces alone:
                              so a model may be larger than a rank's memory. What is ST_OUT_OF_MEMORY is then so where they are asked for.
                              0: a model is made with them */
  int32_t reserved;
} st_context_options;

ST_API st_status st_context_options_init(st_context_options* options, size_t size);

/* options NULL: all defaults. */
ST_API st_status st_context_create(const st_context_options* options, st_context** context);
ST_API st_status st_context_destroy(st_context* context);

/* Ends every step, evaluation, prediction and run of this context that is running, each with ST_CANCELLED at its next instruction; a step
 * that has begun its update ends whole first. So it ends a save of a checkpoint that is waited for, a load, verify, hash, reshard or
 * export, as soon as the disk lets it; what was not finished is removed, and views change only with overwrite. A rank that waits for others
 * in a collective ends its group with it, for good and on every rank: make another one. What starts afterwards is not touched.
 * Async-signal-safe, from any thread: a failure is its status alone, and st_last_error stays as it was. */
ST_API st_status st_context_cancel(st_context* context);

/* Gives back what is only kept for speed: idle predictors' and evaluations' buffers, copies of checkpoints that no save is writing. */
ST_API st_status st_context_trim(st_context* context);

/* What a buffer is for. The first nine are "memory" of st_trainer_plan, which tells what the step takes; evaluation, ragged
 * micro-batches, predictors and the average of weights add theirs. */
enum {
  ST_MEMORY_PARAMETERS = 0, /* models, and the snapshots of predictors */
  ST_MEMORY_GRADIENTS = 1,  /* and the sums of accumulators */
  ST_MEMORY_OPTIMIZER = 2,
  ST_MEMORY_ACTIVATIONS = 3,
  ST_MEMORY_STASH = 4, /* activations kept for backward, and outputs */
  ST_MEMORY_BUCKETS = 5,
  ST_MEMORY_PACKED = 6,    /* parameters as products read them, working copies in 16 bits, st_packed */
  ST_MEMORY_WORKSPACE = 7, /* scratch of ops and products */
  ST_MEMORY_CONTROL = 8,   /* rates, counters, losses */
  ST_MEMORY_INPUTS = 9,    /* rows read ahead, and what the host gave with gaps, without them */
  ST_MEMORY_TENSORS = 10,  /* st_tensor_create */
  ST_MEMORY_OTHER = 11,    /* what a call needs for itself until it returns, and the copies that checkpoints are written from */
  ST_MEMORY_FILE = 12,     /* parameters and optimizer states in a file (recipe key offload_folder): not memory, and in no sum */
  ST_MEMORY_ROLES = 16     /* room for roles that are yet to come, and 0 until then */
};

typedef struct st_memory_stats {
  uint32_t struct_size;
  int32_t reserved;
  int64_t allocated_bytes; /* of buffers on the device, now: the sum of role_bytes but the file's */
  int64_t available_bytes; /* on this machine, lowered by a cgroup's limit and memory_limit */
  int64_t resident_bytes;  /* of this process */
  int64_t peak_bytes;      /* the most that allocated_bytes has been, as torch.cuda.max_memory_allocated */
  int64_t limit_bytes;     /* the context's memory_limit; 0: none */
  int64_t role_bytes[ST_MEMORY_ROLES];
  int64_t role_peak_bytes[ST_MEMORY_ROLES]; /* of each by itself: they need not have been there at once */
} st_memory_stats;

ST_API st_status st_memory_stats_init(st_memory_stats* stats, size_t size);
/* Of buffers, and of the memory in which ranks of several processes meet (role other, a rank's part): names, graphs and plans are not
 * counted. Counts change where a buffer is allocated or freed; a step on whole batches without gaps, but the first, does neither. */
ST_API st_status st_context_memory(st_context* context, st_memory_stats* stats);
/* Every peak is what is there now, and grows from here, as torch.cuda.reset_peak_memory_stats. */
ST_API st_status st_context_reset_peak(st_context* context);
/* "parameters", ..., "other"; valid for ever. ST_NOT_FOUND for a number that is no role. */
ST_API st_status st_memory_role_name(int32_t role, const char** name);

ST_END
#endif

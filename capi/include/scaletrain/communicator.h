/* Communicators: ranks that exchange arrays. Ranks are threads of one process, or processes on one or several machines, each with its own
 * handle. Results have the same bits on every rank, with any transport and any order of arrival: sums are made in rank order, in fp32 (f64:
 * fp64; integers: their own type, with wrap-around), and rounded once.
 *
 * Calls. All ranks make the same collectives in the same order, with the same op, dtype and number of elements; otherwise all get
 * ST_RANK_MISMATCH with both sides. name (NULL or "": none) labels the array in errors and in the flight record. Arrays are ST_F32, ST_F64,
 * ST_BF16, ST_F16, ST_I32, ST_I64 or ST_U8, of any dims, row-major without gaps and aligned to their elements; others are ST_UNSUPPORTED,
 * and the host has to copy them. A refused call changes no array.
 *
 * Pending. If the last argument is not NULL the call returns at once, and a thread of the communicator does the work, in the order of the
 * calls. The views' memory is borrowed until the pending is done; destroying the pending waits for that. If it is NULL the call waits for
 * earlier pending ones, and returns when its memory may be used again.
 *
 * Failure. Where a rank dies, leaves or aborts, or its context is cancelled, every wait of the others ends with ST_RANK_FAILED. A wait for
 * a rank that is silent or absent ends with ST_TIMEOUT at the deadline. st_last_error_info has rank, host, collective and tensor. Then the
 * group is over: arrays in exchange have undefined values, and each later call returns the same error. Destroy the communicator, and make a
 * new one of the remaining ranks. Groups that were split from one another end together. */
#ifndef SCALETRAIN_COMMUNICATOR_H
#define SCALETRAIN_COMMUNICATOR_H

#include <scaletrain/context.h>
#include <scaletrain/pending.h>
#include <scaletrain/transport.h>
#include <scaletrain/view.h>

ST_BEGIN

/* One rank of a group. One call at a time on it, except rank, size, share and abort: from any thread at any time. */
typedef struct st_communicator st_communicator;

typedef struct st_communicator_options {
  uint32_t struct_size;
  int32_t allow_single;          /* for st_communicator_env without a launcher, and for a color that one rank gives to
                                  * st_communicator_split. 1: a group of one rank; 0, the default: an error */
  int64_t deadline_milliseconds; /* longest wait without a byte from the rank that is waited for; 1 or more, default 60000; for
                                  * st_communicator_split and st_communicator_duplicate also 0: as in the group that it is made from */
  int64_t start_milliseconds;    /* longest wait of ranks for each other at the start; 1 or more, default 60000 */
} st_communicator_options;
ST_API st_status st_communicator_options_init(st_communicator_options* options, size_t size);

/* n ranks of this process, 1 to 256; comms[r] is rank r. Use each from its own thread. On an error none is made. */
ST_API st_status st_communicator_local(st_context* context, int32_t n, const st_communicator_options* options, st_communicator** comms);
/* Rank `rank` of `size` processes of this machine, over shared memory. job: a name that the group's ranks share, and no other group on this
 * machine has at that time: "training-4711". Returns when all are there. ST_TIMEOUT names the absent ranks; ST_RANK_MISMATCH a rank with
 * another size or library version; ST_BUSY: that rank is already taken. A process may hold ranks of several groups. */
ST_API st_status st_communicator_processes(st_context* context, const char* job, int32_t rank, int32_t size,
                                           const st_communicator_options* options, st_communicator** communicator);
/* This process's rank by the environment of its launcher (`scaletrain launch`, torchrun, mpirun or srun): RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT; OMPI_COMM_WORLD_*; PMI_*; SLURM_*.
 * - Transport. Ranks of one host use shared memory. Ranks on several hosts use the plug-in gloo, at MASTER_PORT of MASTER_ADDR (under
 *   torchrun, which uses that port itself, at the next one). SCALETRAIN_TRANSPORT=local, gloo or mpi overrides this; mpi uses a duplicate
 *   of MPI_COMM_WORLD and needs MPI_THREAD_MULTIPLE.
 * - ST_INVALID_ARGUMENT: two sources disagree, or one is incomplete; the message has both sides.
 * - ST_NOT_FOUND: there is no launcher. With allow_single: a group of this one rank.
 * - ST_UNAVAILABLE: the plug-in is neither in the folder SCALETRAIN_PLUGINS nor next to this library.
 * - ST_BUSY: the port is in use. ST_TIMEOUT names the absent ranks. */
ST_API st_status st_communicator_env(st_context* context, const st_communicator_options* options, st_communicator** communicator);
/* This process's rank in a group that the host made with another library.
 * - transport "mpi": group is an MPI_Comm*, NULL for MPI_COMM_WORLD. It is duplicated, so all its ranks make this call, in the same order
 *   as their other collectives. The messages of the host and ours are separate. The host frees its own.
 * - MPI must have MPI_THREAD_MULTIPLE, since a thread of the library serves the group; otherwise ST_WRONG_STATE, with the level it has.
 * - Destroy the communicator before MPI_Finalize, which remains the host's call, as MPI_Init.
 * - Another name selects another plug-in, which defines what group is. */
ST_API st_status st_communicator_host(st_context* context, const char* transport, const void* group, const st_communicator_options* options,
                                      st_communicator** communicator);
/* Rank `rank` of `size`, 1 to 4096, which reach each other by functions of the host (transport.h); each is passed `user`. They are called
 * one at a time, from the host's threads and the library's, also while the host computes, and must not call this communicator. A status
 * other than ST_OK is ST_RANK_FAILED for the other rank, with reason() in the message. release is called once, when the communicator and
 * everything that uses it are gone; not if this call fails. Returns when all ranks are there. */
ST_API st_status st_communicator_callbacks(st_context* context, int32_t rank, int32_t size, const st_transport_callbacks* callbacks,
                                           void* user, const st_communicator_options* options, st_communicator** communicator);
/* New groups of this group's ranks, over its transport. All ranks make the call, after which the groups are independent: each has its own
 * order of calls, pending calls and deadline, and is destroyed by itself, in any order. A thread may wait in one group while another thread
 * uses another: the axes of a mesh, or the program's own calls during a trainer's. Sums are in the order of the new group's ranks.
 * - Options NULL: the deadline of this group. start_milliseconds is not used.
 * - From the first such call on, long messages of all these groups, this one included, are copied once more than before.
 * - Errors name the rank by its number in the group that was split first, and in the group of the call: "rank 4 (rank 1 of this group; ..".
 *   st_error_info has the first. A failure, an abort or a cancellation in one group ends all that were split from one another.
 *
 * Split: ranks that give the same color (0 or more) become a group, ordered by key, then by rank. Where a single rank gives a color and not
 * allow_single, every rank gets ST_RANK_MISMATCH with all colors, and this group stays usable. */
ST_API st_status st_communicator_split(st_communicator* communicator, int32_t color, int32_t key, const st_communicator_options* options,
                                       st_communicator** group);
/* The same ranks again. */
ST_API st_status st_communicator_duplicate(st_communicator* communicator, const st_communicator_options* options, st_communicator** group);
/* Leaves the group: waits for pending work, and at most to the deadline for what other ranks still read from this one. If others wait for
 * this rank after that, it counts as having left. To end at once, abort first. */
ST_API st_status st_communicator_destroy(st_communicator* communicator);

ST_API st_status st_communicator_rank(st_communicator* communicator, int32_t* rank);
ST_API st_status st_communicator_size(st_communicator* communicator, int32_t* size);
/* A rank's share of `elements`, as reduce_scatter and all_gather divide them: equal shares, and one more element for each of the first
 * ranks if there is a remainder. begin: its first element; count: may be 0. */
ST_API st_status st_communicator_share(st_communicator* communicator, int64_t elements, int32_t rank, int64_t* begin, int64_t* count);

typedef int32_t st_reduce_op;
enum {
  ST_REDUCE_SUM = 1,
  ST_REDUCE_MEAN = 2, /* floating dtypes only */
  ST_REDUCE_MAX = 3,  /* NaN if a rank has one, as in PyTorch */
  ST_REDUCE_MIN = 4
};

/* Replaces the view, in place, by the reduction over all ranks. */
ST_API st_status st_communicator_all_reduce(st_communicator* communicator, const char* name, const st_view* view, st_reduce_op op,
                                            st_pending** pending);
/* Writes this rank's share of the reduction of all ranks' `whole` into `own`, which may be that part of `whole`. The rest of `whole` is
 * unchanged. */
ST_API st_status st_communicator_reduce_scatter(st_communicator* communicator, const char* name, const st_view* whole, const st_view* own,
                                                st_reduce_op op, st_pending** pending);
/* Fills `whole` with every rank's `own`, in rank order. `own` has this rank's share of the elements, and may be that part of `whole`. */
ST_API st_status st_communicator_all_gather(st_communicator* communicator, const char* name, const st_view* own, const st_view* whole,
                                            st_pending** pending);
/* Both views are split into one equal block a rank: block i of `from` goes to rank i, and rank i's block for this rank into block i of
 * `to`. They share no memory. */
ST_API st_status st_communicator_all_to_all(st_communicator* communicator, const char* name, const st_view* from, const st_view* to,
                                            st_pending** pending);
/* Copies the view of rank `root` to all ranks. */
ST_API st_status st_communicator_broadcast(st_communicator* communicator, const char* name, const st_view* view, int32_t root,
                                           st_pending** pending);
/* From one rank to another; both pass the same dtype and number of elements. Messages between two ranks arrive in order. A send of more
 * than some KiB returns when the other rank has received it, so two ranks that both send first wait for each other. */
ST_API st_status st_communicator_send(st_communicator* communicator, const char* name, const st_view* view, int32_t to,
                                      st_pending** pending);
ST_API st_status st_communicator_receive(st_communicator* communicator, const char* name, const st_view* view, int32_t from,
                                         st_pending** pending);
/* Returns, or is done, when all ranks have reached it. */
ST_API st_status st_communicator_barrier(st_communicator* communicator, const char* name, st_pending** pending);

/* Ends the group: every running and later call on every rank gives ST_RANK_FAILED with this rank and the reason, of which 200 bytes are
 * kept (NULL: none). */
ST_API st_status st_communicator_abort(st_communicator* communicator, const char* reason);

/* Bytes of elements that this rank has sent to others so far. */
ST_API st_status st_communicator_sent_bytes(st_communicator* communicator, int64_t* bytes);
/* The last 64 calls of this rank, oldest first, also while one is pending:
 * [{"sequence":41,"collective":"all_reduce","op":"sum","dtype":"f32","elements":1024,"label":"bucket.3","bytes":4096,"began_us":..,
 *   "ended_us":..},..].
 * Times are of this machine's monotonic clock; ended_us is 0 while a call runs. Owned by the communicator until its next call. */
ST_API st_status st_communicator_flight_record(st_communicator* communicator, const char** json);

ST_END
#endif

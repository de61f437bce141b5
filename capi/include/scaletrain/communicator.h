/* Communicators: ranks that exchange arrays. Ranks are threads of one process, or processes of one machine or several, each with a handle;
 * results have the same bits on every rank, with any transport and in any order of arrival: sums are made in the order of the ranks, in
 * fp32 (f64: fp64; integers: their own type, and wrap around), rounded once.
 *
 * Calls. All ranks make the same collectives in the same order, with the same op, dtype and number of elements; a rank that makes another
 * one is ST_RANK_MISMATCH on all, with both sides. Each takes a name, NULL or "" for none, by which errors and the flight record call the
 * array. Arrays are of ST_F32, ST_F64, ST_BF16, ST_F16, ST_I32, ST_I64 or ST_U8, of any dims, row-major without gaps and aligned to their
 * elements (a copy where a host's are not is the host's to make: ST_UNSUPPORTED says so), and none is touched when its call is refused.
 *
 * Pending. A last argument that is not NULL: the call returns at once, and a thread of the communicator's does the work, one call after the
 * other in the order in which they were made; the memory of the views is lent to it until the pending is done, whose destruction waits for
 * that. NULL: the call returns when its memory may be used again; behind pending ones it waits for its turn.
 *
 * Failure. Where a rank dies, leaves or aborts, or its context is cancelled, every wait of the others ends with ST_RANK_FAILED, and one for
 * a rank that is silent or does not come with ST_TIMEOUT at the deadline; st_last_error_info has rank, host, collective and tensor. Then
 * the group is over: arrays that were being exchanged hold anything, and each later call gives that error again. Destroy it, and make
 * another one of those that are left. */
#ifndef SCALETRAIN_COMMUNICATOR_H
#define SCALETRAIN_COMMUNICATOR_H

#include <scaletrain/context.h>
#include <scaletrain/pending.h>
#include <scaletrain/transport.h>
#include <scaletrain/view.h>

ST_BEGIN

/* One rank of a group. Calls on it: one at a time, but rank, size, share and abort, which are any thread's at any time. */
typedef struct st_communicator st_communicator;

typedef struct st_communicator_options {
  uint32_t struct_size;
  int32_t allow_single;          /* st_communicator_env without a launcher: 1 makes one rank alone; default 0, an error */
  int64_t deadline_milliseconds; /* that a wait may take without a byte from whom it waits for; 1 or more, default 60000 */
  int64_t start_milliseconds;    /* that ranks wait for each other at the start; 1 or more, default 60000 */
} st_communicator_options;
ST_API st_status st_communicator_options_init(st_communicator_options* options, size_t size);

/* n ranks of this process, 1 to 256, comms[r] for rank r: give each to a thread of its own. Where there is an error, none is made. */
ST_API st_status st_communicator_local(st_context* context, int32_t n, const st_communicator_options* options, st_communicator** comms);
/* Rank `rank` of `size` processes of this machine, by shared memory. job: what the group's ranks have in common and no other group of this
 * machine has at that time, "training-4711". Returns when all are there; ST_TIMEOUT names those who are not, ST_RANK_MISMATCH one with
 * another size or another version of this library, ST_BUSY: that rank is there already. A process may hold ranks of several groups. */
ST_API st_status st_communicator_processes(st_context* context, const char* job, int32_t rank, int32_t size,
                                           const st_communicator_options* options, st_communicator** communicator);
/* The rank that this process was started as, by the environment of `scaletrain launch`, torchrun, mpirun or srun: RANK, WORLD_SIZE,
 * MASTER_ADDR, MASTER_PORT; OMPI_COMM_WORLD_*; PMI_*; SLURM_*. Two of them that disagree, or one that is not complete, are
 * ST_INVALID_ARGUMENT with both sides; none is there: ST_NOT_FOUND, or with allow_single a group of this one rank. Ranks of one host meet
 * in shared memory, those of several by the plug-in gloo, at MASTER_PORT of MASTER_ADDR (under torchrun, which has that port itself, at the
 * next). SCALETRAIN_TRANSPORT=local, gloo or mpi says it otherwise; mpi is a duplicate of MPI_COMM_WORLD, of an MPI that serves several
 * threads. ST_UNAVAILABLE: no such plug-in beside this library, or in the folder SCALETRAIN_PLUGINS; ST_BUSY: the port is in use;
 * ST_TIMEOUT names the ranks that did not come. */
ST_API st_status st_communicator_env(st_context* context, const st_communicator_options* options, st_communicator** communicator);
/* The rank that this process is in a group which the host made with another library. transport "mpi": group is an MPI_Comm*, NULL for
 * MPI_COMM_WORLD, which is duplicated here, so that all of its ranks make this call, in the same order as its other collectives; its own
 * messages and ours do not meet, and it is the host's to free. MPI must serve several threads (MPI_THREAD_MULTIPLE), since one of the
 * library's looks after the group: else ST_WRONG_STATE with the level that it has. Destroy the communicator before MPI_Finalize, which
 * stays the host's where MPI_Init was. Another name is that of another plug-in, which says what its group is. */
ST_API st_status st_communicator_host(st_context* context, const char* transport, const void* group, const st_communicator_options* options,
                                      st_communicator** communicator);
/* Rank `rank` of `size`, 1 to 4096, that reach each other by functions of the host's, as transport.h has them: user goes to each. They are
 * called from the host's threads and from the library's own, one at a time, also while the host computes, and make no call on it; a
 * status other than ST_OK is ST_RANK_FAILED of the other rank, with reason() in the message. release is called once, when the communicator
 * and all that uses it is gone; not where this fails. Returns when all are there. */
ST_API st_status st_communicator_callbacks(st_context* context, int32_t rank, int32_t size, const st_transport_callbacks* callbacks,
                                           void* user, const st_communicator_options* options, st_communicator** communicator);
/* Leaves the group: waits for what is pending, and at most to the deadline for what others still read of ours. A rank that is waited for
 * after that is one that left. To end at once: abort first. */
ST_API st_status st_communicator_destroy(st_communicator* communicator);

ST_API st_status st_communicator_rank(st_communicator* communicator, int32_t* rank);
ST_API st_status st_communicator_size(st_communicator* communicator, int32_t* size);
/* A rank's share of so many elements, as reduce_scatter and all_gather cut them: even but for the rest, of which the first ranks have one
 * each. begin: its first element; count: may be 0. */
ST_API st_status st_communicator_share(st_communicator* communicator, int64_t elements, int32_t rank, int64_t* begin, int64_t* count);

typedef int32_t st_reduce_op;
enum {
  ST_REDUCE_SUM = 1,
  ST_REDUCE_MEAN = 2, /* floating dtypes only */
  ST_REDUCE_MAX = 3,  /* NaN where a rank has one, as PyTorch's */
  ST_REDUCE_MIN = 4
};

/* The view, in place, becomes that of all ranks reduced. */
ST_API st_status st_communicator_all_reduce(st_communicator* communicator, const char* name, const st_view* view, st_reduce_op op,
                                            st_pending** pending);
/* `own` gets this rank's share of all ranks' `whole` reduced. It may be that part of `whole`, whose other elements are left as they are. */
ST_API st_status st_communicator_reduce_scatter(st_communicator* communicator, const char* name, const st_view* whole, const st_view* own,
                                                st_reduce_op op, st_pending** pending);
/* `whole` gets every rank's `own`, one behind the other: `own` has this rank's share of its elements, and may be that part of it. */
ST_API st_status st_communicator_all_gather(st_communicator* communicator, const char* name, const st_view* own, const st_view* whole,
                                            st_pending** pending);
/* Both hold as many equal parts as there are ranks: part i of `from` goes to rank i, and its part for us into part i of `to`. They share no
 * memory. */
ST_API st_status st_communicator_all_to_all(st_communicator* communicator, const char* name, const st_view* from, const st_view* to,
                                            st_pending** pending);
/* All get the view that rank `root` has. */
ST_API st_status st_communicator_broadcast(st_communicator* communicator, const char* name, const st_view* view, int32_t root,
                                           st_pending** pending);
/* From one rank to another one; the two agree in dtype and number of elements. Several between two ranks arrive in their order. A send of
 * more than some KiB returns when the other rank has received it: two ranks that both send first wait for each other. */
ST_API st_status st_communicator_send(st_communicator* communicator, const char* name, const st_view* view, int32_t to,
                                      st_pending** pending);
ST_API st_status st_communicator_receive(st_communicator* communicator, const char* name, const st_view* view, int32_t from,
                                         st_pending** pending);
/* Returns, or is done, when all ranks are here. */
ST_API st_status st_communicator_barrier(st_communicator* communicator, const char* name, st_pending** pending);

/* Ends the group: all calls under way and to come, on every rank, give ST_RANK_FAILED with this rank and the reason (NULL: none), of which
 * the first 200 bytes are kept. */
ST_API st_status st_communicator_abort(st_communicator* communicator, const char* reason);

/* Bytes of elements that this rank has sent to others so far. */
ST_API st_status st_communicator_sent_bytes(st_communicator* communicator, int64_t* bytes);
/* The last 64 calls of this rank, oldest first, also while one is pending: [{"sequence":41,"collective":"all_reduce","op":"sum",
 * "dtype":"f32","elements":1024,"label":"bucket.3","bytes":4096,"began_us":..,"ended_us":..},..]; of this machine's monotonic clock, and 0
 * where a call is under way. Owned by the communicator until its next call. */
ST_API st_status st_communicator_flight_record(st_communicator* communicator, const char** json);

ST_END
#endif

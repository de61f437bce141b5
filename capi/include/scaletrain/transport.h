/* Transports of others: how ranks reach each other by functions of the host's (st_communicator_callbacks), or by a plug-in, a shared
 * library libscaletrain_<name>.so beside libscaletrain.so that exports st_plugin_v1 (st_communicator_env and st_communicator_host take
 * them). Nothing but C crosses.
 *
 * A transport moves bytes, in order, between each two ranks, and knows no more: what ranks agree in, who lives, who has failed and every
 * collective is ScaleTrain's, so that no bit of a result depends on the transport. */
#ifndef SCALETRAIN_TRANSPORT_H
#define SCALETRAIN_TRANSPORT_H

#include <scaletrain/error.h>

ST_BEGIN

/* One rank's pipes to the others. The functions return at once, whatever the other rank does. They are called one at a time, but from
 * several threads: one of the library's own looks after the group while the host computes. A status other than ST_OK says that the other
 * rank can be reached no more, which ends the group, on all ranks that can be told; reason() then says why, in a sentence. */
typedef struct st_transport_callbacks {
  uint32_t struct_size;
  int32_t reserved;
  /* Takes what it can of `bytes` (1 or more) for rank `to`, behind what it took before. *taken: how many, may be 0. Its own when it
   * returns. */
  st_status (*write)(void* user, int32_t to, const void* data, int64_t bytes, int64_t* taken);
  /* Gives what has come from rank `from` and was not given yet, at most `bytes` (1 or more). *given: how many, 0 where there is nothing. */
  st_status (*read)(void* user, int32_t from, void* data, int64_t bytes, int64_t* given);
  const char* (*reason)(void* user); /* of the last failure; valid until the next call. May be NULL */
  void (*release)(void* user);       /* the last call; a plug-in's also where the group was not made. May be NULL */
} st_transport_callbacks;
ST_API st_status st_transport_callbacks_init(st_transport_callbacks* callbacks, size_t size);

/* What the library asks for. */
typedef struct st_plugin_start {
  uint32_t struct_size;
  int32_t rank, size;                  /* -1: the transport knows them itself */
  int32_t port;                        /* of rank 0's host, 1 to 65535; 0: not given */
  const char* host;                    /* rank 0's; NULL: not given */
  const void* group;                   /* the host's own group, as its transport has it (an MPI_Comm*); NULL: none */
  int64_t milliseconds;                /* that ranks wait for each other */
  int32_t (*is_cancelled)(void* user); /* looked at in each wait; never NULL */
  void* user;
} st_plugin_start;

/* A rank's end, or why there is none. */
typedef struct st_plugin_end {
  uint32_t struct_size;
  int32_t rank, size;
  int32_t failed_rank; /* whose fault a failure is; -1: nobody's */
  void* user;
  st_transport_callbacks callbacks;
  char reason[1024]; /* of a failure: a sentence with the way out, UTF-8, ends with a 0 */
} st_plugin_end;

#define ST_PLUGIN_ABI 1

/* Two of different `abi` do not work together, and say so with both versions. What stands in front of `open` stays where it is. */
typedef struct st_plugin {
  uint32_t struct_size;
  uint32_t abi;        /* ST_PLUGIN_ABI */
  const char* name;    /* "gloo" */
  const char* version; /* of the ScaleTrain whose header it was built with */
  const char* library; /* what it stands on: "Gloo 0.5.0" */
  /* Meets the other ranks. Other than ST_OK: end->reason and failed_rank say why; the callbacks are not used. Fills end->callbacks within
   * its struct_size. */
  st_status (*open)(const st_plugin_start* start, st_plugin_end* end);
} st_plugin;

/* What a plug-in exports under the name "st_plugin_v1". */
typedef const st_plugin* (*st_plugin_entry)(void);

ST_END
#endif

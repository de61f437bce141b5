/* Transports of the host or of plug-ins: C functions by which ranks reach each other. The host passes them to st_communicator_callbacks. A
 * plug-in is a shared library libscaletrain_<name>.so next to libscaletrain.so that exports st_plugin_v1; st_communicator_env and
 * st_communicator_host load it.
 *
 * A transport moves bytes, in order, between every two ranks, and does nothing else. Agreement between ranks, liveness, failures and every
 * collective are ScaleTrain's, so no bit of a result depends on the transport. */
#ifndef SCALETRAIN_TRANSPORT_H
#define SCALETRAIN_TRANSPORT_H

#include <scaletrain/error.h>

ST_BEGIN

/* One rank's pipes to the others. The functions return at once, whatever the other rank does. They are called one at a time, but from
 * several threads: one of the library's serves the group while the host computes. A status other than ST_OK means that the other rank
 * cannot be reached any more. This ends the group on all ranks that can be reached; reason() then says why, in a sentence. */
typedef struct st_transport_callbacks {
  uint32_t struct_size;
  int32_t reserved;
  /* Takes as many of `bytes` (1 or more) for rank `to` as it can, after those it took before, and copies them. *taken: how many; may be
   * 0. */
  st_status (*write)(void* user, int32_t to, const void* data, int64_t bytes, int64_t* taken);
  /* Gives bytes from rank `from` that it has not given yet, at most `bytes` (1 or more). *given: how many; 0 if there are none. */
  st_status (*read)(void* user, int32_t from, void* data, int64_t bytes, int64_t* given);
  const char* (*reason)(void* user); /* of the last failure; valid until the next call. May be NULL */
  void (*release)(void* user);       /* the last call; of a plug-in also if the group was not made. May be NULL */
} st_transport_callbacks;
ST_API st_status st_transport_callbacks_init(st_transport_callbacks* callbacks, size_t size);

/* The library's request to a plug-in. */
typedef struct st_plugin_start {
  uint32_t struct_size;
  int32_t rank, size;                  /* -1: the transport knows them itself */
  int32_t port;                        /* of rank 0's host, 1 to 65535; 0: not given */
  const char* host;                    /* of rank 0; NULL: not given */
  const void* group;                   /* the host's own group, in the transport's type (an MPI_Comm*); NULL: none */
  int64_t milliseconds;                /* longest wait of ranks for each other */
  int32_t (*is_cancelled)(void* user); /* to be checked in each wait; never NULL */
  void* user;
} st_plugin_start;

/* A rank's end of the transport, or the reason why there is none. */
typedef struct st_plugin_end {
  uint32_t struct_size;
  int32_t rank, size;
  int32_t failed_rank; /* rank that caused a failure; -1: unknown */
  void* user;
  st_transport_callbacks callbacks;
  char reason[1024]; /* of a failure: a sentence with the way out, UTF-8, zero-terminated */
} st_plugin_end;

#define ST_PLUGIN_ABI 1

/* Library and plug-in with different `abi` do not work together, and report both versions. Fields before `open` keep their place. */
typedef struct st_plugin {
  uint32_t struct_size;
  uint32_t abi;        /* ST_PLUGIN_ABI */
  const char* name;    /* "gloo" */
  const char* version; /* of the ScaleTrain whose header it was built with */
  const char* library; /* that it uses: "Gloo 0.5.0" */
  /* Connects to the other ranks. If it does not return ST_OK, end->reason and failed_rank say why, and the callbacks are not used. Fills
   * end->callbacks within its struct_size. */
  st_status (*open)(const st_plugin_start* start, st_plugin_end* end);
} st_plugin;

/* The function that a plug-in exports as "st_plugin_v1". */
typedef const st_plugin* (*st_plugin_entry)(void);

ST_END
#endif

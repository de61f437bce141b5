// Ranks driven by this one thread: groups of one, and of two whose other end rarely joins, so that their waits end at a short deadline.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

st_communicator_options options(World& world) {
  st_communicator_options made;
  CALL(st_communicator_options_init, &made, sizeof made);
  made.deadline_milliseconds = world.bytes.rarely(16) ? -1 : 1;
  made.start_milliseconds = world.bytes.rarely(16) ? 0 : 1;
  return made;
}

/// As `scaletrain launch -n 1` starts a process.
bool launched_alone() {
  const std::string port = std::to_string(1 + getpid() % 65535);
  bool set = setenv("MASTER_PORT", port.c_str(), 1) == 0 && setenv("MASTER_ADDR", "127.0.0.1", 1) == 0;
  for (const char* name : {"RANK", "LOCAL_RANK"}) set = setenv(name, "0", 1) == 0 && set;
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set = setenv(name, "1", 1) == 0 && set;
  return set;
}

/// Pipes that never deliver data, are broken, or report impossible results.
void join_by_callbacks(World& world) {
  const st_communicator_options times = options(world);
  st_transport_callbacks callbacks{};
  CALL(st_transport_callbacks_init, &callbacks, sizeof callbacks);
  callbacks.write = [](void*, int32_t, const void*, int64_t bytes, int64_t* taken) -> st_status {
    *taken = bytes;
    return ST_OK;
  };
  callbacks.read = [](void* user, int32_t, void*, int64_t bytes, int64_t* given) -> st_status {
    *given = user == nullptr ? 0 : bytes + 1;
    return ST_OK;
  };
  if (world.bytes.rarely(4)) callbacks.read = [](void*, int32_t, void*, int64_t, int64_t*) -> st_status { return ST_IO; };
  if (world.bytes.rarely(8)) callbacks.write = nullptr;
  static int strange;
  void* const user = world.bytes.rarely(4) ? &strange : nullptr;
  const int32_t size = world.bytes.rarely(4) ? 2 : 1;
  const int32_t rank = world.bytes.rarely(8) ? static_cast<int32_t>(world.number()) : 0;
  MAKE(st_communicator_callbacks, communicators, world.handle(world.contexts), rank, size, &callbacks, user, &times);
}

void make_communicators(World& world) {
  const st_communicator_options times = options(world);
  if (world.bytes.rarely(4)) {
    const int32_t size = world.bytes.rarely(4) ? 2 : 1;
    const int32_t rank = world.bytes.rarely(8) ? static_cast<int32_t>(world.number()) : 0;
    MAKE(st_communicator_processes, communicators, world.handle(world.contexts), world.name(), rank, size, &times);
    return;
  }
  if (world.bytes.rarely(4)) return join_by_callbacks(world);
  if (world.bytes.rarely(8)) {
    st_communicator* made = nullptr;
    const st_status status = st_communicator_host(world.handle(world.contexts), "none", nullptr, &times, &made);
    world.ok("st_communicator_host", status == ST_UNAVAILABLE ? ST_OK : status);  // the furthest that it gets without a plug-in
    return;
  }
  if (world.bytes.rarely(4)) {
    static const bool launched = launched_alone();
    if (!launched) return;
    MAKE(st_communicator_env, communicators, world.handle(world.contexts), &times);
    return;
  }
  std::array<st_communicator*, 2> made{};
  const int32_t n = world.bytes.rarely(2) ? 2 : 1;
  const st_status status = st_communicator_local(world.handle(world.contexts), n, &times, made.data());
  for (int32_t rank = 0; rank < n; ++rank)
    world.keep("st_communicator_local", world.communicators, status, made.at(static_cast<size_t>(rank)));
}

void exchange(World& world, st_communicator* communicator) {
  const char* name = world.bytes.rarely() ? nullptr : world.name();
  st_view a = world.view_of({4}), b = world.view_of({2}), c = world.view_of({4});
  if (world.bytes.rarely(4)) a = world.view();
  if (world.bytes.rarely(4)) b = a;
  const int32_t number = world.bytes.rarely(4) ? static_cast<int32_t>(world.number()) : world.bytes.next() % 4;
  const Calls calls = {
      [&] { PEND(st_communicator_reduce_scatter, communicator, name, &a, &b, number); },
      [&] { PEND(st_communicator_all_gather, communicator, name, &b, &a); },
      [&] { PEND(st_communicator_all_to_all, communicator, name, &a, &c); },
      [&] { PEND(st_communicator_broadcast, communicator, name, &a, number); },
      [&] { PEND(st_communicator_send, communicator, name, &a, world.bytes.rarely(4) ? number : number & 1); },
      [&] { PEND(st_communicator_receive, communicator, name, &a, world.bytes.rarely(4) ? number : number & 1); },
      [&] { PEND(st_communicator_barrier, communicator, name); },
      [&] { PEND(st_communicator_all_reduce, communicator, name, &a, number); },
  };
  world.bytes.choose(8, calls);
}

void split(World& world, st_communicator* communicator) {
  st_communicator_options times = options(world);
  times.allow_single = world.bytes.rarely() ? 0 : 1;
  const st_communicator_options* const given = world.bytes.rarely(4) ? nullptr : &times;
  if (world.bytes.rarely(2)) {
    MAKE(st_communicator_duplicate, communicators, communicator, given);
    return;
  }
  const int32_t color = world.bytes.rarely(8) ? static_cast<int32_t>(world.number()) : 0;
  MAKE(st_communicator_split, communicators, communicator, color, static_cast<int32_t>(world.number()), given);
}

}  // namespace

void communicator_use(World& world) {
  if (world.communicators.live.size() > 3) return DESTROY(st_communicator_destroy, communicators);
  if (world.communicators.live.empty() || world.bytes.rarely()) return make_communicators(world);
  st_communicator* communicator = world.handle(world.communicators);
  int32_t number = 0;
  int64_t begin = 0, count = 0;
  const char* json = nullptr;
  const Calls calls = {
      [&] {
        CALL(st_communicator_rank, communicator, &number);
        CALL(st_communicator_size, communicator, &number);
      },
      [&] { CALL(st_communicator_share, communicator, world.number(), world.bytes.next() % 4, &begin, &count); },
      [&] {
        CALL(st_communicator_sent_bytes, communicator, &count);
        CALL(st_communicator_flight_record, communicator, &json);
      },
      [&] {
        if (world.bytes.rarely(4)) CALL(st_communicator_abort, communicator, world.name());
      },
      [&] { split(world, communicator); },
      [&] { exchange(world, communicator); },
  };
  world.bytes.choose(8, calls);
}

}  // namespace st::fuzz

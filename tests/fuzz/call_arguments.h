// Arguments and results of calls: room for a handle, structs of all sizes, valid and invalid texts.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz_world.h"

// Passes the function's name with its status, for findings and for the tally.
#define CALL(function, ...) world.ok(#function, function(__VA_ARGS__))
#define MAKE(function, shelf, ...) keep(world, #function, world.shelf, function(__VA_ARGS__, room(world, world.shelf)))
#define PEND(function, ...) pend(world, #function, [&](st_pending** made) { return function(__VA_ARGS__, made); })
#define DESTROY(function, shelf) world.destroy(#function, world.shelf, function, world.handle(world.shelf))
#define FILLED(function) filled(world, #function, function)

namespace st::fuzz {

/// Where the new handle goes; occasionally NULL.
template <class T>
T** room(World& world, Shelf<T>& shelf) {
  shelf.made = nullptr;
  return world.bytes.rarely(32) ? nullptr : &shelf.made;
}

template <class T>
void keep(World& world, const char* call, Shelf<T>& shelf, st_status status) {
  world.keep(call, shelf, status, shelf.made);
}

/// A call that may leave a pending. Waits for its end if there is no room for the pending, or if the input says so.
template <class Call>
void pend(World& world, const char* name, const Call& call) {
  st_pending* made = nullptr;
  const bool stays = world.bytes.rarely(2) && world.pendings.live.size() < 4;
  const st_status status = call(stays ? &made : nullptr);
  if (stays)
    world.keep(name, world.pendings, status, made);
  else
    world.ok(name, status);
}

/// A struct of its true size, or with a smaller or larger size (and enough memory); occasionally not initialised.
template <class T>
T* filled(World& world, const char* call, st_status (*init)(T*, size_t)) {
  const size_t room = sizeof(T) + (world.bytes.rarely() ? 24 : 0);
  auto* made = static_cast<T*>(world.memory(std::max(room, sizeof(T))));
  std::memset(made, 0, room);
  if (world.bytes.rarely(32)) return nullptr;
  if (world.bytes.rarely(32)) return made;
  if (!world.ok(call, init(made, world.bytes.rarely() ? static_cast<size_t>(world.bytes.next() % 16) : room))) return made;
  if (room > sizeof(T) && world.bytes.rarely(8)) reinterpret_cast<uint8_t*>(made)[room - 1] = 1;  // a field of a later version
  return made;
}

/// Writes to some arrays of a state.
void write_to(World& world, int64_t n, const st_named_view* views);
const char* json(World& world);
/// The value and the name of a recipe key.
const char* setting(World& world);
const char* key(World& world);
/// A file in the "read" or "write" folder of the world.
std::string path(World& world, const char* side);
st_value value(World& world);
void keep_value(World& world, const char* call, st_status status, const st_value& made);  // read after the call
/// The release function for everything that the library borrows; `user` is the world.
void released(void* user);

}  // namespace st::fuzz

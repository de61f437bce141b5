// Keeps this library loaded after its host has unloaded it: the library holds a reference to itself while anything exists that needs its
// code. A plug-in host may dlclose() the library before the last handle is destroyed; without the reference, the library's threads and the
// calls that destroy those handles would run unmapped code.
#pragma once

#include <scaletrain/error.h>

#include "base/os/loaded_library.h"

namespace st::capi {

/// Held by everything that needs the code: the object of a handle, or memory handed out with a release function of ours.
class LibraryHold {
 public:
  LibraryHold() noexcept;
  ~LibraryHold();
  LibraryHold(const LibraryHold&) = delete;
  LibraryHold& operator=(const LibraryHold&) = delete;
};

/// The result of a call that may have released the last hold: small enough to be returned in registers.
struct Parting {
  st_status status;
  void* library;  // to be closed; null: it stays loaded
};

/// While one exists, a thread is leaving such a call and the library stays loaded.
class OnTheWayOut {
 public:
  OnTheWayOut() noexcept;
  OnTheWayOut(const OnTheWayOut&) = delete;
  OnTheWayOut& operator=(const OnTheWayOut&) = delete;
  ~OnTheWayOut() = default;

  /// The last operation on it.
  Parting part(st_status status) const noexcept;
};

/// The last statement of an entry point: `return leave(...)`. After dlclose() the entry point's code may be unmapped, so nothing may return
/// into it: this must be a jump into dlclose(), which returns ST_OK to the host. The entry point must not contain an object with a
/// destructor. Without optimisation a compiler makes no such jump; then the library stays loaded.
inline st_status leave(Parting parting) {
  if (os::kMakesTailCalls && parting.library != nullptr) return os::close_own_library(parting.library);
  return parting.status;
}

}  // namespace st::capi

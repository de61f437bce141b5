// What keeps this library loaded when its host has unloaded it: the library's own reference to itself, while anything lives that needs its
// code. A plug-in host may dlclose() the library before the last handle is destroyed; threads of the library's would run on into code that
// is gone, and so would the calls that destroy those handles.
#pragma once

#include <scaletrain/error.h>

#include "base/os/loaded_library.h"

namespace st::capi {

/// One that needs the code: what stands behind a handle, or memory that was handed out with a function of ours to end it.
class LibraryHold {
 public:
  LibraryHold() noexcept;
  ~LibraryHold();
  LibraryHold(const LibraryHold&) = delete;
  LibraryHold& operator=(const LibraryHold&) = delete;
};

/// The end of a call that may have ended the last hold: small enough to be returned in registers.
struct Parting {
  st_status status;
  void* library;  // to be let go; null: it stays
};

/// While one lives, a thread is on its way out of such a call, and the library stays.
class OnTheWayOut {
 public:
  OnTheWayOut() noexcept;
  OnTheWayOut(const OnTheWayOut&) = delete;
  OnTheWayOut& operator=(const OnTheWayOut&) = delete;
  ~OnTheWayOut() = default;

  /// The last thing that it does.
  Parting part(st_status status) const noexcept;
};

/// The last line of an entry, as `return leave(...)`: a function whose code may be gone when dlclose() has run must not be returned to, so
/// this is a jump into dlclose(), which returns ST_OK to the host. Nothing with a destructor may be in the entry.
/// Without optimisation a compiler makes no such jump: the library then stays loaded.
inline st_status leave(Parting parting) {
  if (os::kMakesTailCalls && parting.library != nullptr) return os::close_own_library(parting.library);
  return parting.status;
}

}  // namespace st::capi

#include "library_hold.h"

#include <atomic>
#include <cstdint>

namespace st::capi {
namespace {

constinit std::atomic<int64_t> holds{0};
constinit std::atomic<int32_t> leaving{0};          // threads leaving a destroying call
constinit std::atomic<void*> own_library{nullptr};  // this library's reference to itself

/// If another thread was faster, its reference suffices. Takes no lock: the loader has one, under which it runs the host's code, which may
/// call us.
void keep(void* library) {
  void* none = nullptr;
  if (library != nullptr && !own_library.compare_exchange_strong(none, library))
    os::close_own_library(library);  // the other reference remains
}

}  // namespace

LibraryHold::LibraryHold() noexcept {
  if (holds.fetch_add(1) == 0 && own_library.load() == nullptr) keep(os::open_own_library());
}

LibraryHold::~LibraryHold() { holds.fetch_sub(1); }

OnTheWayOut::OnTheWayOut() noexcept { leaving.fetch_add(1); }

// A hold taken meanwhile either sees the reference, which is then restored, or takes its own. A refused destroy releases nothing, since
// dlclose()'s result would replace its status: the next destroy does.
Parting OnTheWayOut::part(st_status status) const noexcept {
  if (leaving.fetch_sub(1) != 1 || holds.load() != 0 || status != ST_OK) return {status, nullptr};
  void* library = own_library.exchange(nullptr);
  if (library == nullptr || holds.load() == 0) return {status, library};
  keep(library);
  return {status, nullptr};
}

}  // namespace st::capi

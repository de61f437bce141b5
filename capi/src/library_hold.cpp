#include "library_hold.h"

#include <atomic>
#include <cstdint>

namespace st::capi {
namespace {

constinit std::atomic<int64_t> holds{0};
constinit std::atomic<int32_t> leaving{0};          // threads on their way out
constinit std::atomic<void*> own_library{nullptr};  // this library's reference to itself

/// Where another thread was faster, its reference is enough. Outside of any lock: the loader has one of its own, under which it calls code
/// of the host's that may come here.
void keep(void* library) {
  void* none = nullptr;
  if (library != nullptr && !own_library.compare_exchange_strong(none, library)) os::close_own_library(library);  // not the last: see above
}

}  // namespace

LibraryHold::LibraryHold() noexcept {
  if (holds.fetch_add(1) == 0 && own_library.load() == nullptr) keep(os::open_own_library());
}

LibraryHold::~LibraryHold() { holds.fetch_sub(1); }

OnTheWayOut::OnTheWayOut() noexcept { leaving.fetch_add(1); }

// A hold that is made meanwhile either sees the reference, which is then put back, or takes one of its own. A destroy that was refused lets
// nothing go, since dlclose()'s answer would replace its status: the next destroy does.
Parting OnTheWayOut::part(st_status status) const noexcept {
  if (leaving.fetch_sub(1) != 1 || holds.load() != 0 || status != ST_OK) return {status, nullptr};
  void* library = own_library.exchange(nullptr);
  if (library == nullptr || holds.load() == 0) return {status, library};
  keep(library);
  return {status, nullptr};
}

}  // namespace st::capi

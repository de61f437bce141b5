// From a handle of the C ABI to the object behind it.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "guard.h"
#include "handles.h"
#include "library_hold.h"

namespace st::capi {

template <class Handle>
struct HandleTraits;

/// Says which object is behind a handle; once for each, in the header of the object.
#define ST_HANDLE(type, kind_name, object)        \
  template <>                                     \
  struct HandleTraits<type> {                     \
    using Object = object;                        \
    static constexpr Kind kind = Kind::kind_name; \
  };

/// The object of a handle, for calls that may come from any thread at any time.
template <class Handle>
auto peek(const Handle* handle) {
  using Traits = HandleTraits<Handle>;
  return std::static_pointer_cast<typename Traits::Object>(look_up(Traits::kind, handle));
}

/// Exclusive use of a handle's object for this call.
template <class Handle>
auto find(const Handle* handle) {
  using Traits = HandleTraits<Handle>;
  return Lease<typename Traits::Object>(Traits::kind, handle);
}

/// Gives the host a handle of a new object.
template <class Handle, class T>
void hand_out(Handle** handle, std::shared_ptr<T> object) {
  static_assert(std::is_same_v<T, typename HandleTraits<Handle>::Object>);
  Handle*& out = given(handle, "the out pointer for the new handle");  // before add(): if this throws later, the handle would leak
  out = static_cast<Handle*>(add(HandleTraits<Handle>::kind, std::move(object)));
}

/// For calls from signal handlers: act(object) is a store or two. A failure only sets the status.
template <class Handle, class Act>
st_status signal(const Handle* handle, const Act& act) noexcept {
  using Traits = HandleTraits<Handle>;
  const Pin pin(Traits::kind, handle);
  if (pin.object() != nullptr) act(static_cast<typename Traits::Object&>(*pin.object()));
  return static_cast<st_status>(pin.code());
}

/// Destroys a handle that a failing call has already handed out.
template <class Handle>
void take_back(const Handle* handle) {
  remove(HandleTraits<Handle>::kind, handle);
}

/// The whole body of an st_*_destroy: `return drop(handle)`, with nothing around it (library_hold.h).
template <class Handle>
st_status drop(const Handle* handle, const char* call = __builtin_FUNCTION()) {
  return leave(destroyed(HandleTraits<Handle>::kind, handle, call));
}

}  // namespace st::capi

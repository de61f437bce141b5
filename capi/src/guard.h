// guard() wraps the body of a C entry point: it turns exceptions into a status and a message.
#pragma once

#include <scaletrain/error.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"

namespace st::capi {

void remember(const Error& error) noexcept;
/// Records the exception being handled. `call` prefixes messages that only say what is wrong with a handle.
st_status remember_current(const char* call) noexcept;

/// Sets the library's floating-point mode, so that the host's rounding affects no result and its traps do not fire. Memory is the process's
/// until a handle is looked up, then that of the handle's context.
template <class Body>
st_status guard(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  const FloatMode mode;
  const HeapScope process(nullptr);
  try {
    body();
    return ST_OK;
  } catch (...) {
    return remember_current(call);
  }
}

/// A required pointer argument.
template <class T>
T& given(T* pointer, const char* name) {
  check(pointer != nullptr, name, " is NULL");
  return *pointer;
}

/// The same for an argument of `call`.
template <class T>
T& given(T* pointer, const char* call, const char* what) {
  check(pointer != nullptr, call, ": ", what, " is NULL");
  return *pointer;
}

/// Checks a number of threads; `zero` describes what 0 means.
inline void check_threads(const char* call, int32_t threads, const char* zero) {
  constexpr int32_t kMost = 4096;  // more is a typing error, and would overload the machine
  check(threads >= 0 && threads <= kMost, call, ": threads is ", threads, "; it must be 0 to ", kMost, ", where 0 takes ", zero);
}

/// A required text argument.
inline std::string text_given(const char* text, const char* name) {
  check(text != nullptr, name, " is NULL");
  return text;
}
inline std::string text_given(const char* text, const char* call, const char* what) {
  check(text != nullptr, call, ": ", what, " is NULL");
  return text;
}

/// A struct's size when it first appeared in a header. A struct that has grown since specialises this.
template <class T>
constexpr uint32_t kFirstSize = sizeof(T);

/// "st_step_report" of its type, from the compiler's name of this function: "... [with T = st_step_report; ...]".
template <class T>
constexpr std::string_view struct_name() {
  const std::string_view function = __PRETTY_FUNCTION__, begin = "T = ";
  const std::string_view name = function.substr(function.find(begin) + begin.size());
  return name.substr(0, name.find_first_of(";]"));
}

/// Structs begin with their size. Smaller than the first version is an error; larger than ours is accepted if the bytes that we do not know
/// are zero.
template <class T>
T take(const T* theirs, const char* name) {
  given(theirs, name);
  static constexpr std::string_view kStruct = struct_name<T>();  // not looked for in each call
  const uint32_t size = theirs->struct_size;
  check(size >= kFirstSize<T>, name, ": struct_size is ", size, "; it must be at least ", kFirstSize<T>, "; fill the struct with ", kStruct,
        "_init");
  const auto* bytes = reinterpret_cast<const unsigned char*>(theirs);
  check(size <= (1U << 20), name, ": struct_size is ", size, "; fill the struct with ", kStruct, "_init");
  for (uint32_t i = sizeof(T); i < size; ++i)
    require(bytes[i] == 0, Code::unsupported, name, ": byte ", i, " is set, but this library knows only the first ", sizeof(T),
            " bytes; it is older than the program");
  T ours{};
  std::memcpy(&ours, theirs, std::min<size_t>(size, sizeof(T)));
  return ours;
}

/// Writes at most the host's size; struct_size is unchanged. Calls with side effects check the struct with take() first.
template <class T>
void give(T* theirs, const T& ours, const char* name) {
  take(theirs, name);
  const uint32_t size = theirs->struct_size;
  std::memcpy(theirs, &ours, std::min<size_t>(size, sizeof(T)));
  theirs->struct_size = size;
}

template <class T>
st_status init(T* theirs, size_t size, const T& defaults, const char* call = __builtin_FUNCTION()) noexcept {
  const auto fill = [&] {
    check(theirs != nullptr, call, ": the struct is NULL");
    check(size >= kFirstSize<T>, call, ": size is ", size, "; it must be at least ", kFirstSize<T>, ", so pass sizeof of the struct");
    require(size <= (1U << 20), Code::unsupported, call, ": size is ", size, "; pass sizeof of the struct");
    std::memset(theirs, 0, size);  // the program may be newer than this library: zero what we do not know
    std::memcpy(theirs, &defaults, std::min(size, sizeof(T)));
    theirs->struct_size = static_cast<uint32_t>(size);
  };
  return guard(fill, call);
}

}  // namespace st::capi

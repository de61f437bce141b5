// The one line that every C entry begins with: what is thrown inside becomes a status and a message outside.
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
/// Of the exception being handled. `call` goes before messages that say only what is wrong with a handle.
st_status remember_current(const char* call) noexcept;

/// Inside, the floating-point mode is the library's, so that the host's rounding reaches no bit of ours, and traps that it set are not met;
/// and memory is the process's until a handle is looked up, then that of the handle's context.
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

/// An out pointer or a borrowed one that must be there.
template <class T>
T& given(T* pointer, const char* name) {
  check(pointer != nullptr, name, " is NULL");
  return *pointer;
}

/// A number of threads; `zero` says what 0 takes.
inline void check_threads(const char* call, int32_t threads, const char* zero) {
  constexpr int32_t kMost = 4096;  // more is a slip of the finger, and would drown the machine
  check(threads >= 0 && threads <= kMost, call, ": threads is ", threads, ", allowed is 0 to ", kMost, "; 0 takes ", zero);
}

/// A text that must be there.
inline std::string text_given(const char* text, const char* name) {
  check(text != nullptr, name, " is NULL");
  return text;
}

/// A struct's size when it first stood in a header; one that has grown since says what that was.
template <class T>
constexpr uint32_t kFirstSize = sizeof(T);

/// Structs begin with their size: smaller than version 1 is an error; larger than ours is fine while the tail we do not know is zero.
template <class T>
T take(const T* theirs, const char* name) {
  given(theirs, name);
  const uint32_t size = theirs->struct_size;
  check(size >= kFirstSize<T>, name, ": struct_size is ", size, ", at least ", kFirstSize<T>,
        " is needed; fill it with its _init function");
  const auto* bytes = reinterpret_cast<const unsigned char*>(theirs);
  check(size <= (1U << 20), name, ": struct_size is ", size, "; fill it with its _init function");
  for (uint32_t i = sizeof(T); i < size; ++i)
    require(bytes[i] == 0, Code::unsupported, name, ": byte ", i, " is set, but this library knows only ", sizeof(T),
            " bytes of it; it is older than the program");
  T ours{};
  std::memcpy(&ours, theirs, std::min<size_t>(size, sizeof(T)));
  return ours;
}

/// Writes at most their size; struct_size stays theirs. Calls that change something look at the struct with take() first.
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
    check(size >= kFirstSize<T>, call, ": size is ", size, ", at least ", kFirstSize<T>, " is needed; pass sizeof of the struct");
    require(size <= (1U << 20), Code::unsupported, call, ": size is ", size, "; pass sizeof of the struct");
    std::memset(theirs, 0, size);  // a program newer than this library: what we do not know is zero
    std::memcpy(theirs, &defaults, std::min(size, sizeof(T)));
    theirs->struct_size = static_cast<uint32_t>(size);
  };
  return guard(fill, call);
}

}  // namespace st::capi

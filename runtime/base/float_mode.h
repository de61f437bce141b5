// Whose rounding holds: ours where the library computes, the host's where one of its functions is called.
#pragma once

#include <cstdint>

namespace st {

/// Sets flush-to-zero, denormals-are-zero and round-to-nearest for its lifetime; restores the caller's floating-point state as it was.
/// Every thread that computes holds one, so that a number below the normal range of f32, f64 or bf16 is a zero of its sign to every op and
/// optimizer, and none is made. f16's are normal numbers of fp32, in which they are computed: they count. backend/README.md has the rule.
class FloatMode {
 public:
  FloatMode();
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  friend class HostsFloatMode;
  FloatMode*& innermost_;  // this thread's, which takes a call to find
  FloatMode* outer_;
  uint32_t saved_;
};

/// Gives the caller of the library its own mode back for its lifetime: around each call of a function of the host's, and around nothing
/// else, since arithmetic of ours would round as the host does. On a thread of the library's it is the default mode.
class HostsFloatMode {
 public:
  HostsFloatMode();
  ~HostsFloatMode();
  HostsFloatMode(const HostsFloatMode&) = delete;
  HostsFloatMode& operator=(const HostsFloatMode&) = delete;

 private:
  uint32_t saved_;
  FloatMode* inner_;
};

/// Calls a function of the host's in its own mode; all of them are called through this.
template <class Result, class... Parameters, class... Arguments>
Result call_host(Result (*function)(Parameters...), Arguments... arguments) {
  const HostsFloatMode mode;
  return function(arguments...);
}

/// The first line of each thread of the library's: a thread starts in the mode of the one that started it, which is ours or a strange one
/// of the host's, and a function of the host's that is called on it is to find the default mode.
void start_in_default_float_mode();

}  // namespace st

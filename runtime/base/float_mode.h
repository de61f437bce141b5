// Floating-point modes: ours while the library computes, the host's while one of its functions is called.
#pragma once

#include <cstdint>

namespace st {

/// Sets flush-to-zero, denormals-are-zero and round-to-nearest for its lifetime, then restores the caller's floating-point state.
/// Every computing thread holds one. So every op and optimizer reads f32, f64 and bf16 denormals as zeros of their sign and produces none.
/// f16 denormals are normal numbers in fp32, where they are computed: they count. backend/README.md has the rule.
class FloatMode {
 public:
  FloatMode();
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  friend class HostsFloatMode;
  FloatMode*& innermost_;  // this thread's; kept because finding it takes a call
  FloatMode* outer_;
  uint32_t saved_;
};

/// Restores the library caller's own mode for its lifetime; on a library thread, the default mode. Only around calls of host functions:
/// arithmetic of ours would round as the host does.
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

/// Calls a function of the host in the host's mode. Every host function is called through this.
template <class Result, class... Parameters, class... Arguments>
Result call_host(Result (*function)(Parameters...), Arguments... arguments) {
  const HostsFloatMode mode;
  return function(arguments...);
}

/// First statement of every library thread. A thread inherits the mode of its creator, which is ours or an unusual one of the host's; host
/// functions called on it must see the default mode.
void start_in_default_float_mode();

}  // namespace st

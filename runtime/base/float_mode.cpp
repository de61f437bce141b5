#include "base/float_mode.h"

#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace st {
namespace {

thread_local FloatMode* innermost = nullptr;

#if defined(__x86_64__)

constexpr uint32_t kThreadStart = 0x1F80;  // all exceptions masked, round to nearest
constexpr uint32_t kMet = 0x003F;          // what arithmetic has met so far: no result depends on it

uint32_t float_mode() { return _mm_getcsr(); }
void set_float_mode(uint32_t mode) { _mm_setcsr(mode); }

#else  // the modes of other processors are not set: bits are the same on one machine, denormals cost what they cost there

constexpr uint32_t kThreadStart = 0, kMet = 0;

uint32_t float_mode() { return 0; }
void set_float_mode(uint32_t) {}

#endif

}  // namespace

FloatMode::FloatMode() : innermost_(innermost), outer_(std::exchange(innermost_, this)), saved_(float_mode()) {
  // Flush-to-zero (bit 15) and denormals-are-zero (bit 6). What the host has met stays: to clear it takes Intel longer than the rest of a
  // call.
  set_float_mode(kThreadStart | 0x8000 | 0x0040 | (saved_ & kMet));
}

FloatMode::~FloatMode() {
  set_float_mode(saved_);
  innermost_ = outer_;
}

HostsFloatMode::HostsFloatMode() : saved_(float_mode()), inner_(std::exchange(innermost, nullptr)) {
  uint32_t hosts = saved_;
  for (const FloatMode* mode = inner_; mode != nullptr; mode = mode->outer_) hosts = mode->saved_;
  set_float_mode(hosts);
}

HostsFloatMode::~HostsFloatMode() {
  set_float_mode(saved_);
  innermost = inner_;
}

void start_in_default_float_mode() { set_float_mode(kThreadStart); }

}  // namespace st

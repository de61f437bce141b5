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

uint32_t float_mode() { return _mm_getcsr(); }
void set_float_mode(uint32_t mode) { _mm_setcsr(mode); }

#else  // the modes of other processors are not set: bits are the same on one machine, denormals cost what they cost there

constexpr uint32_t kThreadStart = 0;

uint32_t float_mode() { return 0; }
void set_float_mode(uint32_t) {}

#endif

}  // namespace

FloatMode::FloatMode() : saved_(float_mode()), outer_(std::exchange(innermost, this)) {
  set_float_mode(kThreadStart | 0x8000 | 0x0040);  // flush-to-zero (bit 15) and denormals-are-zero (bit 6)
}

FloatMode::~FloatMode() {
  set_float_mode(saved_);
  innermost = outer_;
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

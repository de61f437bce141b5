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
constexpr uint32_t kStickyFlags = 0x003F;  // exception flags: no result depends on them

uint32_t float_mode() { return _mm_getcsr(); }
void set_float_mode(uint32_t mode) { _mm_setcsr(mode); }

#else  // other processors' modes are not set: results are still the same on one machine; denormals are slow

constexpr uint32_t kThreadStart = 0, kStickyFlags = 0;

uint32_t float_mode() { return 0; }
void set_float_mode(uint32_t) {}

#endif

}  // namespace

FloatMode::FloatMode() : innermost_(innermost), outer_(std::exchange(innermost_, this)), saved_(float_mode()) {
  // Flush-to-zero (bit 15) and denormals-are-zero (bit 6). The sticky flags are kept: clearing them takes Intel longer than the rest of a
  // call.
  set_float_mode(kThreadStart | 0x8000 | 0x0040 | (saved_ & kStickyFlags));
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

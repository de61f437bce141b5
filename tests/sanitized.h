// Whether this is a sanitizer's build, some ten times as slow. A test of many combinations runs a selection there that still has each value
// of each: what a sanitizer looks for is in no combination. The release build has them all.
#pragma once

namespace st {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace st

// Whether this is a sanitizer's build, some ten times as slow. A test of many combinations runs a selection there that still has each value
// of each: what a sanitizer looks for is in no combination. The release build has them all.
#pragma once

namespace st {

#ifdef ST_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

#ifdef ST_THREAD_SANITIZED
constexpr bool kThreadSanitized = true;
#else
constexpr bool kThreadSanitized = false;
#endif

}  // namespace st

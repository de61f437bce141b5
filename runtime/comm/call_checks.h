// Checks before a collective sends anything.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/text.h"
#include "comm/collective.h"

namespace st {

/// Throws invalid_argument, prefixed with the call. Texts are built only on failure, because a collective allocates nothing.
template <class... Parts>
void check_call(bool holds, const CollectiveCall& call, const Parts&... why) {
  if (!holds) fail(Code::invalid_argument, text(text_of(call), ": ", why...));
}

/// A digest of numbers, in order, that must be equal on all ranks in addition to the call.
class AlikeOnAll {
 public:
  AlikeOnAll& add(int64_t number) {
    hash_ = (hash_ ^ static_cast<uint64_t>(number)) * 0x100000001B3;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace st

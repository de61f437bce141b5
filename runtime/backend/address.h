// A place in a device's memory.
#pragma once

#include <compare>
#include <cstdint>

namespace st {

/// A number: only backends make a pointer of it (kernel_side.h). Code above them copies with Backend::to_host and to_device.
struct Address {
  uintptr_t at = 0;  // 0: none

  explicit operator bool() const { return at != 0; }
  Address operator+(int64_t bytes) const { return {at + static_cast<uintptr_t>(bytes)}; }
  Address& operator+=(int64_t bytes) { return *this = *this + bytes; }
  int64_t operator-(Address from) const { return static_cast<int64_t>(at - from.at); }
  auto operator<=>(const Address&) const = default;
};

}  // namespace st

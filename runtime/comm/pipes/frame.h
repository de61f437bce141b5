// What goes through a pipe: frames, one behind the other. All ranks are of one byte order.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"

namespace st {

enum class FrameKind : uint32_t {
  hello = 0x53545031,  // who is here, first of all: another layout of any frame gets another number
  elements,            // a rank's stream
  taken,               // TakenFrame: so many bytes of the other's stream were taken since the start
  beat,                // it lives
  failure,             // FailureFrame: the group is over
  left,                // it goes, in order, and posts no more
  farewell,            // it has seen that the other goes
};

struct FrameHeader {
  FrameKind kind = FrameKind::beat;
  uint32_t bytes = 0;  // that follow
};

struct HelloFrame {
  int32_t size = 0;    // ranks
  int32_t window = 0;  // bytes of a stream that may be on their way
  std::array<char, 32> version{};
  std::array<char, 96> host{};  // "node7, process 4711"
};

struct TakenFrame {
  uint64_t bytes = 0;
};

struct FailureFrame {
  int32_t rank = -1;
  Code code = Code::rank_failed;
  std::array<char, 408> reason{};
};

constexpr uint32_t kMostControl = sizeof(FailureFrame);  // of what follows the header of a frame without elements
static_assert(sizeof(HelloFrame) <= kMostControl);

}  // namespace st

// The frames that follow each other in a pipe. All ranks have the same byte order.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"

namespace st {

enum class FrameKind : uint32_t {
  hello = 0x53545031,  // HelloFrame, the first frame; a changed layout of any frame gets another number
  elements,            // bytes of the sender's stream
  taken,               // TakenFrame: bytes of the other rank's stream taken since the start
  beat,                // the sender is alive
  failure,             // FailureFrame: the group has ended
  left,                // the sender leaves in good order and posts no more
  farewell,            // the sender knows that the other rank is leaving
};

struct FrameHeader {
  FrameKind kind = FrameKind::beat;
  uint32_t bytes = 0;  // after the header
};

struct HelloFrame {
  int32_t size = 0;    // ranks
  int32_t window = 0;  // bytes of a stream that may be in flight
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

constexpr uint32_t kMostControl = sizeof(FailureFrame);  // most bytes after the header of a frame without elements
static_assert(sizeof(HelloFrame) <= kMostControl);

}  // namespace st

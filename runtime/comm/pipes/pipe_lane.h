// One rank's pipes to and from another rank: posted elements, received elements, and the control frames between the two ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/pipes/frame.h"
#include "comm/pipes/pipes.h"

namespace st {

/// Used by one thread at a time. Flow control: the reader reports what it has taken, and the writer never has more than a window in flight.
/// So everything that arrives can be read at once, and no control frame waits behind untaken elements. Allocates when it is made, and
/// when more ranges are posted than it has room for.
class PipeLane {
 public:
  /// Sends `hello` first; hello.window is a power of two.
  PipeLane(Pipes& pipes, int other, const HelloFrame& hello);

  // Elements: as in Transport.

  void post(std::span<const std::byte> bytes);
  bool is_sent() const { return first_ == posted_.size(); }
  void withdraw() noexcept;
  std::span<const std::byte> arrived() const;
  void take(uint64_t bytes);

  // Control frames of this end. Each is sent once.

  void say_failure(const FailureFrame& failure) { failure_to_say_ = failure; }
  void say_left() { has_to_say_left_ = true; }
  /// All control frames, and all elements that have left the poster's memory, are in the pipe, or it takes nothing more.
  bool is_empty() const { return is_cut_ || (begin_ == end_ && !has_to_say_left_ && !failure_to_say_); }

  /// Moves what can be moved in both directions, and sends a beat if nothing was sent for `silence` seconds. Returns whether elements
  /// moved.
  bool move(double now, double silence) noexcept;

  // Frames that the other end has sent.

  const std::optional<HelloFrame>& hello() const { return hello_; }
  const std::optional<FailureFrame>& failure() const { return failure_; }
  bool has_left() const { return has_left_; }
  bool knows_that_we_left() const { return knows_that_we_left_; }
  double heard_at() const { return heard_at_; }  // the clock of move()
  /// The pipe is broken, and everything that had arrived has been read.
  bool is_broken() const { return is_broken_; }
  const std::string& break_reason() const { return break_reason_; }  // empty if there was no memory for it

 private:
  static constexpr size_t kMostElements = 64 << 10;  // bytes of elements in a frame
  static constexpr size_t kControlRoom = 1024;       // reserved for all control frames of one move(), whatever elements wait

  void append(FrameKind kind, const void* data, size_t bytes);
  void say_what_is_due(double now, double silence);
  bool append_elements();
  bool push(double now, double silence);
  bool pull(double now);
  size_t read_to(std::byte* to, size_t bytes, double now);
  void understand(FrameKind kind, const std::byte* data, size_t bytes);
  void cut(double now, const char* reason) noexcept;
  void keep_reason(const char* reason) noexcept;

  Pipes& pipes_;
  const int other_;
  const uint64_t window_;

  std::vector<std::span<const std::byte>> posted_;
  size_t first_ = 0;
  const size_t out_bytes_;
  std::unique_ptr<std::byte[]> out_;  // frames; [begin_, end_) is not in the pipe yet
  size_t begin_ = 0, end_ = 0;
  uint64_t sent_ = 0, taken_by_other_ = 0;  // bytes of elements since the start
  bool has_to_say_left_ = false, has_said_left_ = false, has_to_say_farewell_ = false;
  std::optional<FailureFrame> failure_to_say_;
  double said_at_ = 0;

  std::unique_ptr<std::byte[]> ring_;  // received elements: bytes [taken_, arrived_) of the stream; its pages are untouched until then
  uint64_t arrived_ = 0, taken_ = 0, acknowledged_ = 0;
  uint64_t frame_left_ = 0;  // bytes of elements of this frame that have not arrived
  std::array<std::byte, sizeof(FrameHeader) + kMostControl> in_{};
  size_t in_bytes_ = 0;
  double heard_at_ = 0;

  std::optional<HelloFrame> hello_;
  std::optional<FailureFrame> failure_;
  bool has_left_ = false, knows_that_we_left_ = false;
  bool is_cut_ = false, is_broken_ = false;
  double cut_at_ = 0;
  std::string break_reason_;
};

}  // namespace st

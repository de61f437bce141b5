// One rank's two pipes to another rank: elements that were posted and elements that have come, and what the ends say to each other.
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

/// Used by one thread at a time. The reader says what it has taken, and nobody sends more than it has room for: so all that comes can be
/// read at once, and no frame waits behind elements that nobody takes. Memory is taken when it is made, and where many pieces are posted.
class PipeLane {
 public:
  /// `window`: a power of two. Says `hello` before all else.
  PipeLane(Pipes& pipes, int other, const HelloFrame& hello);

  // Elements: as Transport has it.

  void post(std::span<const std::byte> bytes);
  bool is_sent() const { return first_ == posted_.size(); }
  void withdraw() noexcept;
  std::span<const std::byte> arrived() const;
  void take(uint64_t bytes);

  // What this end says. Each once.

  void say_failure(const FailureFrame& failure) { failure_to_say_ = failure; }
  void say_left() { has_to_say_left_ = true; }
  /// All that was said and all elements that have left the poster's memory are in the pipe, or it takes no more.
  bool is_empty() const { return is_cut_ || (begin_ == end_ && !has_to_say_left_ && !failure_to_say_); }

  /// Moves what can be moved, both ways, and says that this rank lives where nothing was said for `silence` seconds. Whether elements
  /// moved.
  bool move(double now, double silence) noexcept;

  // What the other end has said.

  const std::optional<HelloFrame>& hello() const { return hello_; }
  const std::optional<FailureFrame>& failure() const { return failure_; }
  bool has_left() const { return has_left_; }
  bool knows_that_we_left() const { return knows_that_we_left_; }
  double heard_at() const { return heard_at_; }  // the clock of move()
  /// The pipe carries no more, and all that had come is read.
  bool is_broken() const { return is_broken_; }
  const std::string& break_reason() const { return break_reason_; }  // empty: no memory to keep it

 private:
  static constexpr size_t kMostElements = 64 << 10;  // of a frame
  static constexpr size_t kControlRoom = 1024;       // for what is said, whatever elements wait: all that one move() may say

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
  std::unique_ptr<std::byte[]> out_;  // of frames: [begin_, end_) is not in the pipe yet
  size_t begin_ = 0, end_ = 0;
  uint64_t sent_ = 0, taken_by_other_ = 0;  // bytes of elements since the start
  bool has_to_say_left_ = false, has_said_left_ = false, has_to_say_farewell_ = false;
  std::optional<FailureFrame> failure_to_say_;
  double said_at_ = 0;

  std::unique_ptr<std::byte[]> ring_;  // of elements that have come: bytes [taken_, arrived_) of the stream; untouched until then
  uint64_t arrived_ = 0, taken_ = 0, told_ = 0;
  uint64_t frame_left_ = 0;  // bytes of elements that are still to come of this frame
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

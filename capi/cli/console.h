// stdout and stderr of a launcher: whole lines from many sources, also if both streams are the same file or terminal.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

constexpr int kStdout = 0, kStderr = 1;  // streams

/// Output queues. Nothing here blocks: the owner polls.
class Console {
 public:
  /// `line` is without its line end.
  void add(int stream, std::string_view prefix, std::string_view line);
  /// False if the reader is slow. add() still accepts lines and keeps them in memory.
  bool has_room(int stream) const { return left(stream) < kRoom; }
  bool is_empty() const { return left(kStdout) + left(kStderr) == 0; }

  /// The poll request for a stream; its fd is -1 while there is nothing to write.
  pollfd wish(int stream) const;
  /// Call when poll reports the stream as writable. Writes no more than a pipe takes at once.
  void write_some(int stream);

  /// Why a stream can no longer be written; its output is dropped. Empty if all is well.
  const std::string& problem() const { return problem_; }
  /// Discards unwritten output.
  void drop();

 private:
  static constexpr size_t kRoom = 64 << 10;
  struct Queue {
    std::string bytes;
    size_t begin = 0;  // bytes before it are written
    bool is_lost = false;
  };

  size_t left(int stream) const { return queues_[stream].bytes.size() - queues_[stream].begin; }

  std::array<Queue, 2> queues_;
  int in_line_ = -1;  // the stream that has written part of a line; the other one waits
  std::string problem_;
};

/// Splits the bytes of one source into lines and adds each to a console, with a prefix. A line of more than 1 MiB is split. Text that ends
/// in a carriage return, as a progress bar's states do, counts as a line unless it is empty.
class PrefixedLines {
 public:
  PrefixedLines(std::string prefix, int stream) : prefix_(std::move(prefix)), stream_(stream) {}

  void take(std::string_view bytes, Console& console);
  /// End of input: ends an unfinished line.
  void finish(Console& console);

 private:
  static constexpr size_t kLongest = 1 << 20;

  /// Ends the line if a carriage return came without a line feed.
  void end_bar(Console& console);

  std::string prefix_;
  int stream_;
  std::string begun_;  // a line whose end has not arrived
};

}  // namespace cli

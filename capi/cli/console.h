// stdout and stderr of a launcher: lines of many sources, each of them whole, also where both streams are one file or one terminal.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

constexpr int kStdout = 0, kStderr = 1;  // streams

/// Queues of what is to be written. Nothing here waits: the owner polls.
class Console {
 public:
  /// `line` is without its end.
  void add(int stream, std::string_view prefix, std::string_view line);
  /// False: the reader is slow. More is still taken, and kept in memory.
  bool has_room(int stream) const { return left(stream) < kRoom; }
  bool is_empty() const { return left(kStdout) + left(kStderr) == 0; }

  /// What poll is to wait for; its fd is -1 while there is nothing to write.
  pollfd wish(int stream) const;
  /// After poll has said that it may. Writes no more than a pipe takes at once.
  void write_some(int stream);

  /// Why a stream can no longer be written, what comes for it being lost; empty: it can.
  const std::string& problem() const { return problem_; }
  /// Forgets what was not written yet.
  void drop();

 private:
  static constexpr size_t kRoom = 64 << 10;
  struct Queue {
    std::string bytes;
    size_t begin = 0;  // written before it
    bool is_lost = false;
  };

  size_t left(int stream) const { return queues_[stream].bytes.size() - queues_[stream].begin; }

  std::array<Queue, 2> queues_;
  int in_line_ = -1;  // the stream that has written a part of a line: the other waits
  std::string problem_;
};

/// Bytes of one source, of which a console gets the whole lines, with a prefix. A line of more than a MiB is broken into several. What a
/// carriage return leaves to be written over, as progress bars do, is a line, if it is not empty.
class PrefixedLines {
 public:
  PrefixedLines(std::string prefix, int stream) : prefix_(std::move(prefix)), stream_(stream) {}

  void take(std::string_view bytes, Console& console);
  /// Nothing follows: a line without an end gets one.
  void finish(Console& console);

 private:
  static constexpr size_t kLongest = 1 << 20;

  /// If a return has come, with which no line ends.
  void end_bar(Console& console);

  std::string prefix_;
  int stream_;
  std::string begun_;  // of a line whose end has not come
};

}  // namespace cli

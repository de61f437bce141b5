#include "console.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace cli {
namespace {

int descriptor_of(int stream) { return stream == kStdout ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

void Console::add(int stream, std::string_view prefix, std::string_view line) {
  Queue& queue = queues_[stream];
  if (queue.is_lost) return;
  queue.bytes.append(prefix).append(line).push_back('\n');
}

pollfd Console::wish(int stream) const {
  const bool writes = left(stream) > 0 && (in_line_ == -1 || in_line_ == stream);
  return {writes ? descriptor_of(stream) : -1, POLLOUT, 0};
}

void Console::write_some(int stream) {
  if (wish(stream).fd < 0) return;  // the other stream has begun a line since poll()
  Queue& queue = queues_[stream];
  // If poll reports a pipe as writable, it takes this many bytes without blocking, and atomically.
  std::string_view chunk = std::string_view(queue.bytes).substr(queue.begin, PIPE_BUF);
  if (const size_t end = chunk.rfind('\n'); end != std::string_view::npos) chunk = chunk.substr(0, end + 1);
  const ssize_t written = ::write(descriptor_of(stream), chunk.data(), chunk.size());
  if (written < 0) {
    if (errno == EINTR || errno == EAGAIN) return;
    problem_ = std::string("cannot write ") + (stream == kStdout ? "stdout: " : "stderr: ") + std::strerror(errno);
    queue = {.bytes = {}, .begin = 0, .is_lost = true};
    in_line_ = -1;
    return;
  }
  if (written > 0) in_line_ = chunk[static_cast<size_t>(written) - 1] == '\n' ? -1 : stream;
  queue.begin += static_cast<size_t>(written);
  if (left(stream) > 0 && queue.begin < kRoom) return;
  queue.bytes.erase(0, queue.begin);
  queue.begin = 0;
}

void Console::drop() {
  for (Queue& queue : queues_) queue.bytes.clear(), queue.begin = 0;
  in_line_ = -1;
}

void PrefixedLines::take(std::string_view bytes, Console& console) {
  while (!bytes.empty()) {
    if (bytes.front() != '\n') end_bar(console);
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const bool is_return = end < bytes.size() && bytes[end] == '\r';
    const size_t wanted = end + (is_return ? 1 : 0), room = kLongest - begun_.size();
    const std::string_view part = bytes.substr(0, std::min(wanted, room));
    begun_ += part;
    bytes.remove_prefix(part.size());
    if (bytes.empty()) return;
    if (part.size() == wanted) {
      if (is_return) continue;
      bytes.remove_prefix(1);  // the line's end
    }
    console.add(stream_, prefix_, begun_);
    begun_.clear();
  }
}

void PrefixedLines::end_bar(Console& console) {
  if (begun_.empty() || begun_.back() != '\r') return;
  begun_.pop_back();
  finish(console);
}

void PrefixedLines::finish(Console& console) {
  if (!begun_.empty()) console.add(stream_, prefix_, begun_);
  begun_.clear();
}

}  // namespace cli

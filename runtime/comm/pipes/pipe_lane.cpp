#include "comm/pipes/pipe_lane.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "base/os/machine.h"

namespace st {
namespace {

constexpr double kLastWords = 0.1;  // seconds in which frames that a rank sent before its end may still arrive

}  // namespace

PipeLane::PipeLane(Pipes& pipes, int other, const HelloFrame& hello)
    : pipes_(pipes),
      other_(other),
      window_(static_cast<uint64_t>(hello.window)),
      out_bytes_(sizeof(FrameHeader) + std::min<size_t>(kMostElements, static_cast<size_t>(window_)) + kControlRoom),
      out_(std::make_unique_for_overwrite<std::byte[]>(out_bytes_)),
      said_at_(os::seconds()),
      ring_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(window_))),
      heard_at_(said_at_) {
  constexpr size_t kUsual = 64;  // posted ranges that wait at once
  posted_.reserve(kUsual);
  append(FrameKind::hello, &hello, sizeof hello);
}

// Elements.

void PipeLane::post(std::span<const std::byte> bytes) {
  if (first_ > 0 && posted_.size() == posted_.capacity()) {  // reuse the front rather than grow
    posted_.erase(posted_.begin(), posted_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  posted_.push_back(bytes);
}

void PipeLane::withdraw() noexcept {
  posted_.clear();
  first_ = 0;
}

std::span<const std::byte> PipeLane::arrived() const {
  const uint64_t at = taken_ & (window_ - 1);
  return {ring_.get() + at, std::min(arrived_ - taken_, window_ - at)};
}

void PipeLane::take(uint64_t bytes) { taken_ += bytes; }

// Out.

void PipeLane::append(FrameKind kind, const void* data, size_t bytes) {
  const FrameHeader header{kind, static_cast<uint32_t>(bytes)};
  std::memcpy(out_.get() + end_, &header, sizeof header);
  if (bytes > 0) std::memcpy(out_.get() + end_ + sizeof header, data, bytes);
  end_ += sizeof header + bytes;
}

void PipeLane::say_what_is_due(double now, double silence) {
  if (has_to_say_farewell_) append(FrameKind::farewell, nullptr, 0);
  has_to_say_farewell_ = false;
  if (has_left_) {  // it may be gone, and further frames could reach another group of that process
    failure_to_say_.reset();
    has_to_say_left_ = false;
    return;
  }
  if (failure_to_say_) append(FrameKind::failure, &*failure_to_say_, sizeof *failure_to_say_);
  failure_to_say_.reset();
  // Once per quarter of the window: the other rank has room until then.
  if (taken_ - acknowledged_ >= window_ / 4) {
    const TakenFrame taken{acknowledged_ = taken_};
    append(FrameKind::taken, &taken, sizeof taken);
  }
  if (now - said_at_ >= silence) append(FrameKind::beat, nullptr, 0);
  if (has_to_say_left_ && is_sent()) {
    append(FrameKind::left, nullptr, 0);
    has_to_say_left_ = false;
    has_said_left_ = true;
  }
}

/// Appends one frame of posted elements, as much as the buffer and the other rank's window have room for; returns whether there was any.
bool PipeLane::append_elements() {
  const size_t header = end_;
  const size_t room = std::min<size_t>(out_bytes_ - kControlRoom - sizeof(FrameHeader) - end_, window_ - (sent_ - taken_by_other_));
  size_t bytes = 0;
  while (first_ < posted_.size() && bytes < room) {
    auto& next = posted_[first_];
    const size_t piece = std::min(next.size(), room - bytes);
    std::memcpy(out_.get() + header + sizeof(FrameHeader) + bytes, next.data(), piece);
    bytes += piece;
    next = next.subspan(piece);
    if (next.empty()) ++first_;
  }
  if (first_ == posted_.size()) withdraw();  // keeps its memory for the next time
  if (bytes == 0) return false;
  append(FrameKind::elements, nullptr, 0);
  const FrameHeader said{FrameKind::elements, static_cast<uint32_t>(bytes)};
  std::memcpy(out_.get() + header, &said, sizeof said);
  end_ += bytes;
  sent_ += bytes;
  return true;
}

bool PipeLane::push(double now, double silence) {
  bool moved = false;
  for (;;) {
    // A new batch only once the last one has gone, so there is always room for all control frames that are due.
    if (begin_ == end_) {
      begin_ = end_ = 0;
      moved = append_elements() || moved;
      say_what_is_due(now, silence);
      if (end_ == 0) return moved;
    }
    const int64_t taken = pipes_.write(other_, {out_.get() + begin_, end_ - begin_});
    if (taken == 0) return moved;
    begin_ += static_cast<size_t>(taken);
    said_at_ = now;
  }
}

// In.

size_t PipeLane::read_to(std::byte* to, size_t bytes, double now) {
  const auto got = static_cast<size_t>(pipes_.read(other_, {to, bytes}));
  if (got > 0) heard_at_ = now;
  return got;
}

bool PipeLane::pull(double now) {
  for (bool moved = false;;) {
    if (frame_left_ > 0) {
      const uint64_t at = arrived_ & (window_ - 1);
      const size_t got = read_to(ring_.get() + at, std::min(frame_left_, window_ - at), now);
      if (got == 0) return moved;
      arrived_ += got;
      frame_left_ -= got;
      moved = true;
      continue;
    }
    FrameHeader header;
    size_t wanted = sizeof header;
    if (in_bytes_ >= wanted) {
      std::memcpy(&header, in_.data(), sizeof header);
      wanted += header.bytes;
    }
    const size_t got = in_bytes_ < wanted ? read_to(in_.data() + in_bytes_, wanted - in_bytes_, now) : 0;
    if (got == 0 && in_bytes_ < wanted) return moved;
    in_bytes_ += got;
    if (in_bytes_ < sizeof header) continue;
    std::memcpy(&header, in_.data(), sizeof header);
    if (header.kind == FrameKind::elements) {
      frame_left_ = header.bytes;
      in_bytes_ = 0;
      if (frame_left_ > window_ - (arrived_ - taken_))
        throw Error(Code::rank_failed, "it sent more bytes than its window allows: another version of the library, or damaged bytes");
    } else if (header.bytes > kMostControl) {
      throw Error(Code::rank_failed, "it sent an invalid frame: another version of the library, or damaged bytes");
    } else if (in_bytes_ == sizeof header + header.bytes) {
      in_bytes_ = 0;
      understand(header.kind, in_.data() + sizeof header, header.bytes);
    }
  }
}

void PipeLane::understand(FrameKind kind, const std::byte* data, size_t bytes) {
  const auto take_into = [&](auto& frame) {
    if (bytes != sizeof frame)
      throw Error(Code::rank_failed, "it sent a frame of the wrong size: another version of the library; run one version on all ranks");
    std::memcpy(&frame, data, bytes);
  };
  switch (kind) {
    case FrameKind::hello:
      take_into(hello_.emplace());
      return;
    case FrameKind::taken: {
      TakenFrame taken;
      take_into(taken);
      if (taken.bytes > sent_ || taken.bytes < taken_by_other_)
        throw Error(Code::rank_failed, "it acknowledged bytes that were never sent: another version of the library, or damaged bytes");
      taken_by_other_ = taken.bytes;
      return;
    }
    case FrameKind::failure:
      take_into(failure_.emplace());
      return;
    case FrameKind::left:
      has_left_ = true;
      has_to_say_farewell_ = !has_said_left_;  // our own `left` tells it as much
      return;
    case FrameKind::farewell:
      knows_that_we_left_ = true;
      return;
    case FrameKind::beat:
      return;
    case FrameKind::elements:
      break;
  }
  throw Error(Code::rank_failed, "it sent a frame of an unknown kind: another version of the library; run one version on all ranks");
}

// Both.

bool PipeLane::move(double now, double silence) noexcept {
  bool moved = false;
  try {
    moved = !is_broken_ && pull(now);
  } catch (const std::exception& error) {
    is_broken_ = true;
    keep_reason(error.what());
  }
  try {
    moved = (!is_cut_ && push(now, silence)) || moved;  // a rank that sends invalid frames may still learn why the group ends
  } catch (const std::exception& error) {
    cut(now, error.what());
  }
  is_broken_ = is_broken_ || (is_cut_ && now - cut_at_ > kLastWords);
  return moved;
}

/// Stops writing to the pipe. Reading goes on for kLastWords: the other rank may have sent why it ended.
void PipeLane::cut(double now, const char* reason) noexcept {
  is_cut_ = true;
  cut_at_ = now;
  withdraw();
  keep_reason(reason);
}

void PipeLane::keep_reason(const char* reason) noexcept {
  if (!break_reason_.empty()) return;
  try {
    break_reason_ = reason;
  } catch (const std::bad_alloc&) {  // the break is reported without its reason
  }
}

}  // namespace st

// A byte stream between two processes in shared memory: one writes, one reads, and each checks what the other has stored.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/stream_copy.h"

namespace st {

/// The bytes that have passed through a ring so far. Each counter is written by one side and read by the other.
struct RingCounts {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> taken;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

/// The memory of a ring, borrowed. `bytes` is a power of two.
struct ByteRing {
  RingCounts* counts = nullptr;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};

// Counters are stored and loaded with seq_cst: it cannot happen that the writer puts bytes and sees nobody asleep while the reader marks
// itself asleep and sees no bytes.

/// The end of the rank that writes.
class RingWriter {
 public:
  explicit RingWriter(ByteRing ring) : ring_(ring) {}

  /// Free bytes.
  uint64_t room() {
    const uint64_t filled = written_ - ring_.counts->taken.load();
    is_broken_ = is_broken_ || filled > ring_.bytes;
    return is_broken_ ? 0 : ring_.bytes - filled;
  }
  /// The reader claims to have taken bytes that were never written.
  bool is_broken() const { return is_broken_; }

  /// Writes as many of `bytes` as there is room for; returns how many.
  size_t put(std::span<const std::byte> bytes) {
    size_t done = 0;
    for (uint64_t left = std::min<uint64_t>(room(), bytes.size()); left > 0;) {
      // In chunks, so that the reader can take one while the next is written.
      const uint64_t at = written_ & (ring_.bytes - 1);
      const uint64_t piece = std::min({left, ring_.bytes - at, kPiece});
      copy(ring_.data + at, bytes.subspan(done, piece));
      written_ += piece;
      ring_.counts->written.store(written_);
      done += piece;
      left -= piece;
    }
    return done;
  }

 private:
  static constexpr uint64_t kPiece = 32 << 10, kStreamed = 1 << 10;

  // Streams past the caches: another core reads a line that is dirty in ours at 2.3 GB/s, but from memory at 7.5 (AMD EPYC, 2 cores).
  static void copy(std::byte* to, std::span<const std::byte> from) {
    if (from.size() >= kStreamed) return stream_copy({to, from.size()}, from);
    std::memcpy(to, from.data(), from.size());
  }

  ByteRing ring_;
  uint64_t written_ = 0;
  bool is_broken_ = false;
};

/// The end of the rank that reads.
class RingReader {
 public:
  explicit RingReader(ByteRing ring) : ring_(ring) {}

  uint64_t written() const { return ring_.counts->written.load(); }

  /// The bytes that can be read in place: contiguous, so at most up to the end of the ring.
  std::span<const std::byte> front() {
    const uint64_t filled = written() - taken_;
    is_broken_ = is_broken_ || filled > ring_.bytes;
    if (is_broken_) return {};
    const uint64_t at = taken_ & (ring_.bytes - 1);
    return {ring_.data + at, std::min(filled, ring_.bytes - at)};
  }
  /// The writer's counter is beyond the size of the ring, or has gone backwards.
  bool is_broken() const { return is_broken_; }

  void take(uint64_t bytes) {
    taken_ += bytes;
    ring_.counts->taken.store(taken_);
  }

 private:
  ByteRing ring_;
  uint64_t taken_ = 0;
  bool is_broken_ = false;
};

}  // namespace st

// Pipes of bounded capacity in this process's memory, which a test can stop and cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/pipes/pipes.h"

namespace st {

/// The pipes between `size` ranks.
class MemoryPipes {
 public:
  explicit MemoryPipes(int size, size_t length = 50'000) : size_(size), streams_(static_cast<size_t>(size * size)) {
    for (Stream& stream : streams_) stream.ring.resize(length);
  }

  int size() const { return size_; }

  size_t put(int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    Stream& stream = of(from, to);
    if (stream.is_stuck) return 0;
    if (stream.is_cut) throw Error(Code::rank_failed, "the wire is cut");
    const size_t n = std::min(bytes.size(), stream.ring.size() - (stream.put - stream.got));
    each_run(stream.ring, stream.put, n, [&](std::byte* ring, size_t done, size_t run) { std::memcpy(ring, bytes.data() + done, run); });
    stream.put += n;
    return n;
  }
  size_t get(int from, int to, std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    Stream& stream = of(from, to);
    const size_t n = std::min(bytes.size(), stream.put - stream.got);
    each_run(stream.ring, stream.got, n,
             [&](const std::byte* ring, size_t done, size_t run) { std::memcpy(bytes.data() + done, ring, run); });
    stream.got += n;
    return n;
  }
  /// As if the rank's process were stopped: nothing more arrives from it.
  void stop(int rank) {
    const std::lock_guard lock(mutex_);
    for (int other = 0; other < size_; ++other) of(rank, other).is_stuck = true;
  }
  /// As if the rank's process had ended: writes to it fail.
  void cut(int rank) {
    const std::lock_guard lock(mutex_);
    for (int other = 0; other < size_; ++other) of(other, rank).is_cut = true;
  }

 private:
  struct Stream {
    std::vector<std::byte> ring;
    size_t put = 0, got = 0;
    bool is_cut = false, is_stuck = false;
  };
  /// Calls move(where in the ring, bytes before, bytes) for the `n` bytes from `at` on: twice where they wrap around, never without bytes.
  template <class Move>
  static void each_run(std::vector<std::byte>& ring, size_t at, size_t n, const Move& move) {
    for (size_t done = 0; done < n;) {
      const size_t place = (at + done) % ring.size(), run = std::min(n - done, ring.size() - place);
      move(ring.data() + place, done, run);
      done += run;
    }
  }
  Stream& of(int from, int to) { return streams_[static_cast<size_t>(from * size_ + to)]; }

  const int size_;
  std::mutex mutex_;
  std::vector<Stream> streams_;
};

/// One rank's end of the pipes.
class MemoryPipesEnd final : public Pipes {
 public:
  MemoryPipesEnd(std::shared_ptr<MemoryPipes> pipes, int rank) : pipes_(std::move(pipes)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return pipes_->size(); }
  std::string_view name() const override { return "memory"; }
  int64_t write(int to, std::span<const std::byte> bytes) override { return static_cast<int64_t>(pipes_->put(rank_, to, bytes)); }
  int64_t read(int from, std::span<std::byte> bytes) override { return static_cast<int64_t>(pipes_->get(from, rank_, bytes)); }

 private:
  std::shared_ptr<MemoryPipes> pipes_;
  int rank_;
};

}  // namespace st

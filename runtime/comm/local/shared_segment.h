// The shared memory of a process group: which ranks have joined and are alive, why the group has ended, and a byte ring per ordered pair of
// ranks. A crashing rank may leave anything in it, so values read from it are checked, or copied at the start.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/os/shared_memory.h"
#include "comm/flight_board.h"
#include "comm/local/byte_ring.h"
#include "comm/transport.h"

namespace st {

constexpr int64_t kMaxRingBytes = int64_t{1} << 30;

/// Written by the rank that creates a segment; the others compare it with their own. These fields keep their place in every layout.
struct SegmentShape {
  uint64_t magic = 0x5343414c45545247;
  uint32_t layout = 3;
  int32_t size = 0;  // ranks
  int64_t ring_bytes = 0;
  std::array<char, 40> version{};  // of the library

  bool operator==(const SegmentShape&) const = default;
};
SegmentShape shape_of(int size, int64_t ring_bytes);
std::string text_of(const SegmentShape& shape);  // "4 ranks, rings of 256 KiB, version 0.1.0"

/// One rank's slot. Fields with different writers, or written at different rates, are on separate cache lines.
struct RankSlot {
  static constexpr uint32_t kLeft = 0x3fffffff;  // no thread's number

  alignas(64) std::atomic<uint32_t> life;  // 0: not joined; then its Heartbeat's thread, kLeft, or os::OwnedWord::kOwnerDied
  std::atomic<uint32_t> is_here;           // process and host are written
  int64_t process;
  std::array<char, 64> host;
  alignas(64) std::atomic<int64_t> beat;     // nanoseconds, monotonic
  alignas(64) std::atomic<uint32_t> asleep;  // 0: awake; else a SharedSegment::Wait
  alignas(64) FlightBoard board;
};

class SharedSegment {
 public:
  /// Creates a segment without a name: the shape is written, and there is memory for everything except the rings.
  static SharedSegment make(const SegmentShape& shape);
  /// Opens the segment of this name, of any shape; nullopt if there is none. Throws rank_mismatch if it has another layout.
  static std::optional<SharedSegment> open(const std::string& name);

  /// Removes this user's segments in which no rank has been alive for `seconds`.
  static void remove_leftovers(double seconds);

  const SegmentShape& shape() const { return shape_; }
  int size() const { return shape_.size; }
  os::SharedFile& file() { return file_; }
  RankSlot& slot(int rank) const;

  /// Marks `rank` as joined and writes its host and process, which are this process's.
  void enter(int rank);
  bool all_are_here() const;
  bool is_dead(int rank) const;
  bool has_left(int rank) const;
  /// No group can start in it any more: a rank has died or left, or the group has ended.
  bool is_spoilt() const;
  std::string host_of(int rank) const;  // "node7, process 4711"; empty: not joined yet

  /// Called when all have joined: allocates the rings and wakes the ranks in wait_until_open().
  void open_rings();
  bool are_rings_open() const;
  void wait_until_open(double seconds) const;
  void map_rings();
  ByteRing ring(int from, int to) const;

  /// Ends the group; the first failure is kept. From any thread.
  void abort(const RankFailure& failure) noexcept;
  std::optional<RankFailure> failure() const;

  /// Refuses the start of `ranks` ranks. The segment then stays for those that have not joined yet.
  void refuse(const RankFailure& failure, int ranks) noexcept;
  /// The refusal for a rank that joins now. nullopt if it has already received it, or if its process began after the refusal: then it
  /// belongs to another start.
  std::optional<RankFailure> refusal_for(int rank) const;
  /// Marks that `rank` has received the refusal. True if no other rank still has to, or if the start was not refused.
  bool is_last_to_hear(int rank) noexcept;

  enum Wait : uint32_t { for_bytes = 1, for_room = 2 /* or bytes */ };
  /// Sleeps until this rank is woken, at most `seconds`. Returns at once if it was woken since `asleep` was set.
  void sleep(int rank, Wait wait, double seconds) const;
  void wake(int rank, Wait wait) const noexcept;
  void wake_all() const noexcept;

 private:
  struct Header;
  SharedSegment(os::SharedFile file, os::SharedPages head, const SegmentShape& shape);
  Header& header() const;
  bool is_abandoned(double seconds) const;

  os::SharedFile file_;
  os::SharedPages head_, rings_;
  SegmentShape shape_;  // a copy: the one in shared memory may be overwritten
};

}  // namespace st

// What the ranks of a process group have in shared memory: who is there and who lives, why the group is over, and a ring of bytes for each
// ordered pair of them. A rank that crashes may leave anything in it, so that what is read from it is checked, or kept from the start.
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

/// What the maker of a segment says of it; others compare it with their own. These fields stay where they are in every layout.
constexpr int64_t kMaxRingBytes = int64_t{1} << 30;

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

/// One rank's part. A line of the cache for each thing that is written by somebody else, or at another pace.
struct RankSlot {
  static constexpr uint32_t kLeft = 0x3fffffff;  // no thread's number

  alignas(64) std::atomic<uint32_t> life;  // 0: not here yet; then its Heartbeat's thread, kLeft, or os::OwnedWord::kOwnerDied
  std::atomic<uint32_t> is_here;           // what follows is written
  int64_t process;
  std::array<char, 64> host;
  alignas(64) std::atomic<int64_t> beat;     // nanoseconds, monotonic
  alignas(64) std::atomic<uint32_t> asleep;  // 0: awake; else a SharedSegment::Wait
  alignas(64) FlightBoard board;
};

class SharedSegment {
 public:
  /// Its file has memory for all but the rings, and its shape is written.
  static SharedSegment make(const SegmentShape& shape);
  /// That which has this name now, if any, of whatever shape. Throws rank_mismatch where it is another layout's.
  static std::optional<SharedSegment> open(const std::string& name);

  /// Takes away what starts of this user's have left in which nobody has lived for so long.
  static void remove_leftovers(double seconds);

  const SegmentShape& shape() const { return shape_; }
  int size() const { return shape_.size; }
  os::SharedFile& file() { return file_; }
  RankSlot& slot(int rank) const;

  /// Rank number `rank` of this process is there, and says who it is.
  void enter(int rank);
  bool all_are_here() const;
  bool is_dead(int rank) const;
  bool has_left(int rank) const;
  /// Nobody can start in it any more: one has died or left, or the group is over.
  bool is_spoilt() const;
  std::string host_of(int rank) const;  // "node7, process 4711"; empty: not here yet

  /// All are here, and their rings have memory: who waits in wait_until_open() goes on.
  void open_rings();
  bool are_rings_open() const;
  void wait_until_open(double seconds) const;
  void map_rings();
  ByteRing ring(int from, int to) const;

  /// The first one stays. From any thread.
  void abort(const RankFailure& failure) noexcept;
  std::optional<RankFailure> failure() const;

  /// The start is refused, of `ranks` in all, and the segment stays for those of them that are still to come.
  void refuse(const RankFailure& failure, int ranks) noexcept;
  /// What a rank that comes now is to hear of that: nothing where it has heard it already, or where its process began later. Then it is
  /// one of another start.
  std::optional<RankFailure> refusal_for(int rank) const;
  /// Rank number `rank` has heard it. True: nobody is left who is to hear it, or it was not refused.
  bool is_last_to_hear(int rank) noexcept;

  enum Wait : uint32_t { for_bytes = 1, for_room = 2 /* or bytes */ };
  /// Of this rank, until woken or so long. Returns at once if it was woken since `asleep` was set.
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
  SegmentShape shape_;  // our own: that in the memory is not to be trusted for long
};

}  // namespace st

// Point to point between the ranks of a group: all that a local segment, Gloo and MPI have to do. Collectives are written once above it
// (communicator.h), so that their bits depend on no transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace st {

/// What ended a group, as every survivor is told.
struct RankFailure {
  int rank = -1;                  // whose fault it is, whoever found it
  Code code = Code::rank_failed;  // what survivors throw: rank_failed, timeout, rank_mismatch
  std::string reason;             // "its process has ended", "it has aborted: cancelled": a sentence without the rank
};

/// One rank's end of the group. Bytes arrive in the order in which they were posted, one stream for each ordered pair of ranks; a stream
/// has no messages in it. Used by one thread at a time, but for abort(), which is any thread's. Nothing here waits, but idle().
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;        // "threads", "shared memory", "gloo", "mpi"
  virtual std::string host_of(int rank) const = 0;  // and process, for people: "node7, process 4711"

  /// Behind what was posted before. Borrowed until is_sent(to); what the other rank is known to have taken (it has answered) may be written
  /// again before that. From a rank to itself nothing is sent.
  virtual void post(int to, std::span<const std::byte> bytes) = 0;
  /// All that was posted to it has left the poster's memory.
  virtual bool is_sent(int to) const = 0;
  /// What was posted to it reaches it whatever its poster does from here on, though it may still be read in the poster's memory.
  virtual bool is_handed_over(int to) const { return is_sent(to); }
  /// Grows while it reads something large that is not sent yet; 0 where the transport cannot tell, or progress() tells.
  virtual uint64_t read_by(int /*to*/) const { return 0; }
  /// After an error: drops what was not sent. When it returns nobody reads the poster's memory any more.
  virtual void withdraw() noexcept = 0;

  /// What has come from it and was not taken yet, as far as it lies together; empty: nothing yet. Valid until taken, or the next
  /// progress().
  virtual std::span<const std::byte> arrived(int from) = 0;
  virtual void take(int from, int64_t bytes) = 0;

  /// Moves what can be moved. Whether anything did.
  virtual bool progress() = 0;
  /// Called when nothing has moved: spins for a while, then sleeps until something has since the last progress(), at most so long.
  virtual void idle(double seconds) = 0;

  /// The first that is known of. Cheap enough to be asked in every wait.
  virtual std::optional<RankFailure> failure() = 0;
  /// Its end is gone, in order: no failure, but for who waits for it. What it had posted has arrived before this is true.
  virtual bool has_left(int rank) const = 0;
  /// Seconds since a rank was last seen alive; 0 where the transport cannot tell.
  virtual double silence_of(int rank) const = 0;
  /// Where a rank shows its last collectives, this one or another; null where no memory is shared.
  virtual class FlightBoard* board(int /*rank*/) const { return nullptr; }
  /// Ends the group: each rank's failure() says so from now on, here and there. The first one stays.
  virtual void abort(const RankFailure& failure) noexcept = 0;
};

}  // namespace st

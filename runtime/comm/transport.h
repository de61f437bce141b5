// Point-to-point byte streams between the ranks of a group: all that threads, shared memory, Gloo and MPI have to implement. Collectives
// are written once on top of it (communicator.h), so their bits do not depend on the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace st {

/// The end of a group, as reported to every survivor.
struct RankFailure {
  int rank = -1;                  // of Transport::whole(): the rank at fault, whichever rank found it
  Code code = Code::rank_failed;  // what survivors throw: rank_failed, timeout, rank_mismatch
  std::string reason;             // "its process has ended", "it has aborted: cancelled": the rank is "it"
};

/// One rank's end of the group. Each ordered pair of ranks has one stream: bytes arrive in the order in which they were posted, without
/// message boundaries. Used by one thread at a time, except abort() and wake(), which any thread may call, and const functions, which
/// another thread may call while one is in idle(). Only idle() waits.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;            // "threads", "shared memory", "gloo", "mpi"
  virtual std::string host_of(int rank) const = 0;      // with its process, for people: "node7, process 4711"
  virtual bool is_of_threads() const { return false; }  // all ranks are threads of this process
  /// For a group within a larger one: the transport of all ranks, whose numbers name a rank at fault. Otherwise this one.
  virtual const Transport& whole() const { return *this; }
  virtual int whole_rank(int rank) const { return rank; }

  /// Appends to the stream to that rank; does nothing when `to` is this rank. Borrowed until is_sent(to). Bytes that the other rank is
  /// known to have taken, because it has answered, may be overwritten before that.
  virtual void post(int to, std::span<const std::byte> bytes) = 0;
  /// All bytes posted to that rank have left the poster's memory.
  virtual bool is_sent(int to) const = 0;
  /// All bytes posted to that rank will reach it whatever the poster does next; they may still be read from the poster's memory.
  virtual bool is_handed_over(int to) const { return is_sent(to); }
  /// Grows while that rank reads a large post that is not sent yet; 0 where the transport cannot tell or progress() reports it.
  virtual uint64_t read_by(int /*to*/) const { return 0; }
  /// After an error: drops what was not sent. No rank reads the poster's memory after it returns.
  virtual void withdraw() noexcept = 0;

  /// The first contiguous bytes that have arrived from that rank and were not taken; empty if none. Valid until taken or until the next
  /// progress().
  virtual std::span<const std::byte> arrived(int from) = 0;
  virtual void take(int from, int64_t bytes) = 0;

  /// Moves the bytes that can move; returns whether any did.
  virtual bool progress() = 0;
  /// Called when nothing has moved: spins briefly, then sleeps for at most `seconds`, or until something has moved since the last
  /// progress().
  virtual void idle(double seconds) = 0;
  /// Ends an idle() that is under way, or the next one.
  virtual void wake() noexcept = 0;

  /// The first failure known to this rank. Cheap enough to call in every wait.
  virtual std::optional<RankFailure> failure() = 0;
  /// That rank destroyed its end in good order: a failure only for a rank that waits for it. Everything it posted has arrived by then.
  virtual bool has_left(int rank) const = 0;
  /// Seconds since that rank was last seen alive; 0 where the transport cannot tell.
  virtual double silence_of(int rank) const = 0;
  /// The board on which that rank, or this one, shows its last collectives; null where ranks share no memory.
  virtual class FlightBoard* board(int /*rank*/) const { return nullptr; }
  /// Ends the group: failure() reports it from now on, on every rank. The first failure is kept.
  virtual void abort(const RankFailure& failure) noexcept = 0;
};

}  // namespace st

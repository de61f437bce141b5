// Collectives over ranks: the interface. direct_exchange.h implements it on any transport.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/shares.h"
#include "comm/collective.h"
#include "comm/communicator_options.h"
#include "comm/flight_recorder.h"

namespace st {

class DeviceGroup;  // backend/device_group.h; a communicator only keeps it

/// One rank of a group. One call at a time, from any thread; all ranks make their calls in the same order (send and receive: the two
/// ranks). A call returns when its memory may be used again.
///
/// Errors name the rank, its host and the collective:
/// - rank_failed: a rank has died, left or aborted
/// - timeout: at the deadline a rank is silent (stopped), or alive but not in the call
/// - rank_mismatch: ranks call different collectives; the message shows both calls
///
/// An error ends the group: every later call here throws it again, and the other ranks throw it too.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view transport_name() const = 0;  // "threads", "shared memory", "gloo", "mpi"
  virtual std::string host_of(int rank) const = 0;      // with its process, for people: "node7, process 4711"
  virtual bool is_of_threads() const = 0;               // all ranks are threads of this process
  /// In the group that this one was split from, or from which that one was: the number that names a rank in errors. The same rank if this
  /// group was not split from another one.
  virtual int whole_rank(int rank) const = 0;
  virtual double deadline() const = 0;    // of each wait, in seconds
  virtual uint64_t sequence() const = 0;  // number of the last collective of all ranks; equal on all of them between two collectives

  // An impossible call (a null pointer, a rank out of range) throws invalid_argument before anything is sent: the group stays usable, but
  // the other ranks wait for this one. `label` is borrowed for the call. Booleans cannot be reduced; integers have no mean.

  // On contiguous memory of one element type. `elements` counts the whole tensor; rank r's shard is [share(r), share(r + 1)). Shards are
  // equal, except that the first ranks hold one element more where the number of ranks does not divide `elements`.
  virtual void all_reduce(void* data, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {}) = 0;
  /// Reads `data`, the whole tensor; writes this rank's shard to `own`, which may be that range of `data`.
  virtual void reduce_scatter(const void* data, void* own, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {}) = 0;
  /// Reads this rank's shard, `own`, which may be that range of `data`; writes the whole tensor to `data`.
  virtual void all_gather(const void* own, void* data, int64_t elements, DType dtype, std::string_view label = {}) = 0;
  /// Sends the i-th of size() equal blocks of `from` to rank i; block i of `to` comes from rank i. The two do not overlap.
  virtual void all_to_all(const void* from, void* to, int64_t elements, DType dtype, std::string_view label = {}) = 0;
  virtual void broadcast(void* data, int64_t elements, DType dtype, int root, std::string_view label = {}) = 0;
  /// Messages between two ranks arrive in order. A send of up to 16 KiB (4 KiB in a group of 90 processes or more) returns at once if the
  /// previous one was received. A larger send may not return until it is received: two ranks that both send first wait for each other.
  virtual void send(const void* data, int64_t elements, DType dtype, int to, std::string_view label = {}) = 0;
  virtual void receive(void* data, int64_t elements, DType dtype, int from, std::string_view label = {}) = 0;
  virtual void barrier(std::string_view label = {}) = 0;

  /// First element of that rank's shard.
  int64_t share(int64_t elements, int rank) const { return share_begin(elements, size(), rank); }

  // The same on scattered memory, split as the caller likes: a bucket of gradients is exchanged in place, without being packed.
  struct Shard {
    void* data = nullptr;
    int64_t elements = 0;
  };
  using Shards = std::span<const Shard>;
  /// Sums each rank's elements at their owner, rank 0's first, in the type of `into`, to which each addition is rounded.
  /// - parts[q]: this rank's elements that rank q owns, of `dtype` (f32, f64, bf16 or f16). All ranks give equal lengths.
  /// - into: the sums of the elements that this rank owns, of the type that `sums` says. May be exactly parts[rank()].
  /// - contributors: only ranks 0 to contributors - 1 contribute; the memory of the others' parts is not read, only its lengths.
  /// - adds: adds onto the values in `into`; otherwise rank 0's elements overwrite them.
  virtual void reduce_shards(std::span<const Shards> parts, Shards into, DType dtype, SumType sums, int contributors, bool adds,
                             std::string_view label) = 0;
  /// parts[rank()] is sent to every rank; parts[q] receives rank q's elements.
  virtual void gather_shards(std::span<const Shards> parts, DType dtype, std::string_view label) = 0;

  // A collective whose elements move without the communicator, such as one in the memory of a device that the ranks share.

  /// Gets the numbers that the ranks give, in rank order; returns the bytes of elements that this rank sends, for sent_bytes().
  using Exchange = std::function<int64_t(std::span<const uint64_t> numbers)>;
  /// Gives `own` to all ranks, runs `exchange`, and returns when it has returned on all ranks. `detail`: what else the ranks must agree in.
  /// An exception of `exchange` ends the group.
  virtual void meet(const CollectiveCall& call, uint64_t detail, uint64_t own, const Exchange& exchange) = 0;
  /// Within `exchange`: calls `is_done` until it returns true. Throws as any wait for other ranks does. At the deadline it names a rank
  /// that is silent or has left, else timeout says that this rank waits for `what`.
  virtual void await(std::string_view what, const std::function<bool()>& is_done) = 0;

  /// Moves the memory of these ranks' devices; null: it passes through the host's.
  DeviceGroup* devices() const { return devices_.get(); }
  void connect_devices(std::shared_ptr<DeviceGroup> devices) { devices_ = std::move(devices); }

  // New groups of these ranks: collectives of all of them, after which groups and this communicator are independent: each has its own order
  // of calls, and a thread may wait in one while another thread goes on in another. Options are the group's own, but for the chunk,
  // and for `warn` if they have none. An error in one group ends all that were split from one another, on all ranks; it names the rank by
  // its number in the whole group and in this one.

  /// The ranks that give the same color, sorted by key, then by rank. Where a single rank gives a color and not allow_single, all ranks
  /// throw rank_mismatch with the colors, and this group stays usable.
  virtual std::unique_ptr<Communicator> split(int32_t color, int32_t key, const CommunicatorOptions& options, bool allow_single) = 0;
  /// The same ranks again: for calls of another thread, in an order of its own.
  virtual std::unique_ptr<Communicator> duplicate(const CommunicatorOptions& options) = 0;

  /// Ends the group, from any thread: waits on this and all other ranks throw rank_failed with the reason.
  virtual void abort(std::string_view reason) noexcept = 0;
  /// Whether the group has ended, here or on another rank; for a caller that waits for something else. Called by the thread that makes the
  /// calls.
  virtual bool has_ended() const = 0;

  // From any thread, too.

  /// Bytes of elements sent by this rank so far, without headers (T6).
  virtual int64_t sent_bytes() const = 0;
  virtual const FlightRecorder& recorder() const = 0;

 protected:
  Communicator() = default;
  Communicator(Communicator&&) = default;
  Communicator& operator=(Communicator&&) = default;

 private:
  std::shared_ptr<DeviceGroup> devices_;
};

/// "rank 2 (node7, process 4711)"; where the whole group has another number for it, "rank 5 (rank 2 of this group; node7, process 4711)"
std::string text_of_rank(const Communicator& ranks, int rank);

/// Throws rank_mismatch with the rank, its host and the tensor ("": none) in error.place. For mismatches that all ranks find together.
[[noreturn]] void refuse_rank(const Communicator& ranks, int rank, std::string_view tensor, std::string message);

}  // namespace st

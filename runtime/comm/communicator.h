// Collectives over ranks. Their bits depend neither on the transport nor on the order of arrival.
//
// Reductions are by direct exchange (traps.md, order of sums): each element has an owner, which receives every rank's contribution and adds
// them in rank order, in fp32 (f64: fp64), rounding once at the end. This sends as many bytes as a ring, and the result does not depend on
// sharding or bucket size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective.h"
#include "comm/communicator_options.h"
#include "comm/flight_recorder.h"
#include "comm/transport.h"

namespace st {

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
  /// Throws invalid_argument if an option is out of its range.
  explicit Communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options = {});
  ~Communicator();  // unless the group has ended, waits until no other rank reads our memory, at most for the deadline
  Communicator(Communicator&&) noexcept;
  /// Replaces this group by another one.
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  const Transport& transport() const;
  double deadline() const;    // of each wait, in seconds
  uint64_t sequence() const;  // number of the last collective of all ranks; equal on all of them between two collectives

  // An impossible call (a null pointer, a rank out of range) throws invalid_argument before anything is sent: the group stays usable, but
  // the other ranks wait for this one. `label` is borrowed for the call. Booleans cannot be reduced; integers have no mean.

  // On contiguous memory of one element type. `elements` counts the whole tensor; rank r's shard is [share(r), share(r + 1)). Shards are
  // equal, except that the first ranks hold one element more where the number of ranks does not divide `elements`.
  /// Small tensors (size() times the bytes <= 32 KiB) are sent whole to each rank, in one hop; larger ones in shards. The bits are equal.
  void all_reduce(void* data, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {});
  /// Reads `data`, the whole tensor; writes this rank's shard to `own`, which may be that range of `data`.
  void reduce_scatter(const void* data, void* own, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {});
  /// Reads this rank's shard, `own`, which may be that range of `data`; writes the whole tensor to `data`.
  void all_gather(const void* own, void* data, int64_t elements, DType dtype, std::string_view label = {});
  /// Sends the i-th of size() equal blocks of `from` to rank i; block i of `to` comes from rank i. The two do not overlap.
  void all_to_all(const void* from, void* to, int64_t elements, DType dtype, std::string_view label = {});
  void broadcast(void* data, int64_t elements, DType dtype, int root, std::string_view label = {});
  /// Messages between two ranks arrive in order. A send of up to 16 KiB (4 KiB in a group of 90 processes or more) returns at once if the
  /// previous one was received. A larger send may not return until it is received: two ranks that both send first wait for each other.
  void send(const void* data, int64_t elements, DType dtype, int to, std::string_view label = {});
  void receive(void* data, int64_t elements, DType dtype, int from, std::string_view label = {});
  void barrier(std::string_view label = {});

  int64_t share(int64_t elements, int rank) const;  // first element of that rank's shard

  // The same on scattered memory, split as the caller likes: a bucket of gradients is exchanged in place, without being packed.
  struct Shard {
    void* data = nullptr;
    int64_t elements = 0;
  };
  using Shards = std::span<const Shard>;
  /// Sums each rank's elements at their owner, rank 0's first, in the type of `into`.
  /// - parts[q]: this rank's elements that rank q owns, of `dtype` (f32, f64, bf16 or f16). All ranks give equal lengths.
  /// - into: the sums of the elements that this rank owns, f32 (for f64: f64). May be exactly parts[rank()].
  /// - contributors: only ranks 0 to contributors - 1 contribute; the memory of the others' parts is not read, only its lengths.
  /// - adds: adds onto the values in `into`; otherwise rank 0's elements overwrite them.
  void reduce_shards(std::span<const Shards> parts, Shards into, DType dtype, int contributors, bool adds, std::string_view label);
  /// parts[rank()] is sent to every rank; parts[q] receives rank q's elements.
  void gather_shards(std::span<const Shards> parts, DType dtype, std::string_view label);

  /// Ends the group, from any thread: waits on this and all other ranks throw rank_failed with the reason.
  void abort(std::string_view reason) noexcept;
  /// Whether the group has ended, here or on another rank; for a caller that waits for something else. Called by the thread that makes the
  /// calls.
  bool has_ended() const;

  // From any thread, too.

  /// Bytes of elements sent by this rank so far, without headers (T6).
  int64_t sent_bytes() const;
  const FlightRecorder& recorder() const;

 private:
  void fold(std::byte* sums, const std::byte* own, int64_t n, DType dtype, ReduceOp op, int contributors, bool adds);
  void reduce_to(const std::byte* own, std::byte* out, int64_t n, DType dtype, ReduceOp op);
  void all_reduce_at_once(std::byte* data, int64_t elements, DType dtype, ReduceOp op);
  void all_reduce_by_shares(std::byte* data, int64_t elements, DType dtype, ReduceOp op);
  void broadcast_by_shares(std::byte* data, int64_t elements, int64_t width, int root);
  void gather_shares(std::byte* data, int64_t elements, int64_t width);

  std::unique_ptr<class Wire> wire_;
  int64_t chunk_;
  std::vector<std::byte> sums_;  // of one chunk
};

}  // namespace st

// Collectives over ranks, whose bits depend neither on the transport nor on who comes first.
//
// Reductions are by direct exchange (traps.md, order of sums): each element has an owner, who receives all ranks' pieces of it and adds
// them in the order of the ranks, in fp32 (f64: fp64), rounding once at the end. The same bytes on the wire as a ring, and a result that
// depends on neither the cut into pieces nor the bucket.
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

/// One rank of a group. One call at a time, by any thread; calls are in the same order on all ranks (send and receive on the two). Each
/// call returns when its memory may be used again.
///
/// Errors: rank_failed with rank, host and collective where a rank is gone or has aborted; timeout with the same where a rank is silent
/// (stopped) or alive but not there past the deadline; rank_mismatch with both sides where ranks call different collectives. After an error
/// the group is over: every later call here throws it again, and the others are told.
class Communicator {
 public:
  /// Throws invalid_argument where an option is out of its range.
  explicit Communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options = {});
  ~Communicator();  // of a group that is whole: what others still read of ours is waited for, at most for the deadline
  Communicator(Communicator&&) noexcept;
  /// The end of another group in place of this one.
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  const Transport& transport() const;
  double deadline() const;    // seconds, of its waits
  uint64_t sequence() const;  // of the last collective of all ranks: alike on them while they are between two

  // Calls that cannot be made (a null pointer, a rank that is not there) throw invalid_argument before anything is sent: the group is
  // whole, but others wait for this rank. `label` is borrowed for the call. Booleans are not reduced, and integers have no mean.

  // On plain memory of one element type. `elements` is of the whole; a rank's share of it is [share(r), share(r + 1)), even but for the
  // rest: the first ranks have one more.
  /// Small ones (size() times the bytes <= 32 KiB) are sent whole to each rank, to be there in one hop; others by shares. The same bits.
  void all_reduce(void* data, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {});
  /// `data` (whole, size() shares) is read; `own` gets this rank's share, and may be that part of `data`.
  void reduce_scatter(const void* data, void* own, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {});
  /// `own` is this rank's share, and may be that part of `data` (whole), which gets all.
  void all_gather(const void* own, void* data, int64_t elements, DType dtype, std::string_view label = {});
  /// The i-th of size() equal parts of `from` goes to rank i, whose part stands at this rank's place there. They do not overlap.
  void all_to_all(const void* from, void* to, int64_t elements, DType dtype, std::string_view label = {});
  void broadcast(void* data, int64_t elements, DType dtype, int root, std::string_view label = {});
  /// Messages between two ranks arrive in their order. A send of up to 16 KiB (4 KiB among 90 processes or more) returns at once where the
  /// one before it was received; a larger one may return when it is received, so two ranks that both send first wait for each other.
  void send(const void* data, int64_t elements, DType dtype, int to, std::string_view label = {});
  void receive(void* data, int64_t elements, DType dtype, int from, std::string_view label = {});
  void barrier(std::string_view label = {});

  int64_t share(int64_t elements, int rank) const;  // where it begins

  // The same on memory that lies in pieces, cut as the caller likes: how a bucket of gradients is exchanged where it was made.
  struct Piece {
    void* data = nullptr;
    int64_t elements = 0;
  };
  using Pieces = std::span<const Piece>;
  /// `parts[q]`: the elements of this rank that rank q owns; all ranks give the same lengths. `into`: f32 (of f64: f64), for this rank's
  /// own elements. Pieces are of `dtype` (f32, f64, bf16 or f16), and of ranks 0 to `contributors` - 1 alone: others read their parts no
  /// further than their lengths. First rank 0's piece, then rank 1's ... are added in the type of `into`; `adds`: onto what `into` has,
  /// else the first one writes. `into` may be this rank's own part exactly.
  void reduce_pieces(std::span<const Pieces> parts, Pieces into, DType dtype, int contributors, bool adds, std::string_view label);
  /// `parts[q]`: where rank q's elements go; this rank's own are where they come from.
  void gather_pieces(std::span<const Pieces> parts, DType dtype, std::string_view label);

  /// Ends the group, from any thread: waits here and on the other ranks throw rank_failed with the reason.
  void abort(std::string_view reason) noexcept;
  /// Whether the group is over, here or on another rank: for who waits for something else. By who makes the calls.
  bool has_ended() const;

  // From any thread too.

  /// Bytes of elements that this rank has sent so far, without our own headers (T6).
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
  std::vector<std::byte> sums_;  // of a chunk
};

}  // namespace st

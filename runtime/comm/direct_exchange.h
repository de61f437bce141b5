// The communicator on any point-to-point transport. Its bits depend neither on the transport nor on the order of arrival.
//
// Reductions are by direct exchange (traps.md, order of sums): each element has an owner, which receives every rank's contribution and adds
// them in rank order, in fp32 (f64: fp64) and rounded once at the end, or in their own type (SumType). This sends as many bytes as a ring,
// and the result does not depend on sharding or bucket size.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/transport.h"

namespace st {

class DirectExchange final : public Communicator {
 public:
  /// Throws invalid_argument if an option is out of its range.
  explicit DirectExchange(std::unique_ptr<Transport> transport, const CommunicatorOptions& options = {});
  ~DirectExchange() override;  // unless the group has ended, waits until no other rank reads our memory, at most for the deadline
  DirectExchange(DirectExchange&&) noexcept;
  /// Replaces this group by another one.
  DirectExchange& operator=(DirectExchange&&) noexcept;

  int rank() const override;
  int size() const override;
  std::string_view transport_name() const override { return transport().name(); }
  std::string host_of(int rank) const override { return transport().host_of(rank); }
  bool is_of_threads() const override { return transport().is_of_threads(); }
  double deadline() const override;
  uint64_t sequence() const override;
  int whole_rank(int rank) const override { return transport().whole_rank(rank); }
  const Transport& transport() const;

  std::unique_ptr<Communicator> split(int32_t color, int32_t key, const CommunicatorOptions& options, bool allow_single) override;
  std::unique_ptr<Communicator> duplicate(const CommunicatorOptions& options) override;

  /// Small tensors (size() times the bytes <= 32 KiB) are sent whole to each rank, in one hop; larger ones in shards. The bits are equal.
  void all_reduce(void* data, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {}) override;
  void reduce_scatter(const void* data, void* own, int64_t elements, DType dtype, ReduceOp op, std::string_view label = {}) override;
  void all_gather(const void* own, void* data, int64_t elements, DType dtype, std::string_view label = {}) override;
  void all_to_all(const void* from, void* to, int64_t elements, DType dtype, std::string_view label = {}) override;
  void broadcast(void* data, int64_t elements, DType dtype, int root, std::string_view label = {}) override;
  void send(const void* data, int64_t elements, DType dtype, int to, std::string_view label = {}) override;
  void receive(void* data, int64_t elements, DType dtype, int from, std::string_view label = {}) override;
  void barrier(std::string_view label = {}) override;
  void reduce_shards(std::span<const Shards> parts, Shards into, DType dtype, SumType sums, int contributors, bool adds,
                     std::string_view label) override;
  void gather_shards(std::span<const Shards> parts, DType dtype, std::string_view label) override;
  void meet(const CollectiveCall& call, uint64_t detail, uint64_t own, const Exchange& exchange) override;
  void await(std::string_view what, const std::function<bool()>& is_done) override;

  void abort(std::string_view reason) noexcept override;
  bool has_ended() const override;
  int64_t sent_bytes() const override;
  const FlightRecorder& recorder() const override;

 private:
  DirectExchange(std::unique_ptr<class Wire> wire, int64_t chunk);
  struct Entry;
  std::vector<Entry> exchange(const CollectiveCall& call, const Entry& own);
  std::unique_ptr<Communicator> group_of(const std::vector<Entry>& entries, CommunicatorOptions options);

  void fold(std::byte* sums, const std::byte* own, int64_t n, DType dtype, ReduceOp op, int contributors, bool adds, SumType type);
  void reduce_to(const std::byte* own, std::byte* out, int64_t n, DType dtype, ReduceOp op);
  void all_reduce_at_once(std::byte* data, int64_t elements, DType dtype, ReduceOp op);
  void all_reduce_by_shares(std::byte* data, int64_t elements, DType dtype, ReduceOp op);
  void broadcast_by_shares(std::byte* data, int64_t elements, int64_t width, int root);
  void gather_shares(std::byte* data, int64_t elements, int64_t width);

  std::unique_ptr<Wire> wire_;
  int64_t chunk_;
  std::vector<std::byte> sums_;    // of one chunk
  std::vector<uint64_t> numbers_;  // of a meeting, by rank
};

}  // namespace st

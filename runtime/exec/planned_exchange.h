// Runs the collectives of a plan over a communicator.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/bucket.h"
#include "exec/device_collective.h"
#include "exec/host_mirror.h"
#include "plan/exchange_plan.h"

namespace st {

class TermRoom;

/// One collective with everything resolved; running it allocates nothing. The operands are exchanged where they lie: in the host's memory,
/// in that of a device which the ranks share (device_exchange.h), or between devices that are connected (network_exchange.h). Those of
/// other devices are copied to the host and back by each run (host_mirror.h), which allocates the copies when it is the first.
class PlannedExchange {
 public:
  /// `call`: the collective's operands, in memory of `backend`; after one's address has changed, place() takes the new one. `stream`: gets
  /// what is run on a device; null on a backend in host memory. `computing`: has the updates, which an aborted exchange halts; null: they
  /// are on `stream`. `room`: for what a network brings; null: its own. Borrows all arguments.
  PlannedExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks, Backend& backend,
                  Stream* stream = nullptr, Stream* computing = nullptr, TermRoom* room = nullptr);

  /// Whether a network of devices moves the elements. Along the stage axis it moves messages alone (network_message.h); the sums there are
  /// of a few numbers.
  static bool is_over_network(const ExchangePlan& exchange, const Communicator& ranks, const Backend& backend);

  Op op() const { return op_; }
  void place();
  /// Reductions add the terms of the first `contributors` ranks. No stream may have work left that uses the operands, unless follows().
  /// Throws what the communicator throws.
  void run(int contributors);

  /// Whether runs are ordered with streams by fork() and join(): elements may stay in the memory of devices.
  bool follows() const { return device_ != nullptr; }
  /// Whether the elements move over a network of devices, whose exchanges all ranks must make in one order (README.md).
  bool is_networked() const { return is_networked_; }
  /// The next run is behind the work that `computing` has.
  void fork(Stream& computing);
  /// Work that `computing` gets from now on is behind the last run, which has returned.
  void join(Stream& computing);

  /// Memory for copies of operands.
  int64_t copied_bytes() const { return (mirror_ ? mirror_->bytes() : 0) + (device_ ? device_->bytes() : 0); }

  uint64_t queued_as = 0;  // number of its last run in the queue (exchange_queue.h)

 private:
  template <class T = std::byte>
  T* in_host(const Operand& operand) {
    return reinterpret_cast<T*>(mirror_ ? mirror_->at(operand) : backend_.in_host(operand.data));
  }
  void place_in_host();
  void run_in_host(int contributors);
  void run_mirrored(int contributors);
  void sum_terms(int contributors);
  void place_own_pieces();
  void place_squares();
  void place_rows();
  void place_sum();
  bool is_summed_at_once() const { return exchange_.elements * bytes_of(dtype_) <= kSummedAtOnce; }
  void add_values();

  const ExchangePlan& exchange_;
  const Program& program_;
  const Call& call_;
  Communicator& ranks_;
  Backend& backend_;
  Stream* stream_;
  std::unique_ptr<DeviceCollective> device_;  // null: the ranks' devices are neither shared nor connected
  std::optional<HostMirror> mirror_;          // empty: the host reads the operands in place
  std::unique_ptr<Event> forked_, joins_;     // if follows(): recorded before the next run, and after the last one
  bool is_networked_ = false;
  bool is_placed_ = false;
  Op op_;
  bool adds_;
  std::string label_;
  DType dtype_;
  Bucket parts_;                      // the operands by owning rank, and the sums
  Bucket whole_;                      // tensor_sum, unless at once: each rank's part of the sum
  std::vector<std::byte> values_;     // tensor_sum at once: all ranks' values
  std::vector<const double*> terms_;  // rank_sums: this rank's terms; gathered_: all ranks'; sums_: the results
  std::vector<double> gathered_;
  std::vector<double*> sums_;
  const double* squares_ = nullptr;  // gather_squares: this rank's
  std::span<const Operand> own_;     // all_gather: this rank's shards, if they are not in the gathered memory
};

}  // namespace st

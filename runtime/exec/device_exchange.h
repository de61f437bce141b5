// The collectives of a plan in the memory of a device that the ranks share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "exec/device_offer.h"
#include "plan/exchange_plan.h"

namespace st {

/// One collective of ranks that are threads of one process. Each rank's stream waits for what the others have written, folds what it owns
/// or copies what it gets, straight from their memory, and the others' streams then wait until it has been read. The host waits for the
/// other ranks to come, not for the device. The order of sums and their roundings are the direct exchange's (comm/direct_exchange.h).
class DeviceExchange {
 public:
  /// Whether the ranks may share the device; run() finds whether they do.
  static bool is_possible(const Backend& backend, const Communicator& ranks) { return !backend.is_host_memory() && ranks.is_of_threads(); }

  /// As PlannedExchange. Borrows all arguments.
  DeviceExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks, Backend& backend);
  ~DeviceExchange();
  DeviceExchange(const DeviceExchange&) = delete;
  DeviceExchange& operator=(const DeviceExchange&) = delete;

  /// Forgets where operands are: the next run looks for them.
  void place() { is_placed_ = false; }
  /// Gives the collective to `stream`, behind whose work so far the operands have their values; they may be written again behind the work
  /// that it has when this returns. False: the ranks do not share the device, and nothing of the collective has been run. Throws
  /// invalid_argument for an operand that is not in the device's memory, and what the communicator throws; no other rank reads the operands
  /// then.
  bool run(Stream& stream, int contributors);

  int64_t bytes() const { return staged_ ? staged_->size() : 0; }  // memory of its own

 private:
  struct Copy {
    Address to, from;
    int64_t bytes;
  };
  using Offers = std::span<const std::shared_ptr<DeviceOffer>>;  // of all ranks

  void place_now(Stream& stream);
  void place_parts(std::span<const Operand> operands);
  void place_rows(const Operand& whole);
  void place_shares(const Operand& whole, std::vector<DevicePieces>& parts) const;
  void place_own(std::span<const Operand> own);
  void stage(Stream& stream);
  bool is_read_by_others(size_t part) const;

  bool reduce(Stream& stream, int contributors, bool adds);
  bool gather(Stream& stream, const std::vector<DevicePieces>& parts);
  bool sum_all(Stream& stream, int contributors, bool adds);
  template <class Give>
  bool meet(Stream& stream, const CollectiveCall& call, uint64_t detail, int64_t sent, std::span<const DevicePieces> parts,
            const Give& give);
  bool find_offers(std::span<const uint64_t> numbers);
  template <class Give>
  void read_offers(Stream& stream, const Give& give);
  void fold(Stream& stream, Offers offers, size_t part, int contributors, bool adds);

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }

  const ExchangePlan& exchange_;
  const Program& program_;
  const Call& call_;
  Communicator& ranks_;
  Backend& backend_;
  const std::string label_;
  const DType dtype_;
  const bool is_whole_;  // each rank gets the terms of all and sums them: one part

  bool is_placed_ = false;
  std::vector<DevicePieces> parts_;      // by owning rank, or one
  std::vector<DevicePieces> sum_parts_;  // tensor_sum, unless whole: where each rank's part of the sum lies
  DevicePieces into_;                    // reductions: the sums that this rank makes
  std::vector<Copy> copies_;             // made before the others read
  std::unique_ptr<Buffer> staged_;       // parts that the sums would overwrite, while others read them
  std::shared_ptr<DeviceOffer> offer_;
  std::vector<std::shared_ptr<DeviceOffer>> offers_;  // by rank, as last found
  bool is_shared_ = true, is_withdrawn_ = false;      // of the last meeting
  // For folds: a walk through the pieces of each term and of the sums.
  struct Walk;
  std::vector<Walk> walks_;
  std::vector<Address> terms_;
};

}  // namespace st

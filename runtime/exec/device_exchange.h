// The collectives of a plan in the memory of a device that the ranks share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/device_collective.h"

namespace st {

/// One collective of ranks that are threads of one process. Each rank's stream waits for what the others have written, folds what it owns
/// or copies what it gets, straight from their memory, and the others' streams then wait until it has been read. The host waits for the
/// other ranks to come, not for the device. run() returns false where one of them has another device.
class DeviceExchange final : public DeviceCollective {
 public:
  /// Whether the ranks may share the device; run() finds whether they do.
  static bool is_possible(const Backend& backend, const Communicator& ranks) { return !backend.is_host_memory() && ranks.is_of_threads(); }

  DeviceExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks, Backend& backend);
  ~DeviceExchange() override;

 private:
  using Offers = std::span<const std::shared_ptr<DeviceOffer>>;  // of all ranks

  bool reduce(Stream& stream, const Round& round, int contributors, bool adds) override;
  bool gather(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) override;
  bool sum_all(Stream& stream, const Round& round, int contributors, bool adds) override;

  void fold_offers(Stream& stream, Offers offers, size_t part, int contributors, bool adds);
  template <class Give>
  bool meet(Stream& stream, const Round& round, std::span<const DevicePieces> parts, const Give& give);
  bool find_offers(std::span<const uint64_t> numbers);
  template <class Give>
  void read_offers(Stream& stream, const Give& give);

  std::shared_ptr<DeviceOffer> offer_;
  std::vector<std::shared_ptr<DeviceOffer>> offers_;  // by rank, as last found
  std::vector<const DevicePieces*> terms_;            // of a fold
  bool is_shared_ = true, is_withdrawn_ = false;      // of the last meeting
};

}  // namespace st

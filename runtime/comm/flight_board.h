// The last collectives of a rank, in memory where the others can read them for the error that ends their group, even after it has died.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/flight_recorder.h"

namespace st {

/// Plain words without pointers, in memory that ranks share; all zero is an empty board. One rank writes, the others read at any time. They
/// tolerate any bytes that a crashed rank may have left.
class FlightBoard {
 public:
  static constexpr int kShown = 3;

  /// Overwrites the oldest record. Called when the collective `count` begins and again when it ends.
  void show(uint64_t count, const FlightRecord& record) noexcept;
  /// The records that were not being written, in no order.
  std::vector<FlightRecord> shown() const;

 private:
  static constexpr size_t kWords = 12;
  struct Place {
    std::atomic<uint64_t> version;  // odd: being written
    std::array<std::atomic<uint64_t>, kWords> words;
  };
  std::array<Place, kShown> places_;
};

/// The records of all ranks, one line per collective, sorted by when the first rank began it; at most the last 24:
/// "#41 all_reduce (sum) of 1024 f32 bucket.3: ranks 0, 2 in 0.2 ms; rank 1 under way for 1.2 s". boards[rank]: null if unknown.
std::string merged_text(const std::vector<const FlightBoard*>& boards);

}  // namespace st

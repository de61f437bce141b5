// The last collectives of a rank, where the others can read them for the error that ends their group: also when it has died.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/flight_recorder.h"

namespace st {

/// Plain words without a pointer, in memory that ranks share; all zero: nothing yet. One rank writes, others read at any time. What a rank
/// that crashed has left there is read as whatever it is, and harms nobody.
class FlightBoard {
 public:
  static constexpr int kShown = 3;

  /// The record goes in the place of the oldest; again when it has ended.
  void show(uint64_t count, const FlightRecord& record) noexcept;
  /// Those that were whole, in no order.
  std::vector<FlightRecord> shown() const;

 private:
  static constexpr size_t kWords = 12;
  struct Place {
    std::atomic<uint64_t> version;  // odd: it is being written
    std::array<std::atomic<uint64_t>, kWords> words;
  };
  std::array<Place, kShown> places_;
};

/// The records of all ranks, each collective once, by when the first rank began it; at most the last two dozen: "#41 all_reduce (sum) of
/// 1024 f32 bucket.3: ranks 0, 2 in 0.2 ms; rank 1 under way for 1.2 s". `boards`: by rank; null: of that rank nothing is known.
std::string merged_text(const std::vector<const FlightBoard*>& boards);

}  // namespace st

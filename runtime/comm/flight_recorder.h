// The last collectives of a rank, for the error that ends a group: what everyone did when one of them went missing.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "comm/collective.h"

namespace st {

struct FlightRecord {
  uint64_t sequence = 0;
  CollectiveCall call;           // without its label
  std::array<char, 48> label{};  // cut off there
  int64_t bytes = 0;             // sent by this rank
  double began = 0, ended = 0;   // os::seconds(); ended 0: under way
};

/// A ring of the last kKept records. Allocates nothing while it records; may be read by another thread meanwhile.
class FlightRecorder {
 public:
  static constexpr int kKept = 64;
  /// `board` (null: none): where the other ranks see the newest; it outlives the recorder.
  explicit FlightRecorder(class FlightBoard* board = nullptr) : board_(board) {}

  void begin(uint64_t sequence, const CollectiveCall& call);
  void end(int64_t bytes);  // one that has failed has no end
  /// Of all calls that have ended, since the beginning: what this rank spent in exchange, waits for others included.
  double seconds() const;

  /// The last `most`, oldest first, a line each: "#41 all_reduce (sum) of 1024 f32 bucket.3: 4096 bytes in 0.2 ms", "#42 ...: under way
  /// for 1.2 s".
  std::string text(int most = kKept) const;
  /// JSON: a list of objects with "sequence", "collective", "op" (of reductions), "dtype", "elements", "root" (where there is one),
  /// "label", "bytes", "began_us", "ended_us" (of this machine's monotonic clock; 0: under way).
  std::string json() const;

 private:
  /// Calls each(record) of the last `most`, oldest first.
  template <class Each>
  void each_of_last(int most, const Each& each) const;

  FlightBoard* board_;
  mutable std::mutex mutex_;
  std::array<FlightRecord, kKept> records_{};
  uint64_t count_ = 0;
  double seconds_ = 0;
};

}  // namespace st

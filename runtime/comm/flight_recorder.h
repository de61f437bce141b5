// The last collectives of a rank, for the error that ends a group: what each rank was doing when one of them went missing.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "comm/collective.h"

namespace st {

struct FlightRecord {
  uint64_t sequence = 0;
  CollectiveCall call;           // its label is empty
  std::array<char, 48> label{};  // truncated
  int64_t bytes = 0;             // sent by this rank
  double began = 0, ended = 0;   // os::seconds(); ended 0: still running
};

/// A ring of the last kKept records. Recording allocates nothing; other threads may read at the same time.
class FlightRecorder {
 public:
  static constexpr int kKept = 64;
  /// `board` shows the newest records to the other ranks; null for none; borrowed for the recorder's lifetime.
  explicit FlightRecorder(class FlightBoard* board = nullptr) : board_(board) {}

  void begin(uint64_t sequence, const CollectiveCall& call);
  void end(int64_t bytes);  // not called for a collective that failed
  /// Total time of all calls that have ended: what this rank spent in exchange, waits for others included.
  double seconds() const;

  /// The last `most`, oldest first, a line each: "#41 all_reduce (sum) of 1024 f32 bucket.3: 4096 bytes in 0.2 ms", "#42 ...: under way
  /// for 1.2 s".
  std::string text(int most = kKept) const;
  /// JSON: a list of objects with "sequence", "collective", "op" (reductions only), "dtype", "elements", "root" (if there is one), "label",
  /// "bytes", "began_us", "ended_us" (this machine's monotonic clock; 0: still running).
  std::string json() const;

 private:
  /// Calls each(record) for the last `most`, oldest first.
  template <class Each>
  void each_of_last(int most, const Each& each) const;

  FlightBoard* board_;
  mutable std::mutex mutex_;
  std::array<FlightRecord, kKept> records_{};
  uint64_t count_ = 0;
  double seconds_ = 0;
};

}  // namespace st

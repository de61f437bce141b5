// The rows of a benchmark: our speed, its fraction of a limit, and the peers' speeds. Printed one by one, or as one JSON object at the end.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options.h"
#include "quantiles.h"

namespace cli {

/// One sample per round, in order; every vector is as long as `own`.
struct BenchRow {
  std::string name;
  std::vector<double> own, fraction, peak;  // in the benchmark's unit; fraction of the limit; the limit, in its unit
  std::map<std::string, std::vector<double>> peers, peer_fractions;  // in the same unit; fraction of the peak, if it was measured
  std::map<std::string, std::vector<double>> fractions;              // of each peak, if there are several
  // Only for some rows and more than one thread: speed-up over one thread, and the speed-up of the peak's loop in the same round.
  std::vector<double> scaling, loop_scaling;
  std::map<std::string, std::vector<Ratio>> latencies = {};  // microseconds per call, by side ("own" too): each round's quantiles
  std::string library = {};                                  // what kOwnAuto ran: "own", or a library's name and version
  std::string unit = {};                                     // of this row and its limit, if it differs from the benchmark's
};

/// The limit that speeds are compared with. `one` is the number of the rows' units in one printed `unit`.
struct BenchLimit {
  const char *name = "peak", *unit = "GFLOP/s";
  double one = 1e9;
};

/// Extra columns: our kernels with measured tiles, and with the fastest library. They are not peers and do not count in "best".
inline constexpr const char *kOwnTuned = "own-tuned", *kOwnAuto = "own-auto";

class BenchRows {
 public:
  /// `kind` as in `bench KIND`; `digits` after the decimal point of a printed speed. With `json`, nothing is printed before finish().
  BenchRows(std::string kind, std::string unit, int digits, bool json, const BenchLimit& limit = {})
      : kind_(std::move(kind)), unit_(std::move(unit)), digits_(digits), json_(json), limit_(limit) {}

  /// Prints one line and the peers already known to be absent. Prints nothing with `json`.
  void start(const std::string& line) const;
  void set_absent(const std::string& peer, const std::string& reason) { absent_[peer] = reason; }
  std::map<std::string, std::string>& absent() { return absent_; }
  void add(BenchRow row);
  /// `summary` follows the rows in JSON and `lines` follow them in print, in place of the means. A benchmark may have neither.
  void finish(const Json& summary = {}, const std::string& lines = "") const;

  /// The lowest ratio to these peers (to all peers if none is named) and that peer's name; 0 if the row has none of them.
  static std::pair<double, std::string> least_ratio(const BenchRow& row, std::span<const std::string_view> names = {});

 private:
  void print(const BenchRow& row) const;
  void print_limits(const BenchRow& row) const;
  void print_end(const std::string& lines) const;
  Json result() const;
  Json means() const;

  std::string kind_, unit_;
  int digits_;
  bool json_;
  BenchLimit limit_;
  std::map<std::string, std::string> absent_;
  std::vector<BenchRow> rows_;
};

}  // namespace cli

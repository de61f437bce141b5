// The rows of a benchmark: our speed, its share of a limit, and peers beside it. Printed as they come, or as one JSON object at the end.
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

/// A sample of each round, in the order of the rounds; every vector is as long as `own`.
struct BenchRow {
  std::string name;
  std::vector<double> own, fraction, peak;                           // in the benchmark's unit; of the limit; the limit, in its own unit
  std::map<std::string, std::vector<double>> peers, peer_fractions;  // in the same unit; of the peak, where it was measured
  std::map<std::string, std::vector<double>> fractions;              // of each peak, where there are several
  // With more than one thread, for some: times as fast as with one, and what the peak's loop is in the same round.
  std::vector<double> scaling, loop_scaling;
  std::map<std::string, std::vector<Ratio>> latencies = {};  // microseconds of a call, by side ("own" too): each round's quantiles
  std::string library = {};                                  // what kOwnAuto is: "own", or a library's name and version
  std::string unit = {};                                     // of this row and its limit, where they are not the benchmark's
};

/// What a speed is a share of, as printed: `one` of it in the rows' numbers is one `unit`.
struct BenchLimit {
  const char *name = "peak", *unit = "GFLOP/s";
  double one = 1e9;
};

/// Beside the peers: ourselves with measured tiles, and with the library that is the fastest. No peers of the means' best.
inline constexpr const char *kOwnTuned = "own-tuned", *kOwnAuto = "own-auto";

class BenchRows {
 public:
  /// `kind` as in `bench KIND`; `digits` behind the point of a printed speed. With `json`, nothing is printed before finish().
  BenchRows(std::string kind, std::string unit, int digits, bool json, const BenchLimit& limit = {})
      : kind_(std::move(kind)), unit_(std::move(unit)), digits_(digits), json_(json), limit_(limit) {}

  /// One line, and the peers that are known to be absent. Nothing with `json`.
  void start(const std::string& line) const;
  void set_absent(const std::string& peer, const std::string& reason) { absent_[peer] = reason; }
  std::map<std::string, std::string>& absent() { return absent_; }
  void add(BenchRow row);
  /// `summary` stands beside the rows in JSON, `lines` behind them in print, in place of the means; a benchmark may have none.
  void finish(const Json& summary = {}, const std::string& lines = "") const;

  /// The least of the ratios to these peers, or to all when none is named, and whose it is; 0 when the row has none of them.
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

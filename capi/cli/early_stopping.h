// Ends a run whose validation loss has stopped falling (Prechelt 1998, "Early stopping - but when?").
#pragma once

#include <cstdint>
#include <limits>

namespace cli {

class EarlyStopping {
 public:
  /// patience: evaluations in a row without an improvement, 0 for never. min_delta: an improvement must be more than this below the best.
  EarlyStopping(int64_t patience, double min_delta) : patience_(patience), min_delta_(min_delta) {}

  /// Counts an evaluation, in step order; true if the run should end. NaN is no improvement.
  bool ends_after(double loss) {
    const bool better = loss < best_ - min_delta_;
    waited_ = better ? 0 : waited_ + 1;
    if (better) best_ = loss;
    return patience_ > 0 && waited_ >= patience_;
  }

  /// Restores the state of a resumed run.
  void run_until(double best, int64_t waited) {
    best_ = best;
    waited_ = waited;
  }

  bool is_on() const { return patience_ > 0; }
  /// Whether a run with this many evaluations has one that can end it early: the first is always an improvement, and the last ends the run
  /// anyway.
  bool can_end(int64_t evaluations) const { return patience_ > 0 && patience_ <= evaluations - 2; }
  int64_t waited() const { return waited_; }
  double best() const { return best_; }

 private:
  int64_t patience_;
  double min_delta_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t waited_ = 0;
};

}  // namespace cli

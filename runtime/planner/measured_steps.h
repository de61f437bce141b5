// Training steps of built-in models with the time of every instruction: what a machine's rates are fitted to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parts/context.h"
#include "planner/rate_fit.h"
#include "recipe/recipe.h"

namespace st {

/// A built-in model (models/builtin.h) and how it is trained.
struct StepChoice {
  std::string model, options;  // "gpt", its options as JSON
  Recipe recipe;               // threads and ranks too; ranks are threads of this process
};

class MeasuredSteps {
 public:
  /// Makes the model and a trainer; runs nothing. Throws what they throw.
  MeasuredSteps(const std::shared_ptr<Context>& context, const StepChoice& choice);
  ~MeasuredSteps();

  /// Runs steps on made-up rows, and one or two before them that are not counted: other work has had the caches since the last run. Without
  /// the watch only whole steps are timed. Throws what a trainer throws; cancelled.
  void run(int64_t steps, bool is_watched = true);
  int64_t count() const;  // watched steps

  /// The instructions of all ranks, or of rank 0 alone.
  ///   collectives   once, with the shortest time of the rank that came last, which waits for nobody
  ///   messages      as sends, with the time from the end of the send to that of a receive which waited for it
  std::vector<OpTime> ops(bool of_all = true) const;
  int64_t memory() const;  // bytes that a rank's plan needs
  bool has_stages() const;
  double step() const;           // seconds of a step, median of those without the watch, or else of all
  double watched_step() const;   // of those with the watch
  double before_second() const;  // seconds of a watched step outside the instructions after the first one, of rank 0

 private:
  class Rows;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

double median_of(std::vector<double> values);  // 0: none

}  // namespace st

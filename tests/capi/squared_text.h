// A text model with a square in the middle: by a host's op that a test can make fail, or by the library's mul, with equal bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "small_run.h"

namespace st::test {

/// `user` of the op: what its callbacks return after they have computed. Predictors call it on several threads at once.
struct HostSquare {
  std::function<st_status()> forward = [] { return st_status{ST_OK}; };
  std::function<st_status()> backward = [] { return st_status{ST_OK}; };
};

/// Inputs "tokens" and "targets", output "logits", context 8; batch 4, on a small text.
struct SquaredText {
  /// host NULL: mul. The host must outlive this.
  explicit SquaredText(HostSquare* host);

  /// The logits of one row as bits; `status` reports a failure.
  std::string answer(st_predictor* predictor, st_status* status = nullptr) const;
  st_status evaluate(double* loss) const;
  std::string digest() const;

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  HeldRecipe recipe;
  HeldData data;
  HeldTrainer trainer;
};

}  // namespace st::test

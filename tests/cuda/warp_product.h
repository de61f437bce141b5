// The arithmetic of a warp's product of fragments, compiled as the engine is: without sanitizers, and optimized in every build.
#pragma once

#include "gpu/tensor_core.h"
#include "grid_engine.h"

namespace st::simulated {

/// Adds the products to the sums of each of kLanes lanes.
void multiply_fragments(const Fragments* const* lanes);
/// From now on sums are cut as a model of a device cuts them, which lives on; null: rounded, as they are at first. Call it while no kernel
/// runs.
void cut_sums(const probe::Model* as);

/// Sums are cut while one lives, as an H100 cuts them unless another model is given.
struct CutSums {
  explicit CutSums(const probe::Model& as = probe::kTensorCore16) { cut_sums(&as); }
  ~CutSums() { cut_sums(nullptr); }
  CutSums(const CutSums&) = delete;
  CutSums& operator=(const CutSums&) = delete;
};

}  // namespace st::simulated

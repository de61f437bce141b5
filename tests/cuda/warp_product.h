// The arithmetic of a warp's product of fragments, compiled as the engine is: without sanitizers, and optimized in every build.
#pragma once

#include "grid_engine.h"

namespace st::simulated {

/// Adds the products to the sums of each of kLanes lanes.
void multiply_fragments(const Fragments* const* lanes);
/// From now on sums are cut as an H100 cuts them (tests/gpu/tensor_core.h), or rounded, as they are at first. Call it while no kernel runs.
void cut_sums(bool are_cut);

/// Sums are cut while one lives.
struct CutSums {
  CutSums() { cut_sums(true); }
  ~CutSums() { cut_sums(false); }
  CutSums(const CutSums&) = delete;
  CutSums& operator=(const CutSums&) = delete;
};

}  // namespace st::simulated

// First values of parameters, from (seed, name, element) alone: equal for every rank, shard, stage, thread and order of creation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/program.h"

namespace st {

/// Fills `values` with elements [first, first + values.size()) of parameter `name`, so that a shard is made without its neighbours.
/// Random numbers are Philox4x32-10 with key mix(seed, hash_name(name)):
///   normal    block e / 2 gives two doubles in (0, 1] and [0, 1); Box-Muller makes elements 2k (cos) and 2k + 1 (sin) of them; x scale
///   uniform   block e / 2 gives elements 2k and 2k + 1 of [-scale, scale)
///   xavier    uniform of half-width scale * sqrt(6 / (in + out))   (Glorot and Bengio 2010)
///   kaiming   normal of deviation scale / sqrt(in)                 (He et al. 2015)
/// Computed in double (box_muller.h: the same bits on every machine), rounded to f32 once. `shape` ends in [in, out]; dimensions before
/// these two count copies, each with that fan. Throws invalid_argument: a range outside the shape; xavier or kaiming of fewer than two
/// dimensions; `values` of another size.
void initialize(std::span<float> values, const Initializer& init, const Shape& shape, std::string_view name, uint64_t seed,
                int64_t first = 0);

/// All or a piece of a parameter's slot.
inline void initialize(std::span<float> values, const Slot& slot, uint64_t seed, int64_t first = 0) {
  initialize(values, slot.init, slot.type.shape, slot.name, seed, first);
}

}  // namespace st

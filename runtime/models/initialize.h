// Initial values of parameters. They depend on (seed, name, element) alone, not on rank, shard, stage, thread or order of creation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/program.h"

namespace st {

/// Fills `values` with elements [first, first + values.size()) of parameter `name`, so that a rank can fill its shard alone.
/// Random numbers are Philox4x32-10 with key mix(seed, hash_name(name)); block k makes elements 2k and 2k + 1:
///   normal    two doubles in (0, 1] and [0, 1), Box-Muller: 2k (cos) and 2k + 1 (sin), times scale
///   uniform   in [-scale, scale)
///   xavier    uniform of half-width scale * sqrt(6 / (in + out))   (Glorot and Bengio 2010)
///   kaiming   normal of deviation scale / sqrt(in)                 (He et al. 2015)
/// Computed in double (box_muller.h: the same bits on every machine) and rounded to f32 once. `shape` ends in [in, out]; each index of the
/// dimensions before them is a matrix with that fan. Throws invalid_argument: a range outside the shape; xavier or kaiming with fewer than
/// two dimensions; kind `values` with another number of values than the shape has elements.
void initialize(std::span<float> values, const Initializer& init, const Shape& shape, std::string_view name, uint64_t seed,
                int64_t first = 0);

/// The same for the whole or a shard of a parameter's slot.
inline void initialize(std::span<float> values, const Slot& slot, uint64_t seed, int64_t first = 0) {
  initialize(values, slot.init, slot.type.shape, slot.name, seed, first);
}

}  // namespace st

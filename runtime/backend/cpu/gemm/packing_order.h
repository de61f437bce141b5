// When a product packs B: in a pass of its own before the tiles, or on the way, in the tiles that read it first.
#pragma once

#include <cstdint>

namespace st::cpu {

/// On Zen 4 packing on the way is faster than a separate pass, on an Intel Xeon slower (tests/bench/README.md); rows that are not whole
/// cache lines gain nothing. For tests, SCALETRAIN_PACK_B=before or on_the_way forces the choice.
bool gains_on_the_way(int64_t row_bytes);

}  // namespace st::cpu

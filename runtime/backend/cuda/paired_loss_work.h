// How the losses over pairs cut their work.
#pragma once

#include <cstdint>

namespace st::cuda {

constexpr int kPairedBlock = 4096;  // elements of a block

constexpr int64_t paired_blocks(int64_t elements) { return (elements + kPairedBlock - 1) / kPairedBlock; }

}  // namespace st::cuda

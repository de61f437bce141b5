// Pieces of a tensor on the ranks of a group, read as parts of the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "comm/communicator.h"
#include "ir/parameter_piece.h"

namespace st {

/// Collective call. `whole`: elements from `begin` on of a tensor with elements of `width` bytes; those that are in `range` of rank `root`
/// are sent by it and written by the others. Nothing is sent if there are none.
void broadcast_range(Communicator& ranks, int32_t root, const PieceRange& range, int64_t begin, int64_t width, std::span<std::byte> whole,
                     std::string_view label);

}  // namespace st

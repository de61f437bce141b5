// Finds the parameters that a step reads only as their working copies.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace st {

/// How a working copy is made, as nodes of a forward section.
struct CopyMaker {
  int32_t section;
  int32_t load, cast, store;
  SlotId parameter, copy;
};
/// The makers of working copies, by section.
std::vector<CopyMaker> copy_makers(const Program& program);

/// By slot: whether it is a parameter that forward and backward read once, to make its working copy; on a stage, in the whole model: all
/// ranks have to know which parameters a stage keeps in shards.
std::vector<bool> copied_weights(const Program& program);

}  // namespace st

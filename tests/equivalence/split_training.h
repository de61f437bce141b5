// A small GPT on tensor ranks, with data ranks and stages.
#pragma once

#include <cstdint>
#include <string>

#include "rank_training.h"

namespace st {

struct Degrees {
  int64_t tensor = 1, data = 1, zero = 0, stages = 1;
  int64_t ranks() const { return tensor * data * stages; }
};

inline std::string text_of(const Degrees& d) {
  return text(d.tensor, " tensor, ", d.data, " data ranks, zero ", d.zero, ", ", d.stages, " stages");
}

/// Groups with an optimizer whose update is by elements, one by matrices and one by rows and columns.
constexpr const char* kThreeOptimizers =
    R"([{"pattern": "block.1.*", "optimizer": "muon"}, {"pattern": "block.2.*", "optimizer": "adafactor"}])";

inline Training split(const Case& c, const Degrees& d) {
  Training made = training_of(c, d.ranks());
  made.options = {.layers = 3, .width = 64, .heads = 4, .context = 8, .vocabulary = kVocabulary};
  made.recipe.tensor = d.tensor;
  made.recipe.zero = d.zero;
  made.recipe.stages = d.stages;
  return made;
}

}  // namespace st

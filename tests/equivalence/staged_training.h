// A small GPT of six layers in stages of a pipeline.
#pragma once

#include <cstdint>
#include <string>

#include "rank_training.h"

namespace st {

struct Topology {
  int64_t stages = 1, data = 1, zero = 0;
  const char* schedule = "1f1b";
};

inline std::string text_of(const Topology& t) {
  return text(t.schedule, " on ", t.stages, " stages and ", t.data, " data ranks, zero ", t.zero);
}

inline Training staged(const Case& c, const Topology& t) {
  Training made = training_of(c, t.stages * t.data);
  made.options.layers = 6;
  made.recipe.stages = t.stages;
  made.recipe.zero = t.zero;
  made.recipe.schedule = t.schedule;
  return made;
}

}  // namespace st

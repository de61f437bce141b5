// Changes of a recipe that make a step fit into memory, with what they save: each change is planned. The planner's advice also has their
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "recipe/recipe_changes.h"

namespace st {

struct MemoryFix {
  KeyChanges changes;
  int64_t bytes = 0;  // that the step then needs
  int64_t saved = 0;
  bool fits = false;
};

/// Changes that keep the mesh of ranks, for a step that needs `bytes` where `there` are available: the single ones that fit, those which
/// keep what a step computes first, at most `most`. If none of these fits: the combination that saves most at each change until it fits, or
/// the single change that saves most. `bytes_with` plans the step with another recipe; its errors of a recipe that this model, the device
/// or its host's memory does not allow leave that change out.
std::vector<MemoryFix> memory_fixes(const Recipe& recipe, int64_t bytes, int64_t there,
                                    const std::function<int64_t(const Recipe&)>& bytes_with, size_t most = 4);

/// " Changes that fit: recompute blocks: -1.20 GiB; zero 0 -> 1: -2.00 GiB. `scaletrain plan` ...", or which comes nearest; "": none helps.
std::string text_of(const std::vector<MemoryFix>& fixes, int64_t there);

}  // namespace st

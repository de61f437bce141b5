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

/// Changes that keep the mesh of ranks and the rows of a step, for a step that needs `bytes` where `there` are available: at most `most`
/// single ones that fit, those which keep what a step computes first. If none of these fits: the combination that saves most at each change
/// until it fits or nothing saves more. None are looked for if `bytes` is 64 times `there` or more. `bytes_with` plans the step with
/// another recipe; if it throws, that change is left out.
std::vector<MemoryFix> memory_fixes(const Recipe& recipe, int64_t bytes, int64_t there,
                                    const std::function<int64_t(const Recipe&)>& bytes_with, size_t most = 4);

/// ". Changes of the recipe that fit: recompute blocks: -1.20 GiB; zero 0 -> 1: -2.00 GiB. `scaletrain plan` ...", or the change that comes
/// nearest; "": none helps.
std::string text_of(const std::vector<MemoryFix>& fixes, int64_t there);

}  // namespace st

// Which scopes to recompute, in words.
#pragma once

#include <string_view>
#include <vector>

#include "ir/program.h"

namespace st {

/// Boundary scopes of the program, in the order of its regions:
///   none       no scope
///   blocks     the outermost ones, but for the one that makes the loss: its backward comes at once, so it would save nothing
///   attention  the innermost ones that hold an attention op
///   full       the outermost ones, all
///   else       those whose full name ("block.3.mlp") matches one of the patterns, divided by commas; * is any text, ? any character
/// Throws invalid_argument for a policy or pattern that there is no scope for, naming those that there are.
std::vector<RegionId> scopes_to_recompute(const Program& program, std::string_view policy);

/// Boundary scopes that are in none.
std::vector<RegionId> outermost_scopes(const Program& program);
/// Boundary scopes in `scope`, and in none between.
std::vector<RegionId> scopes_directly_in(const Program& program, RegionId scope);

}  // namespace st

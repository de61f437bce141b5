// Parses which scopes to recompute.
#pragma once

#include <string_view>
#include <vector>

#include "ir/program.h"

namespace st {

/// Boundary scopes of the program, in the order of its regions:
///   none       no scope
///   blocks     the outermost ones, except the one that makes the loss: its backward follows immediately, so it would save nothing
///   attention  the innermost ones that contain an attention op
///   full       all outermost ones
///   else       those whose full name ("block.3.mlp") matches one of the patterns, separated by commas; * matches any text, ? any character
/// Throws invalid_argument for a policy or pattern that selects no scope; lists the scopes.
std::vector<RegionId> scopes_to_recompute(const Program& program, std::string_view policy);

/// Boundary scopes without an enclosing one.
std::vector<RegionId> outermost_scopes(const Program& program);
/// Boundary scopes whose nearest enclosing one is `scope`.
std::vector<RegionId> scopes_directly_in(const Program& program, RegionId scope);

}  // namespace st

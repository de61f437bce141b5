// Finds scopes by the name patterns of a recipe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace st {

enum class ScopeKind { any, boundary };

/// Scopes whose full name ("block.3.mlp") matches one of `patterns`, separated by commas (spaces around them are ignored), in the order of
/// the program's regions; * matches any text, ? any character. Throws invalid_argument for a pattern that matches no scope: begins with
/// `who`, suggests the nearest scope, lists the scopes, and adds `instead`, the alternatives to a pattern.
std::vector<RegionId> scopes_matching(const Program& program, std::string_view patterns, ScopeKind kind, std::string_view who,
                                      std::string_view instead = "");

/// Names of the scopes of that kind for a message: the first twenty and the number of others.
std::string names_of_scopes(const Program& program, ScopeKind kind);

}  // namespace st

// Scopes by name, as a recipe asks for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace st {

enum class ScopeKind { any, boundary };

/// Scopes whose full name ("block.3.mlp") matches one of `patterns`, divided by commas (spaces around them count for nothing), in the order
/// of the program's regions; * is any text, ? any character. Throws invalid_argument for a pattern that no scope matches, beginning with
/// `who` and naming the nearest scope, those that there are, and `instead`, what else the text may say.
std::vector<RegionId> scopes_matching(const Program& program, std::string_view patterns, ScopeKind kind, std::string_view who,
                                      std::string_view instead = "");

/// The scopes of that kind by name, for a message: the first twenty, and how many more.
std::string names_of_scopes(const Program& program, ScopeKind kind);

}  // namespace st

// The verifier, which runs after the passes. Throws Error{internal} with the pass's name, the node's text and the violated rule.
#pragma once

#include <string_view>

#include "ir/program.h"

namespace st {

/// Checks:
/// - edges point backwards within a section; types and layouts are those that the rules infer
/// - slots exist and are read and written with their own types
/// - roles: only update sections write parameters; a stash is stored once, before it is loaded; a gradient's first write is a store, not an
///   accumulate
/// - names are unique; the loss is a floating scalar
void verify(const Program& program, std::string_view after);

/// Checks only the ids of values, regions and slots that nodes, slots and outputs name, and how many slots a node names. Ids in attributes
/// are verify()'s. Takes a small part of its time.
void verify_ids(const Program& program, std::string_view after);

}  // namespace st

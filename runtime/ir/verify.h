// The verifier: runs after every pass. Throws Error{internal} with the pass's name, the node's text and what is wrong with it.
#pragma once

#include <string_view>

#include "ir/program.h"

namespace st {

/// Edges point backwards within a section; types and layouts are what the rules infer; slots exist and are read and written with their
/// own types; roles are respected (parameters are written by update sections only; a stash is stored once and before it is loaded; a
/// gradient's first write is a store, not an accumulate); names are unique; the loss is a floating scalar.
void verify(const Program& program, std::string_view after);

}  // namespace st

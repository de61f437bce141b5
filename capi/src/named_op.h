// Resolves an op's name in a host's graph: a row of ops.def that models may use, or an op that st_op_register added to the context.
#pragma once

#include "ir/op.h"
#include "parts/context.h"

namespace st::capi {

struct NamedOp {
  Op op{};
  Attrs attrs;
};

/// The result is ready for Builder::append. Throws not_found with the nearest name of either kind; invalid_argument for an op that only the
/// runtime uses, or for attributes of a host's op.
NamedOp named_op(const Context& context, const std::string& name, const Attrs& given);

}  // namespace st::capi

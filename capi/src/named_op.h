// What a host's graph means by an op's name: a row of ops.def that models may use, or an op that st_op_register added to its context.
#pragma once

#include "ir/op.h"
#include "train/context.h"

namespace st::capi {

struct NamedOp {
  Op op{};
  Attrs attrs;
};

/// Ready for Builder::append. Throws not_found, naming the nearest of both kinds; invalid_argument for an op of the runtime's own, or for
/// attributes of a host's op.
NamedOp named_op(const Context& context, const std::string& name, const Attrs& given);

}  // namespace st::capi

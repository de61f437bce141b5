#include "backend/cuda/index_faults.h"

#include "backend/index_check.h"
#include "base/error.h"

namespace st::cuda {

const Operand& indices_of(Op op, const Call& /*call*/) { fail(Code::internal, text("cuda: ", name_of(op), " reads no indices")); }

void fail_at_index(Op op, const Call& call, int64_t value, int64_t element) {
  const Operand& indices = indices_of(op, call);
  fail(Code::internal, text("cuda: ", name_of(op), " reported index ", value, " at element ", element, " of ", indices.shape));
}

}  // namespace st::cuda

// Loads tensors of a checkpoint into device memory, all of them or none.
#pragma once

#include <span>

#include "base/workers.h"
#include "checkpoint/checkpoint_reader.h"
#include "comm/rank_texts.h"
#include "exec/cancel_token.h"
#include "parts/context.h"

namespace st {

struct TensorTarget {
  const LogicalTensor* from = nullptr;
  int64_t first = 0, elements = 0;  // range of its elements, row-major
  Address to;                       // device memory for that many
  DType dtype = DType::f32;         // of `to`; if it differs from the tensor's, both are floating and elements are converted
  bool is_zero = false;             // `to` is all zero now, so undoing the load needs no copy
  bool may_hold_nan = true;         // false: the load throws not_finite with the tensor and its first NaN
};

/// Nobody may read the targets during the load. After an error, including a cancel (`cancelled` may be null; the reader's counts too) and
/// lack of memory, they are unchanged: restored from copies or, without memory for copies, because all blocks were verified before the
/// first was written. Exception: `has_torn_state` is set if a file could be verified but not read again. `meet` (empty unless processes
/// load together) is called once, while the load can still be undone.
void load_tensors(const CheckpointReader& reader, std::span<const TensorTarget> targets, Context& context, Workers& workers,
                  const CancelToken* cancelled, bool& has_torn_state, const MeetOthers& meet = {});

}  // namespace st

// Tensors of a checkpoint into device memory, all of them or none.
#pragma once

#include <span>

#include "base/workers.h"
#include "checkpoint/checkpoint_reader.h"
#include "exec/cancel_token.h"
#include "train/context.h"
#include "train/rank_texts.h"

namespace st {

struct TensorTarget {
  const LogicalTensor* from = nullptr;
  int64_t first = 0, elements = 0;  // which of its elements, row-major
  std::byte* to = nullptr;          // device memory of so many
  DType dtype = DType::f32;         // there; where it is not the tensor's both are floating, and elements are converted
  bool is_zero = false;             // all of it is zero now: nothing need be kept to undo the load
  bool may_hold_nan = true;         // else the load throws not_finite with the tensor and its first such element
};

/// Whoever reads them sees a mixture while it runs, so nobody may. After an error, also a cancel (may be null; the reader's counts too) or
/// too little memory, each is what it was: from copies, or, where there is no room for these, since all blocks are verified before the
/// first is read. `is_mixed` is set for the one case that is left: a file that could be read then and a moment later could not. `meet` (of
/// processes that load together; else empty) is called once, where there still is a way back.
void load_tensors(const CheckpointReader& reader, std::span<const TensorTarget> targets, Context& context, Workers& workers,
                  const CancelToken* cancelled, bool& is_mixed, const MeetOthers& meet = {});

}  // namespace st

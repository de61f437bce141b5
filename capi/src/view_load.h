// A checkpoint's tensors into a host's views: which goes where, and their bytes.
#pragma once

#include <span>

#include "base/workers.h"
#include "checkpoint/checkpoint_reader.h"
#include "load_report.h"
#include "train/host_view.h"
#include "train/weights_match.h"

namespace st::capi {

/// What a load may do to the views before it has seen all of the data.
enum class Views { unchanged_on_error, overwritten };

/// Fills the report's names, also when names do not fit: not_found for a view that the checkpoint does not have, invalid_argument for a
/// tensor without a view (not with partial), for another shape or dtype. Then checks every byte that is needed, corrupt, and only after
/// that (or, for views that may be overwritten, on the way) writes them, which share no memory, from byte to byte or converted between
/// floating dtypes.
void load_views(const CheckpointReader& checkpoint, std::span<const HostView> views, const ReadOptions& options, Views may_be,
                Workers& workers, LoadReport& report);

}  // namespace st::capi

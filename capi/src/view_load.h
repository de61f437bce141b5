// Loads a checkpoint's tensors into a host's views: matches names, then reads the bytes.
#pragma once

#include <span>

#include "base/host_view.h"
#include "base/workers.h"
#include "checkpoint/checkpoint_reader.h"
#include "load_report.h"
#include "model/weights_match.h"

namespace st::capi {

/// Permission of a load to change the views before it has verified all data.
enum class Views { unchanged_on_error, overwritten };

/// Fills the report's names, also if they do not fit. Throws:
/// - invalid_argument for a view that the checkpoint does not have, a tensor without a view (both unless partial), and a different shape or
///   dtype; not not_found, which says that there is no checkpoint,
/// - corrupt if a needed byte is damaged.
/// Checks every needed byte before it writes the views (views that may be overwritten: while it writes). Views share no memory. Copies
/// bytes, or converts between floating dtypes.
void load_views(const CheckpointReader& checkpoint, std::span<const HostView> views, const ReadOptions& options, Views may_be,
                Workers& workers, LoadReport& report);

}  // namespace st::capi

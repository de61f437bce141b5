// The host's arrays for outputs of a model, checked before a pass computes what fills them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_view.h"
#include "ir/program.h"

namespace st {

/// The view with this name; null: none.
const HostView* view_named(std::span<const HostView> views, std::string_view name);
/// Throws not_found, which suggests the nearest of the known names. `what` begins the message: "predict: the model has no
/// input".
[[noreturn]] void refuse_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);
/// Throws invalid_argument for a name that is given twice. `what` begins the message: "predict: output".
void require_distinct(std::string_view what, std::span<const HostView> views);

/// Checks that each view is of one of the model's outputs, that none is given twice, and that no two share memory. Throws not_found,
/// invalid_argument; `call` begins the message.
void check_outputs(std::string_view call, const Program& model, std::span<const HostView> outputs);

/// Throws invalid_argument for an output that shares memory with a view of the batch, of any strides.
void require_apart_from(std::string_view call, std::span<const HostView> batch, std::span<const HostView> outputs);

}  // namespace st

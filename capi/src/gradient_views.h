// The host's gradient arrays, checked before a call changes them in place.
#pragma once

#include <scaletrain/view.h>

#include <span>
#include <string>
#include <vector>

#include "base/host_view.h"

namespace st::capi {

constexpr int64_t kMaxGradients = 1 << 20;

void check_gradient_count(int64_t n, const st_view* gradients, const char* call);

/// The lists are kept between calls, so that a step allocates nothing.
class GradientViews {
 public:
  /// Each is a written_view(), aligned to its elements; no two share memory. `call` prefixes messages.
  std::span<const HostView> take(int64_t n, const st_view* gradients, const char* call);

 private:
  std::vector<std::string> names_;  // "gradient 3"
  std::vector<HostView> views_, by_address_;
};

}  // namespace st::capi

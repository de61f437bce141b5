// A host's gradients, as calls take them that work in place: looked at before they are believed.
#pragma once

#include <scaletrain/view.h>

#include <span>
#include <string>
#include <vector>

#include "train/host_view.h"

namespace st::capi {

constexpr int64_t kMaxGradients = 1 << 20;

void check_gradient_count(int64_t n, const st_view* gradients, const char* call);

/// Lists that are kept between calls, so that a step allocates nothing.
class GradientViews {
 public:
  /// Each written_view(), aligned to its elements, and none sharing memory with another. `call` goes before messages.
  std::span<const HostView> take(int64_t n, const st_view* gradients, const char* call);

 private:
  std::vector<std::string> names_;  // "gradient 3"
  std::vector<HostView> views_, by_address_;
};

}  // namespace st::capi

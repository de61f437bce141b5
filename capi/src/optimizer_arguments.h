// A host's arguments of both optimizers, checked before use, and their results.
#pragma once

#include <scaletrain/optimizer.h>

#include <span>
#include <string>
#include <vector>

#include "parts/host_optimizer.h"

namespace st::capi {

/// Names of the parameters; views point to them.
std::vector<std::string> names_of_parameters(int64_t n, const st_named_view* parameters, const char* call);
std::vector<HostView> views_of_parameters(const std::vector<std::string>& names, const st_named_view* parameters, const char* call);

/// The gradient of each parameter, in a list that is kept between calls, so that a step allocates nothing.
void take_gradients(std::vector<HostView>& views, const HostOptimizer& optimizer, int64_t n, const st_view* gradients, const char* call);

/// The copies of each parameter; empty if the host wants none any more.
std::vector<HostView> copies_of(const HostOptimizer& optimizer, int64_t n, const st_view* copies, const char* call);

st_optimizer_report report_of(const HostOptimizer::Report& report);

/// The state as the host sees it.
struct StateViews {
  void list(std::span<const HostView> state);

  std::vector<std::vector<int64_t>> dims;
  std::vector<st_named_view> views;
};

}  // namespace st::capi

// What both optimizers are given by the host, looked at before it is believed, and what they give out.
#pragma once

#include <scaletrain/optimizer.h>

#include <span>
#include <string>
#include <vector>

#include "train/host_optimizer.h"

namespace st::capi {

/// Names of parameters: views point at them.
std::vector<std::string> names_of_parameters(int64_t n, const st_named_view* parameters, const char* call);
std::vector<HostView> views_of_parameters(const std::vector<std::string>& names, const st_named_view* parameters, const char* call);

/// The gradient of each parameter, into a list that is kept between calls, so that a step allocates nothing.
void take_gradients(std::vector<HostView>& views, const HostOptimizer& optimizer, int64_t n, const st_view* gradients, const char* call);

/// The copies of each parameter; no more of them: none.
std::vector<HostView> copies_of(const HostOptimizer& optimizer, int64_t n, const st_view* copies, const char* call);

st_optimizer_report report_of(const HostOptimizer::Report& report);

/// State as the host sees it.
struct StateViews {
  void list(std::span<const HostView> state);

  std::vector<std::vector<int64_t>> dims;
  std::vector<st_named_view> views;
};

}  // namespace st::capi

#include "optimizer_arguments.h"

#include "base/error.h"
#include "gradient_views.h"
#include "guard.h"
#include "views.h"

namespace st::capi {

std::vector<std::string> names_of_parameters(int64_t n, const st_named_view* parameters, const char* call) {
  check(n >= 1 && n <= kMaxGradients, call, ": n is ", n, "; it must be 1 to ", kMaxGradients);
  check(parameters != nullptr, call, ": parameters is NULL");
  std::vector<std::string> names;
  for (int64_t i = 0; i < n; ++i) names.push_back(parameters[i].name == nullptr ? text("param_", i) : parameters[i].name);
  return names;
}

std::vector<HostView> views_of_parameters(const std::vector<std::string>& names, const st_named_view* parameters, const char* call) {
  std::vector<HostView> views;
  for (size_t i = 0; i < names.size(); ++i) views.push_back(written_view(names[i], &parameters[i].view, call));
  return views;
}

void take_gradients(std::vector<HostView>& views, const HostOptimizer& optimizer, int64_t n, const st_view* gradients, const char* call) {
  check_gradient_count(n, gradients, call);
  const auto expected = static_cast<int64_t>(optimizer.size());
  check(n == expected, call, ": n is ", n, ", but there are ", expected, " parameters; give one gradient for each, in their order");
  views.resize(optimizer.size());
  for (size_t i = 0; i < views.size(); ++i)
    if (optimizer.is_trained(i)) views[i] = read_view(optimizer.gradient_name(i), &gradients[i], call);
}

std::vector<HostView> copies_of(const HostOptimizer& optimizer, int64_t n, const st_view* copies, const char* call) {
  const auto expected = static_cast<int64_t>(optimizer.size());
  check(n == 0 || n == expected, call, ": n is ", n, ", but there are ", expected,
        " parameters; give one copy for each, in their order, or n = 0 for no copies");
  check(n == 0 || copies != nullptr, call, ": copies is NULL");
  std::vector<HostView> views(static_cast<size_t>(n));
  for (size_t i = 0; i < views.size(); ++i)
    if (copies[i].data != nullptr) views[i] = written_view(optimizer.copy_name(i), &copies[i], call);
  return views;
}

st_optimizer_report report_of(const HostOptimizer::Report& report) {
  st_optimizer_report ours{};
  ours.skipped = report.skipped ? 1 : 0;
  ours.step = report.step;
  ours.lr = report.lr;
  ours.norm = report.norm;
  return ours;
}

void StateViews::list(std::span<const HostView> state) {
  dims.clear();
  views.clear();
  for (const HostView& view : state) dims.emplace_back(view.shape.begin(), view.shape.end());
  for (size_t i = 0; i < state.size(); ++i)
    views.push_back(
        {state[i].name.data(),
         {static_cast<st_dtype>(state[i].dtype), state[i].shape.rank(), dims[i].data(), nullptr, state[i].data, state[i].bytes(), 0, 0}});
}

}  // namespace st::capi

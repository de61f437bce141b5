// Optimizers and clipping without a trainer, over the program's own parameters and gradients.
#pragma once

#include <scaletrain/clip.h>
#include <scaletrain/optimizer.h>

#include <scaletrain/context.hpp>
#include <scaletrain/loss_scaler.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain {

namespace detail {

inline std::vector<st_view> raw_views(const std::vector<View>& views) {
  std::vector<st_view> raw;
  raw.reserve(views.size());
  for (const View& view : views) raw.push_back(view.raw());
  return raw;
}

}  // namespace detail

/// Returns the norm of all gradients together before clipping; if it is above `max` they are scaled down to it in place. max 0: they are
/// only read. If the norm is not finite, they do not change.
inline double clip_norm(const Context& context, const std::vector<View>& gradients, double max) {
  for (const View& gradient : gradients)
    if (max != 0) detail::writable("clip_norm", gradient);
  const std::vector<st_view> raw = detail::raw_views(gradients);
  double norm = 0;
  detail::conclude(st_clip_norm(context.get(), static_cast<int64_t>(raw.size()), raw.data(), max, &norm),
                   detail::Access::host(context).get(), nullptr);
  return norm;
}

struct OptimizerReport {
  bool skipped = false;  // a gradient was not finite: nothing has changed
  int64_t step = 0;      // updates so far
  double lr = 0, norm = 0;
};

/// Borrows the parameters until it is closed.
class Optimizer : public detail::Handle<st_optimizer, st_optimizer_destroy> {
 public:
  /// json: {"optimizer": "adamw", "lr": 1e-3, "clip": 1, "groups": [...]}
  Optimizer(const Context& context, const std::string& json, const Views& parameters) : Handle(detail::Access::host(context)) {
    for (const NamedView& parameter : parameters) detail::writable("Optimizer", parameter.view);
    done(st_optimizer_create(context.get(), json.c_str(), parameters.size(), parameters.raw(), out()));
  }

  /// Gradients in the order of the parameters.
  OptimizerReport step(const std::vector<View>& gradients) const {
    const std::vector<st_view> raw = detail::raw_views(gradients);
    st_optimizer_report report = fresh();
    done(st_optimizer_step(get(), static_cast<int64_t>(raw.size()), raw.data(), &report));
    return {report.skipped != 0, report.step, report.lr, report.norm};
  }
  /// unscale() and step() of the scaler, and this step, in one call on the scaled gradients, which do not change. Call the scaler's
  /// update() next.
  OptimizerReport step(const LossScaler& scaler, const std::vector<View>& gradients) const {
    const std::vector<st_view> raw = detail::raw_views(gradients);
    st_optimizer_report report = fresh();
    done(st_optimizer_step_scaled(get(), scaler.get(), static_cast<int64_t>(raw.size()), raw.data(), &report));
    return {report.skipped != 0, report.step, report.lr, report.norm};
  }
  /// The 16-bit weights whose masters the f32 parameters are: written now and by every step. One for each parameter in order, View() for
  /// none; {}: no more copies. Borrowed until the next call, or until it is closed.
  void keep_copies(const std::vector<View>& copies) const {
    for (const View& copy : copies) detail::writable("Optimizer::keep_copies", copy);
    const std::vector<st_view> raw = detail::raw_views(copies);
    done(st_optimizer_keep_copies(get(), static_cast<int64_t>(raw.size()), raw.data()));
  }
  void set(const std::string& key, const std::string& json) const { done(st_optimizer_set(get(), key.c_str(), json.c_str())); }
  /// The optimizer's own memory, for a checkpoint. Write a saved state into it to resume.
  Views state() const {
    int64_t n = 0;
    const st_named_view* views = nullptr;
    done(st_optimizer_state_views(get(), &n, &views));
    return Views(n, views);
  }

 private:
  static st_optimizer_report fresh() {
    st_optimizer_report report;
    check(st_optimizer_report_init(&report, sizeof report));
    return report;
  }
};

}  // namespace scaletrain

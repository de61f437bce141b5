// A sharded optimizer: each rank keeps the state of its shards of the parameters, and updates these (ZeRO, stages 1 and 2).
#pragma once

#include <scaletrain/sharded_optimizer.h>

#include <scaletrain/communicator.hpp>
#include <scaletrain/optimizer.hpp>
#include <string>
#include <vector>

namespace scaletrain {

struct ShardedOptimizerOptions {
  int32_t stage = 1;                // 2: the sums of gradients are sharded too, in the optimizer's own memory
  ReduceOp op = ReduceOp::mean;     // or sum
  int64_t bucket_bytes = 26214400;  // exchanged together; changes the speed, but no bit
  bool shard_masters = false;       // a step gathers 16-bit copies instead of their masters, which gather_state() makes whole
};

/// Borrows the parameters until it is closed. All ranks make its calls, in the same order.
class ShardedOptimizer : public detail::Handle<st_sharded_optimizer, st_sharded_optimizer_destroy> {
 public:
  /// json and parameters as for Optimizer, the same on all ranks, with the same values.
  ShardedOptimizer(const Communicator& communicator, const std::string& json, const Views& parameters,
                   const ShardedOptimizerOptions& options = ShardedOptimizerOptions())
      : Handle(detail::Access::host(communicator)), writes_gradients_(options.stage == 1) {
    for (const NamedView& parameter : parameters) detail::writable("ShardedOptimizer", parameter.view);
    st_sharded_optimizer_options raw;
    check(st_sharded_optimizer_options_init(&raw, sizeof raw));
    raw.stage = options.stage;
    raw.op = static_cast<st_reduce_op>(options.op);
    raw.bucket_bytes = options.bucket_bytes;
    raw.shard_masters = options.shard_masters ? 1 : 0;
    done(st_sharded_optimizer_create(communicator.get(), json.c_str(), parameters.size(), parameters.raw(), &raw, out()));
  }

  /// Stage 2: backward has made gradient i, which is copied. Given again before the step, it is another micro-batch's.
  void gradient_ready(int64_t i, const View& gradient) const {
    const st_view raw = gradient.raw();
    done(st_sharded_optimizer_gradient_ready(get(), i, &raw));
  }
  /// This rank's gradients in the order of the parameters; stage 1 writes them. Stage 2 with {}: those that were given before.
  OptimizerReport step(const std::vector<View>& gradients) const {
    const std::vector<st_view> raw = gradients_of(gradients);
    st_optimizer_report report = fresh();
    done(st_sharded_optimizer_step(get(), static_cast<int64_t>(raw.size()), raw.data(), &report));
    return {report.skipped != 0, report.step, report.lr, report.norm};
  }
  /// unscale() and step() of the scaler, and this step, in one call. Call the scaler's update() next.
  OptimizerReport step(const LossScaler& scaler, const std::vector<View>& gradients) const {
    const std::vector<st_view> raw = gradients_of(gradients);
    st_optimizer_report report = fresh();
    done(st_sharded_optimizer_step_scaled(get(), scaler.get(), static_cast<int64_t>(raw.size()), raw.data(), &report));
    return {report.skipped != 0, report.step, report.lr, report.norm};
  }
  /// As Optimizer's; a step gathers the copies too.
  void keep_copies(const std::vector<View>& copies) const {
    for (const View& copy : copies) detail::writable("ShardedOptimizer::keep_copies", copy);
    const std::vector<st_view> raw = detail::raw_views(copies);
    done(st_sharded_optimizer_keep_copies(get(), static_cast<int64_t>(raw.size()), raw.data()));
  }
  void set(const std::string& key, const std::string& json) const { done(st_sharded_optimizer_set(get(), key.c_str(), json.c_str())); }
  /// The state of all ranks, on rank `rank` or on all (-1), valid until the next call; on other ranks empty.
  Views gather_state(int32_t rank) const {
    int64_t n = 0;
    const st_named_view* views = nullptr;
    done(st_sharded_optimizer_gather_state(get(), rank, &n, &views));
    return Views(n, views);
  }
  /// Continues from a state of any number of ranks, or of an Optimizer; all ranks call it.
  void load_state(const Views& state) const { done(st_sharded_optimizer_load_state(get(), state.size(), state.raw())); }

 private:
  std::vector<st_view> gradients_of(const std::vector<View>& gradients) const {
    for (const View& gradient : gradients)
      if (writes_gradients_) detail::writable("ShardedOptimizer::step", gradient);
    return detail::raw_views(gradients);
  }
  static st_optimizer_report fresh() {
    st_optimizer_report report;
    check(st_optimizer_report_init(&report, sizeof report));
    return report;
  }

  bool writes_gradients_ = true;
};

}  // namespace scaletrain

// Median and spread of measurements, and a check that ends the program when a call of the C ABI fails.
#pragma once

#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace bench {

/// 0 <= share <= 1: the sample at that quantile (nearest rank). At least one sample.
inline double quantile(std::vector<double> samples, double share) {
  std::ranges::sort(samples);
  return samples[static_cast<size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
}

inline double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }

/// Ends the program with the reason if a call has failed.
inline void hold(st_status status) {
  if (status == ST_OK) return;
  std::fprintf(stderr, "%s\n", st_last_error());
  std::exit(1);
}

/// A trainer through the C ABI with its own model and the batch for its steps: borrowed views.
class AbiTrainer {
 public:
  AbiTrainer(st_context* context, const char* name, const char* model, const char* recipe, std::vector<st_named_view> batch)
      : batch_(std::move(batch)) {
    hold(st_model_builtin(context, name, model, 1, &model_));
    hold(st_recipe_create(recipe, &recipe_));
    hold(st_trainer_create(model_, recipe_, nullptr, &trainer_));
    hold(st_step_report_init(&report_, sizeof report_));
  }
  ~AbiTrainer() {
    st_trainer_destroy(trainer_);
    st_recipe_destroy(recipe_);
    st_model_destroy(model_);
  }
  AbiTrainer(const AbiTrainer&) = delete;
  AbiTrainer& operator=(const AbiTrainer&) = delete;

  void step() { hold(st_trainer_step(trainer_, static_cast<int64_t>(batch_.size()), batch_.data(), &report_)); }
  double loss() const { return report_.loss; }

 private:
  st_model* model_ = nullptr;
  st_recipe* recipe_ = nullptr;
  st_trainer* trainer_ = nullptr;
  st_step_report report_;
  std::vector<st_named_view> batch_;
};

}  // namespace bench

// A schedule without a trainer: the learning rate as a function of successful steps.
#pragma once

#include <scaletrain/schedule.h>

#include <scaletrain/handle.hpp>
#include <string>

namespace scaletrain {

class Schedule : public detail::Handle<st_schedule, st_schedule_destroy> {
 public:
  /// json: {"schedule": "cosine", "lr": 1e-3, "warmup": 20, "lr_steps": 1000}; keys, formulas and defaults are in schedule.h.
  explicit Schedule(const std::string& json) { done(st_schedule_create(json.c_str(), out())); }

  /// The rate of the step after `step` successful ones, from 0 on.
  double at(int64_t step) const {
    double lr = 0;
    done(st_schedule_at(get(), step, &lr));
    return lr;
  }
};

}  // namespace scaletrain

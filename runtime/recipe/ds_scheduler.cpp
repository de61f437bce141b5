#include "recipe/ds_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace st {
namespace {

constexpr int64_t kMostEntries = 100'000;  // of a table: two megabytes of recipe
constexpr int64_t kMostSteps = int64_t{1} << 40;

enum class Curve : uint8_t { warm_up, decay, cosine };

struct Warmup {
  Curve curve = Curve::warm_up;
  double low = 0, high = 0;  // learning rates
  double floor = 0;          // of the cosine, a share of high
  int64_t warmup = 1000, total = 0;
  bool is_linear = false;

  /// After `step` calls of DeepSpeed's scheduler, from -1 on: lr_schedules.py.
  double at(int64_t step) const {
    if (step < 0) return curve == Curve::cosine ? 0 : low;
    const auto count = static_cast<double>(step), rise = static_cast<double>(warmup), fall = static_cast<double>(total - warmup);
    if (step < warmup) return low + (high - low) * (is_linear ? count / rise : std::log(count + 1) / std::log(rise));
    if (curve == Curve::warm_up) return high;
    if (curve == Curve::decay) return low + (high - low) * std::max(0.0, (fall - (count - rise)) / std::max(1.0, fall));
    const double progress = std::min(1.0, (count - rise + 1) / std::max(1.0, fall));
    return high * (floor + (1 - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2);
  }

  /// The first of DeepSpeed's steps from which on nothing changes.
  int64_t end() const { return curve == Curve::warm_up ? warmup : std::max(total, warmup); }
};

/// The optimizer's step k runs at what the scheduler said after k - 1 of its own.
std::string table_of(const Warmup& schedule) {
  std::string table;
  for (int64_t k = 0; k <= schedule.end() + 1; ++k) table += text(k == 0 ? "" : " ", k, ":", json_of(schedule.at(k - 1)));
  return table;
}

Curve curve_named(const std::string& type) {
  if (type == "WarmupLR") return Curve::warm_up;
  if (type == "WarmupDecayLR") return Curve::decay;
  if (type == "WarmupCosineLR") return Curve::cosine;
  const std::vector<std::string> known = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
  if (type == "OneCycle")
    fail(Code::unsupported,
         "ds_config: scheduler.type OneCycle also cycles the momentum, which is not supported; use lr_schedule one_cycle "
         "(PyTorch's OneCycleLR) and leave the scheduler out");
  if (type == "LRRangeTest")
    fail(Code::unsupported,
         "ds_config: scheduler.type LRRangeTest is not supported; use lr_schedule table, \"0:1e-5 100:2e-5 ...\", and leave "
         "the scheduler out");
  refuse_ds_type("scheduler", type, nearest(type, known), "WarmupLR, WarmupDecayLR or WarmupCosineLR");
}

}  // namespace

void read_ds_scheduler(DsSection& file, double lr, DsRecipe& recipe) {
  DsSection scheduler = file.section("scheduler");
  if (!scheduler.is_there()) return;
  const auto type = scheduler.word("type");
  ds_check(type.has_value(), {"scheduler.type is missing; give WarmupLR, WarmupDecayLR or WarmupCosineLR"});
  Warmup schedule{.curve = curve_named(*type), .high = lr};
  DsSection params = scheduler.section("params");
  scheduler.finish();
  const bool has_length = schedule.curve != Curve::warm_up;
  const bool is_of_run = params.is_auto("warmup_num_steps") || params.is_auto("total_num_steps") || params.is_auto("warmup_max_lr");
  if (schedule.curve == Curve::cosine) {
    schedule.low = lr * params.number("warmup_min_ratio").value_or(0);
    schedule.floor = params.number("cos_min_ratio").value_or(1e-4);
  } else {
    schedule.low = params.number("warmup_min_lr").value_or(0);
    const auto high = params.number("warmup_max_lr");
    if (is_of_run && high) recipe.set("lr", json_of(*high));
    // DeepSpeed's WarmupLR takes the optimizer's where there is none, its WarmupDecayLR 1e-3.
    schedule.high = high.value_or(schedule.curve == Curve::warm_up ? lr : 1e-3);
    ds_check(schedule.low <= schedule.high,
             {params.name_of("warmup_min_lr"), " ", schedule.low, " must not be above warmup_max_lr ", schedule.high});
  }
  schedule.warmup = std::max<int64_t>(2, params.whole("warmup_num_steps", 1, kMostSteps).value_or(1000));
  schedule.total = has_length ? params.whole("total_num_steps", 1, kMostSteps).value_or(0) : 0;  // 0: not given
  const std::string rise = params.word("warmup_type").value_or("log");
  ds_check(rise == "log" || rise == "linear", {params.name_of("warmup_type"), " must be log or linear, got \"", rise, "\""});
  schedule.is_linear = rise == "linear";
  if (const auto last = params.whole("last_batch_iteration", -1, kMostSteps))
    ds_require(*last == -1, {params.name_of("last_batch_iteration"), " is ", *last, ", but a run starts at its first step; leave it out"});
  params.finish();

  if (is_of_run) {
    const char* ours = schedule.curve == Curve::warm_up ? "constant" : schedule.curve == Curve::decay ? "linear" : "cosine";
    recipe.set("lr_schedule", text("\"", ours, "\""));
    if (!params.is_auto("warmup_num_steps")) recipe.set("warmup", std::to_string(schedule.warmup));
    if (schedule.total > 0) recipe.set("lr_steps", std::to_string(schedule.total));
    recipe.notes.push_back(text("scheduler ", *type, " with \"auto\" is read as lr_schedule ", ours));
    return;
  }
  ds_check(!has_length || schedule.total > 0, {"scheduler ", *type, " needs ", params.name_of("total_num_steps"),
                                               "; give the run's steps, or \"auto\" for those of the command line"});
  ds_check(!has_length || schedule.total >= schedule.warmup, {params.name_of("total_num_steps"), " ", schedule.total,
                                                              " is less than warmup_num_steps ", schedule.warmup, "; make it longer"});
  ds_require(schedule.end() < kMostEntries, {"scheduler ", *type, " has ", schedule.end(), " steps, but is read as a table of at most ",
                                             kMostEntries, "; leave it out and use lr_schedule linear or cosine"});
  recipe.set("lr_schedule", "\"table\"");
  recipe.set("lr_table", text("\"", table_of(schedule), "\""));
  recipe.set("warmup", "0");
}

}  // namespace st

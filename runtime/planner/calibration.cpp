#include "planner/calibration.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>

#include "backend/needs.h"
#include "base/error.h"
#include "base/os/cpu.h"
#include "base/os/machine.h"
#include "planner/rate_fit.h"

namespace st {
namespace {

constexpr int32_t kRanksOfCalibration = 8;
constexpr int64_t kStaysInCache = 32 << 20;  // bytes of a plan of which a last-level cache keeps most from step to step

struct Gpt {
  int64_t width, layers, context, vocabulary, batch;
};

std::string gpt_json(const Gpt& gpt) {
  return text(R"({"width":)", gpt.width, R"(,"heads":)", gpt.width / 64, R"(,"layers":)", gpt.layers, R"(,"context":)", gpt.context,
              R"(,"vocabulary":)", gpt.vocabulary, "}");
}

/// All choices of a setting, each with its keys.
class Choices {
 public:
  Choices(int32_t threads, int32_t ranks) : threads_(threads), ranks_(ranks) {}

  StepChoice& add(const char* model, std::string options, int64_t batch) {
    StepChoice& choice = all_.emplace_back(StepChoice{model, std::move(options), {}});
    choice.recipe.batch = batch;
    choice.recipe.threads = threads_;
    choice.recipe.ranks = ranks_;
    // In turn, so that each collective is measured on several sizes; with one rank there are none.
    if (ranks_ > 1) choice.recipe.zero = static_cast<int64_t>(all_.size()) % 4;
    return choice;
  }
  StepChoice& add(const Gpt& gpt) { return add("gpt", gpt_json(gpt), gpt.batch); }
  std::vector<StepChoice> take() { return std::move(all_); }

 private:
  int32_t threads_, ranks_;
  std::vector<StepChoice> all_;
};

constexpr const char* kSmallMlp = R"({"inputs":64,"hidden":[256,256],"outputs":16})";

/// Models for every instruction that the built-in ones have, of sizes that fit in caches and sizes that do not.
void add_models(Choices& to, const char* precision, bool is_quick) {
  constexpr Gpt kLarger[] = {{128, 3, 64, 256, 8},   {128, 2, 256, 256, 1},  {256, 2, 128, 1024, 4}, {256, 2, 64, 512, 1},
                             {384, 2, 128, 2048, 2}, {512, 2, 256, 4096, 2}, {768, 1, 128, 4096, 2}};
  const auto with = [&](StepChoice& choice) -> Recipe& {
    choice.recipe.precision = precision;
    return choice.recipe;
  };
  with(to.add({64, 2, 32, 256, 2})).accumulate = is_quick ? 2 : 1;
  if (!is_quick) with(to.add({128, 2, 64, 256, 4})).accumulate = 3;
  with(to.add("mlp", kSmallMlp, 64));
  if (is_quick) return;
  for (const Gpt& gpt : kLarger) with(to.add(gpt));
  Recipe& recomputes = with(to.add({256, 2, 128, 1024, 2}));
  recomputes.accumulate = 2;
  recomputes.recompute = "blocks";
  recomputes.dropout = 0.1;
  with(to.add("mlp", R"({"inputs":784,"hidden":[1024,512],"outputs":10,"loss":"cross_entropy","activation":"relu"})", 128));
  with(to.add("mlp", R"({"inputs":256,"hidden":[512,512],"outputs":32,"activation":"silu"})", 128));
}

void add_optimizers(Choices& to) {
  for (const char* optimizer : {"sgd", "lion", "adamw-8bit", "adafactor", "rmsprop", "adagrad", "muon"})
    for (const char* model : {kSmallMlp, R"({"inputs":256,"hidden":[1024,512],"outputs":16})"}) {
      Recipe& recipe = to.add("mlp", model, 32).recipe;
      recipe.set("optimizer", text('"', optimizer, '"'));
      recipe.zero = 0;  // not all can be sharded
    }
}

/// Two tensor ranks or two stages, and data ranks.
void add_axes(Choices& to, int32_t ranks) {
  const int32_t even = ranks - ranks % 2;
  for (const Gpt& gpt : {Gpt{128, 2, 64, 256, 8}, Gpt{256, 2, 128, 1024, 4}, Gpt{512, 2, 128, 1024, 2}}) {
    for (const char* axis : {"tensor", "stages"}) {
      Recipe& recipe = to.add(gpt).recipe;
      recipe.zero = 0;
      recipe.ranks = even;
      recipe.set(axis, "2");
      if (recipe.stages > 1) recipe.accumulate = 4;
      if (gpt.width == 256) recipe.precision = "bf16";
    }
  }
}

struct RankSetting {
  int32_t threads, ranks;
};

std::vector<RankSetting> settings_of(int32_t threads, bool is_quick) {
  std::vector<RankSetting> all = {{threads, 1}};
  if (is_quick) return all;
  if (threads > 1) all.push_back({1, 1});
  const int32_t ranks = std::clamp(threads, 2, kRanksOfCalibration);
  all.push_back({std::max(1, threads / ranks), ranks});
  return all;
}

class Cancelled {
 public:
  explicit Cancelled(const Context& context) : context_(context), before_(context.cancels()) {}
  void check() const { require(context_.cancels() == before_, Code::cancelled, "calibrate: cancelled; nothing was written"); }

 private:
  const Context& context_;
  const uint64_t before_;
};

using AllSteps = std::vector<std::unique_ptr<MeasuredSteps>>;

/// Every `groups`-th choice of a setting, from `group` on. None: there is no memory for any of them.
AllSteps steps_of(const std::shared_ptr<Context>& context, const std::vector<StepChoice>& choices, size_t group, size_t groups,
                  const Cancelled& cancelled) {
  AllSteps all;
  for (size_t i = group; i < choices.size(); i += groups) {
    cancelled.check();
    try {
      all.push_back(std::make_unique<MeasuredSteps>(context, choices[i]));
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;
    }
  }
  return all;
}

/// In turn, so that a burst of other work falls on a few steps of each, and a slower time of a shared machine on all settings.
void run(const std::vector<AllSteps>& settings, double seconds, const Cancelled& cancelled) {
  constexpr double kVisit = 0.01;  // seconds, about: long enough for caches to be as in a run
  constexpr int64_t kLeastRounds = 2, kLeastStepsAtOnce = 2, kMostStepsAtOnce = 8;
  if (std::ranges::all_of(settings, [](const AllSteps& of) { return of.empty(); })) return;
  const double end = os::seconds() + seconds;
  for (int64_t round = 0; round < kLeastRounds || os::seconds() < end; ++round)
    for (const AllSteps& all : settings)
      for (const auto& steps : all) {
        cancelled.check();
        steps->run(round == 0 ? 1 : std::clamp(static_cast<int64_t>(kVisit / steps->step()), kLeastStepsAtOnce, kMostStepsAtOnce));
      }
}

/// The times of a choice's steps. The memory in which they ran is free by then.
struct ChoiceTimes {
  std::vector<OpTime> ops, of_first;  // of all ranks, and of rank 0
  int64_t memory;
  bool has_stages;
  double step, before_second;
};

ChoiceTimes times_of(const MeasuredSteps& steps) {
  return {.ops = steps.ops(),
          .of_first = steps.ops(false),
          .memory = steps.memory(),
          .has_stages = steps.has_stages(),
          .step = steps.watched_step(),
          .before_second = steps.before_second()};
}

/// The times of all choices, by setting. In groups of choices, each of all settings, so that the memory of one group is enough.
std::vector<std::vector<ChoiceTimes>> measured(const std::shared_ptr<Context>& context, const std::vector<RankSetting>& settings,
                                               const CalibrationOptions& options) {
  const Cancelled cancelled(*context);
  const size_t groups = options.is_quick ? 1 : 5;  // no factor of the four ZeRO stages that choices have in turn
  std::vector<std::vector<ChoiceTimes>> times(settings.size());
  for (size_t group = 0; group < groups; ++group) {
    std::vector<AllSteps> all;
    for (const RankSetting& of : settings)
      all.push_back(steps_of(context, calibration_steps(of.threads, of.ranks, options.is_quick), group, groups, cancelled));
    run(all, options.seconds / static_cast<double>(groups), cancelled);
    for (size_t i = 0; i < settings.size(); ++i)
      for (const auto& steps : all[i]) times[i].push_back(times_of(*steps));
  }
  for (const auto& of : times) require(!of.empty(), Code::out_of_memory, "calibrate: there is no memory for any model");
  return times;
}

/// Steps outside their instructions, by what is left after those of rank 0.
double outside_of(const ChoiceTimes& steps, const RateSet& rates) {
  if (steps.ops.empty()) return 0;
  const OpRate* const first = rates.find(steps.ops.front().name);
  return std::max(0.0, steps.before_second - (first == nullptr ? 0 : first->seconds(steps.ops.front().work)));
}

/// A usual step, relative to what the rates of its instructions add up to. Each instruction is late now and then, and some are in every
/// step: the sum of usual times is below a usual sum.
double lateness_of(const ChoiceTimes& steps, const RateSet& rates) {
  double seconds = rates.step;
  for (const OpTime& op : steps.of_first)
    if (const OpRate* const rate = rates.find(op.name)) seconds += rate->seconds(op.work);
  return steps.step / seconds;
}

void scale(RateSet& rates, double by) {
  rates.step *= by;
  for (OpRate& rate : rates.ops) {
    rate.per_flop *= by;
    rate.per_activation *= by;
    for (OpRate::Point& point : rate.by_bytes) point.seconds *= by;
  }
}

/// Rates for plans of at most so much memory, from the steps of those that `fits`; a name that they do not have, from the others.
template <class Fits>
RateSet rates_of(const std::vector<ChoiceTimes>& all, const RankSetting& setting, int64_t memory, const Fits& fits) {
  std::vector<OpTime> times, of_others;
  for (const ChoiceTimes& steps : all) {
    std::vector<OpTime>& to = fits(steps) ? times : of_others;
    to.insert(to.end(), steps.ops.begin(), steps.ops.end());
  }
  RateSet set{.threads = setting.threads, .ranks = setting.ranks, .ops = fit_rates(times), .step = 0, .memory = memory};
  const size_t own = set.ops.size();
  for (OpRate& rate : fit_rates(of_others))
    if (!std::ranges::binary_search(set.ops.begin(), set.ops.begin() + static_cast<std::ptrdiff_t>(own), rate.name, {}, &OpRate::name))
      set.ops.push_back(std::move(rate));
  std::ranges::sort(set.ops, {}, &OpRate::name);
  std::vector<double> outside;
  for (const ChoiceTimes& steps : all)
    if (fits(steps)) outside.push_back(outside_of(steps, set));
  set.step = median_of(outside);
  std::vector<double> lateness;
  for (const ChoiceTimes& steps : all)
    if (fits(steps) && !steps.has_stages) lateness.push_back(lateness_of(steps, set));  // stages also wait for each other
  constexpr double kMost = 1.1;  // beyond that, other programs took the cores, which is not the machine's rate
  if (!lateness.empty()) scale(set, std::clamp(median_of(lateness), 1 / kMost, kMost));
  return set;
}

std::string processor() {
  const os::CpuIdentity& cpu = os::cpu();
  return text(cpu.brand, " (", cpu.vendor, " family ", cpu.family, " model ", cpu.model, ")");
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> out{};
  std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M UTC", &utc);
  return out.data();
}

/// Latency and rate of a link, from the smallest and the largest exchange.
LinkRate link_of(const OpRate& rate) {
  const auto& points = rate.by_bytes;
  const double latency = points.front().seconds, slope = (points.back().seconds - latency) / std::max(1.0, points.back().bytes);
  return {latency, slope > 0 ? 1 / slope : 0};
}

}  // namespace

std::vector<StepChoice> calibration_steps(int32_t threads, int32_t ranks, bool is_quick) {
  Choices choices(threads, ranks);
  add_models(choices, "fp32", is_quick);
  add_models(choices, "bf16", is_quick);
  if (is_quick) return choices.take();
  add_optimizers(choices);
  choices.add({128, 2, 64, 256, 4}).recipe.set("precision", "\"fp16\"");
  choices.add({384, 1, 128, 1024, 2}).recipe.set("precision", "\"fp16\"");
  if (ranks > 1) add_axes(choices, ranks);
  return choices.take();
}

Machine calibrate(const std::shared_ptr<Context>& context, const CalibrationOptions& options) {
  require(
      context->backend().is_host_memory(), Code::unsupported, "calibrate: device ", context->backend().name(),
      " has its own memory, and cannot be measured yet; measure the cpu, or plan with the numbers of a GPU's data sheet, such as machine "
      "a100-80g");
  const int32_t threads = context->threads();
  Machine machine;
  machine.profile = profile_of(context->backend(), threads);
  machine.profile.memory = os::total_memory();
  machine.name = "this machine";
  machine.is_measured = true;
  machine.processor = processor();
  machine.library = options.library;
  machine.source =
      text("by ScaleTrain ", options.library, " on ", machine.processor, ", ", threads, threads == 1 ? " core, " : " cores, ", today());
  machine.device_memory = machine.profile.memory;
  machine.ranks_per_node = threads;
  const std::vector<RankSetting> settings = settings_of(threads, options.is_quick);
  const std::vector<std::vector<ChoiceTimes>> times = measured(context, settings, options);
  const auto is_small = [](const ChoiceTimes& steps) { return steps.memory <= kStaysInCache; };
  for (size_t i = 0; i < settings.size(); ++i) {
    machine.rates.push_back(rates_of(times[i], settings[i], kStaysInCache, is_small));
    if (!options.is_quick) machine.rates.push_back(rates_of(times[i], settings[i], RateSet::kAnyMemory, std::not_fn(is_small)));
  }
  if (const OpRate* const exchange = machine.rates.back().find("exchange.data")) machine.in_node = link_of(*exchange);
  return machine;
}

std::string differs_by_version(const Machine& machine, std::string_view library) {
  return machine.is_measured && machine.library != library ? text("by version ", machine.library, ", this is ", library) : "";
}

std::string differs_from_here(const Machine& machine, const Context& context, std::string_view library) {
  if (!machine.is_measured) return {};
  const auto differs = [](std::string_view what, const auto& there, const auto& here) {
    return text(what, ' ', there, ", this is ", here);
  };
  if (std::string version = differs_by_version(machine, library); !version.empty()) return version;
  if (const std::string here = processor(); machine.processor != here) return differs("on", machine.processor, here);
  const MachineProfile here = profile_of(context.backend(), context.threads());
  if (machine.profile.device != here.device || machine.profile.kernel_class != here.kernel_class)
    return differs("with kernels", machine.profile.kernel_class, here.kernel_class);
  return {};
}

}  // namespace st

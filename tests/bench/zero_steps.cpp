// Step times of ZeRO's stages over data parallel, two ranks as threads of a core each: a GPT's steps of each stage in turn, round by round.
// Usage: zero_steps [rounds] [width] [layers] [precision] [ranks]
#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int kStages = 4, kRows = 2, kContext = 256, kVocabulary = 512;

void hold(st_status status) {
  if (status == ST_OK) return;
  std::fprintf(stderr, "zero_steps: %s\n", st_last_error());
  std::exit(1);
}

/// A trainer of a stage, each with a model of its own.
class Steps {
 public:
  Steps(st_context* context, const std::string& model, const std::string& recipe, std::vector<int32_t>& tokens) {
    hold(st_model_builtin(context, "gpt", model.c_str(), 1, &model_));
    hold(st_recipe_create(recipe.c_str(), &recipe_));
    hold(st_trainer_create(model_, recipe_, nullptr, &trainer_));
    hold(st_step_report_init(&report_, sizeof report_));
    dims_[0] = static_cast<int64_t>(tokens.size()) / kContext;
    dims_[1] = kContext;
    const auto bytes = static_cast<int64_t>(tokens.size() * sizeof(int32_t));
    views_ = {st_named_view{"tokens", {ST_I32, 2, dims_, nullptr, tokens.data(), bytes}},
              st_named_view{"targets", {ST_I32, 2, dims_, nullptr, tokens.data(), bytes}}};
  }
  ~Steps() {
    st_trainer_destroy(trainer_);
    st_recipe_destroy(recipe_);
    st_model_destroy(model_);
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  double seconds() {
    const auto start = std::chrono::steady_clock::now();
    hold(st_trainer_step(trainer_, 2, views_.data(), &report_));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  double loss() const { return report_.loss; }

 private:
  st_model* model_ = nullptr;
  st_recipe* recipe_ = nullptr;
  st_trainer* trainer_ = nullptr;
  st_step_report report_;
  int64_t dims_[2] = {};
  std::array<st_named_view, 2> views_ = {};
};

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

std::string number(long value) { return std::to_string(value); }

}  // namespace

int main(int argc, char** argv) {
  const auto given = [&](int at, long standard) { return argc > at ? std::atol(argv[at]) : standard; };
  const long rounds = given(1, 15), width = given(2, 384), layers = given(3, 4), ranks = given(5, 2);
  const std::string precision = argc > 4 ? argv[4] : "fp32";
  if (rounds < 1 || width < 64 || layers < 1 || ranks < 1) return 2;
  st_context_options options;
  hold(st_context_options_init(&options, sizeof options));
  st_context* context = nullptr;
  hold(st_context_create(&options, &context));
  const std::string model = R"({"layers": )" + number(layers) + R"(, "width": )" + number(width) + R"(, "heads": )" + number(width / 64) +
                            R"(, "context": )" + number(kContext) + R"(, "vocabulary": )" + number(kVocabulary) + "}";
  std::vector<int32_t> tokens(static_cast<size_t>(ranks) * kRows * kContext);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % kVocabulary);

  std::vector<std::vector<double>> times(kStages), ratios(kStages);
  std::vector<double> losses(kStages);
  {
    std::vector<std::unique_ptr<Steps>> stages;
    for (int stage = 0; stage < kStages; ++stage)
      stages.push_back(std::make_unique<Steps>(context, model,
                                               R"({"batch": )" + number(kRows) + R"(, "threads": 1, "ranks": )" + number(ranks) +
                                                   R"(, "precision": ")" + precision + R"(", "zero": )" + number(stage) + "}",
                                               tokens));
    for (long round = -2; round < rounds; ++round) {  // the first ones warm up
      std::vector<double> now(kStages);
      for (int turn = 0; turn < kStages; ++turn) {
        const auto stage = static_cast<size_t>((round + 2 + turn) % kStages);
        now[stage] = stages[stage]->seconds();
        losses[stage] = stages[stage]->loss();
      }
      for (size_t stage = 0; stage < kStages && round >= 0; ++stage) {
        times[stage].push_back(now[stage]);
        ratios[stage].push_back(now[stage] / now[0]);
      }
    }
  }
  st_context_destroy(context);
  std::printf("gpt %ldx%ld, %s, %ld ranks of one thread, a micro-batch of %d rows of %d each, %ld rounds\n", width, layers,
              precision.c_str(), ranks, kRows, kContext, rounds);
  std::printf("zero   step, ms   of zero 0, median   10th    90th   loss\n");
  for (size_t stage = 0; stage < kStages; ++stage)
    std::printf("%4zu   %8.1f   %17.3f   %5.3f   %5.3f   %.9g\n", stage, quantile(times[stage], 0.5) * 1e3, quantile(ratios[stage], 0.5),
                quantile(ratios[stage], 0.1), quantile(ratios[stage], 0.9), losses[stage]);
  return std::ranges::all_of(losses, [&](double loss) { return loss == losses[0]; }) ? 0 : 1;
}

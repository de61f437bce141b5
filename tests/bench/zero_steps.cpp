// Step times of ZeRO's stages relative to data parallel, with two ranks as threads on one core each: steps of each stage in turn, round by
// round. Usage: zero_steps [rounds] [width] [layers] [precision] [ranks]
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "samples.h"

namespace {

using bench::hold;
using bench::quantile;

constexpr int kStages = 4, kRows = 2, kContext = 256, kVocabulary = 512;

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
  const int64_t dims[] = {ranks * kRows, kContext}, bytes = static_cast<int64_t>(tokens.size() * sizeof(int32_t));
  const st_view of_tokens = {ST_I32, 2, dims, nullptr, tokens.data(), bytes};

  std::vector<std::vector<double>> times(kStages), ratios(kStages);
  std::vector<double> losses(kStages);
  {
    std::vector<std::unique_ptr<bench::AbiTrainer>> stages;
    for (int stage = 0; stage < kStages; ++stage) {
      const std::string recipe = R"({"batch": )" + number(kRows) + R"(, "threads": 1, "ranks": )" + number(ranks) + R"(, "precision": ")" +
                                 precision + R"(", "zero": )" + number(stage) + "}";
      const std::vector<st_named_view> batch = {{"tokens", of_tokens}, {"targets", of_tokens}};
      stages.push_back(std::make_unique<bench::AbiTrainer>(context, "gpt", model.c_str(), recipe.c_str(), batch));
    }
    for (long round = -2; round < rounds; ++round) {  // the first ones warm up
      std::vector<double> now(kStages);
      for (int turn = 0; turn < kStages; ++turn) {
        const auto stage = static_cast<size_t>((round + 2 + turn) % kStages);
        const auto start = std::chrono::steady_clock::now();
        stages[stage]->step();
        now[stage] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

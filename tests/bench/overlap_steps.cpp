// The cost of the exchange in a step of two data ranks with one thread each, overlapped and not: tokens a second relative to one rank, next
// to the speed of two threads of the FMA loop relative to one. Usage: overlap_steps [width] [layers] [rounds] [micro-batches a rank]
// [bucket in bytes]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/os/machine.h"
#include "fma_peak.h"
#include "models/gpt.h"
#include "samples.h"
#include "train/trainer.h"

namespace {

using bench::median;

constexpr int64_t kBatch = 4, kContext = 256, kVocabulary = 8192;

/// Steps of one recipe on synthetic tokens.
class Steps {
 public:
  Steps(int64_t width, int64_t layers, int64_t ranks, int64_t rounds, int64_t bucket, const char* overlap, int64_t zero)
      : context_(std::make_shared<st::Context>(
            st::ContextOptions{.device = "cpu", .threads = static_cast<int>(ranks), .log = {}, .parallel = {}, .memory = {}})),
        rows_(kBatch * ranks * rounds) {
    auto program = st::build_gpt({.layers = layers, .width = width, .heads = width / 64, .context = kContext, .vocabulary = kVocabulary});
    st::Recipe recipe{.batch = kBatch};
    recipe.ranks = ranks;
    recipe.threads = 1;
    recipe.micro_batches = ranks * rounds;
    recipe.zero = zero;
    recipe.bucket = bucket;
    recipe.set("overlap", overlap);
    trainer_ = std::make_unique<st::Trainer>(std::make_shared<st::Model>(context_, std::move(program), 1), recipe, nullptr);
    for (int64_t i = 0; i < rows_ * kContext; ++i) tokens_.push_back(static_cast<int32_t>(i * 7919 % kVocabulary));
  }
  double tokens() const { return static_cast<double>(rows_ * kContext); }
  st::StepReport step() {
    const st::Shape shape{rows_, kContext};
    const auto view = [&](const char* name) { return st::plain_view(name, st::DType::i32, shape, tokens_.data()); };
    const std::vector<st::HostView> batch = {view("tokens"), view("targets")};
    return trainer_->step(batch);
  }

 private:
  std::shared_ptr<st::Context> context_;
  int64_t rows_;
  std::vector<int32_t> tokens_;
  std::unique_ptr<st::Trainer> trainer_;
};

/// CPU time of all threads of this process.
double cpu_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int64_t standard) { return argc > i ? std::atoll(argv[i]) : standard; };
  const int64_t width = argument(1, 768), layers = argument(2, 2), rounds = argument(3, 9), micro = argument(4, 1),
                bucket = argument(5, st::Recipe().bucket);
  Steps alone(width, layers, 1, micro, bucket, "\"off\"", 0);
  struct Side {
    const char* name;
    Steps steps;
    std::vector<double> speed, over_alone, exchange, exposed, cpu;
  };
  std::vector<Side> sides;
  for (const int64_t zero : {0, 1})
    for (const char* overlap : {"off", "on"}) {
      const std::string json = std::string("\"") + overlap + "\"";
      static const char* const kNames[] = {"data parallel, off", "data parallel, on", "ZeRO-1, off", "ZeRO-1, on"};
      sides.push_back({kNames[sides.size()], Steps(width, layers, 2, micro, bucket, json.c_str(), zero), {}, {}, {}, {}, {}});
    }
  const cli::FmaPeak one(1), two(2);
  std::vector<double> peaks;
  for (int64_t round = -1; round < rounds; ++round) {
    const double first = one.measure();
    const double before_own = cpu_seconds();
    const st::StepReport own = alone.step();
    const double own_cpu = cpu_seconds() - before_own;
    const double own_speed = alone.tokens() / own.milliseconds;
    if (round >= 0) peaks.push_back(two.measure() / first);
    for (Side& side : sides) {
      const double before = cpu_seconds();
      const st::StepReport report = side.steps.step();
      if (round < 0) continue;
      side.cpu.push_back((cpu_seconds() - before) / 2 / own_cpu);
      side.speed.push_back(side.steps.tokens() / report.milliseconds * 1e3);
      side.over_alone.push_back(side.speed.back() / own_speed / 1e3);
      side.exchange.push_back(report.exchange_milliseconds);
      side.exposed.push_back(report.exchange_milliseconds * (1 - report.exchange_hidden));
    }
  }
  std::printf("GPT %lld x %lld, %lld rounds, %lld micro-batches of %lld x %lld a rank, two ranks of one thread on %d cores\n",
              static_cast<long long>(width), static_cast<long long>(layers), static_cast<long long>(rounds), static_cast<long long>(micro),
              static_cast<long long>(kBatch), static_cast<long long>(kContext), st::os::available_cores());
  std::printf("FMA loop: two threads are %.2f of one\n", median(peaks));
  for (const Side& side : sides)
    std::printf(
        "%-20s %7.0f tokens/s, %.2f of one rank, %.2f of what the loop gives; exchange %.1f ms, exposed %.1f ms; %.2f of its CPU time a "
        "token\n",
        side.name, median(side.speed), median(side.over_alone), median(side.over_alone) / median(peaks), median(side.exchange),
        median(side.exposed), median(side.cpu));
  return 0;
}

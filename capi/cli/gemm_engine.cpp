#include "gemm_engine.h"

#include <algorithm>

#include "seconds_now.h"

namespace cli {
namespace {

constexpr double kSample = 2e-3;  // minimum seconds of a sample
constexpr int kTries = 3;
constexpr double kLarge = 2e9;  // FLOP, ten milliseconds: the wake-up is negligible

}  // namespace

GemmSampler::GemmSampler(GemmEngine& engine, GemmOperands& operands) : engine_(engine), operands_(operands) {
  operands_.draw(0);
  multiplies_ = engine_.open(operands_);
  if (!multiplies_) return;
  if (operands_.shape().plain) repeats_[0] = repeats_for(false);
  if (!packs() || !operands_.shape().packed) return;
  engine_.pack();
  repeats_[1] = repeats_for(true);
}

double GemmSampler::seconds(uint64_t seed, bool packed) {
  operands_.draw(seed);
  if (packed) engine_.pack();
  const int64_t times = repeats_[packed ? 1 : 0];
  // Measure the steady state, without the threads' wake-up or the clock frequency of the work before.
  if (flops_of(operands_.shape()) < kLarge) repeat(times, packed);
  return repeat(times, packed) / static_cast<double>(times);
}

void GemmSampler::check(uint64_t seed, bool packed) const {
  if (const std::string where = operands_.difference(seed); !where.empty())
    throw WrongProduct("computes " + name_of(operands_.shape(), packed) + " wrongly: " + where);
}

double GemmSampler::repeat(int64_t times, bool packed) {
  const double start = seconds_now();
  for (int64_t i = 0; i < times; ++i) engine_.multiply(packed);
  return seconds_now() - start;
}

int64_t GemmSampler::repeats_for(bool packed) {
  engine_.multiply(packed);  // a library's first call creates its threads and code
  if (flops_of(operands_.shape()) >= kLarge) return 1;
  for (int64_t times = 1;;) {
    double took = repeat(times, packed);
    for (int i = 1; i < kTries && took < 100 * kSample; ++i) took = std::min(took, repeat(times, packed));  // the machine may be busy
    if (took >= kSample) return times;
    times = std::max(times + 1, static_cast<int64_t>(std::min(10., 1.2 * kSample / std::max(took, 1e-7)) * static_cast<double>(times)));
  }
}

}  // namespace cli

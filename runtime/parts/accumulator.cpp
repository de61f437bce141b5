#include "parts/accumulator.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "parts/fold.h"

namespace st {
namespace {

void check_steps(int64_t steps) {
  check(steps >= 1 && steps <= Accumulator::kMaxSteps, "accumulator: steps is ", steps, ", the micro-batches per step must be 1 to ",
        Accumulator::kMaxSteps);
}

/// Each array's sum begins on a vector of its own.
int64_t padded_bytes(const GradientArray& gradient) {
  constexpr auto kAlign = static_cast<int64_t>(MemorySource::kAlign);
  return (sum_bytes(gradient) + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

int64_t Accumulator::bytes(int64_t steps, std::span<const GradientArray> gradients) {
  check_steps(steps);
  check(!gradients.empty(), "accumulator: needs at least one gradient, got none; give the arrays that backward writes");
  int64_t all = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    check(is_floating(gradients[i].dtype), "accumulator: gradient ", i, " must be f32, f64, bf16 or f16, got ", gradients[i].dtype);
    all += padded_bytes(gradients[i]);
  }
  return all;
}

Accumulator::Accumulator(int64_t steps, std::span<const GradientArray> gradients, std::unique_ptr<Workers> workers,
                         const std::shared_ptr<MemorySource>& memory)
    : steps_(steps),
      gradients_(gradients.begin(), gradients.end()),
      workers_(std::move(workers)),
      memory_(bytes(steps, gradients), memory, MemoryRole::gradients) {}

void Accumulator::add(double weight) {
  check_state();
  check(weight == 0 || (weight >= kMinWeight && weight <= kMaxWeight), "accumulator: weight is ", weight,
        ", must be the micro-batch's number of tokens, in [2^-53, 2^53], or 0 for an empty one, which adds nothing");
  require(!is_full() || reported_ != 0, Code::wrong_state, "accumulator: all ", steps_,
          " micro-batches of the step were added and the arrays hold its gradient; call should_step and use the gradient before the next "
          "add");
  const int64_t added = is_full() ? 0 : added_;
  const double before = is_full() ? 0 : weight_, all = before + weight;
  const bool last = added + 1 == steps_;
  check(!last || all > 0, "accumulator: the step has no tokens, so there is no mean; add a micro-batch with tokens, or reset");
  const Fold how = {.first = before == 0, .empty = weight == 0, .last = last, .factor = last ? 1 / all : 1};
  std::byte* sum = memory_.data();
  for (const GradientArray& gradient : gradients_) {
    fold(gradient, sum, how, *workers_);
    sum += padded_bytes(gradient);
  }
  added_ = added + 1;
  weight_ = all;
  reported_ = 0;
}

bool Accumulator::should_step() {
  check_state();
  reported_ = is_full() ? 1 : 0;
  return is_full();
}

void Accumulator::reset() {
  added_ = 0;
  weight_ = 0;
  reported_ = 0;
}

void Accumulator::set_steps(int64_t steps) {
  check_steps(steps);
  require(added_ == 0 || reported_ != 0, Code::wrong_state, "accumulator: ", added_, " of ", steps_,
          " micro-batches of the step were added, but steps can change only between two steps; continue until should_step returns true, or "
          "reset");
  reset();
  steps_ = steps;
}

/// A checkpoint of another accumulator's, copied in.
void Accumulator::check_state() const {
  require(added_ >= 0 && added_ <= steps_ && std::isfinite(weight_) && weight_ >= 0, Code::wrong_state,
          "accumulator: the state that was written has ", added_, " of ", steps_, " micro-batches and ", weight_,
          " tokens; write the state of an accumulator with the same steps, or reset");
}

std::vector<Accumulator::StateArray> Accumulator::state() {
  std::vector<StateArray> arrays = {
      {"added", DType::i64, {}, &added_}, {"weight", DType::f64, {}, &weight_}, {"reported", DType::i64, {}, &reported_}};
  std::byte* sum = memory_.data();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const DType dtype = gradients_[i].dtype == DType::f64 ? DType::f64 : DType::f32;
    arrays.push_back({text("sum.", i), dtype, {gradients_[i].shape.elements()}, sum});
    sum += padded_bytes(gradients_[i]);
  }
  return arrays;
}

}  // namespace st

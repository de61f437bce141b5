#include "optim/loss_scaler.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/json_line.h"

namespace st {
namespace {

/// The nearest fp32 number, the type in which kernels multiply.
double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }

/// Whether the value and its inverse are normal fp32 numbers.
bool is_scale(double value) { return rounded(value) >= 0x1p-126 && rounded(value) <= 0x1p126; }

constexpr const char* kAllowed = ", must be in [2^-126, 2^126]; try ";

}  // namespace

LossScaler::LossScaler(const LossScale& options) : options_(options), scale_(rounded(options.scale)), overflows_left_(options.hysteresis) {
  check(is_scale(options.scale), "loss scale: the scale is ", options.scale, kAllowed, 65536);
  check(is_scale(options.minimum), "loss scale: the minimum is ", options.minimum, kAllowed, 1);
  check(options.growth_factor > 1 && is_scale(options.growth_factor), "loss scale: the growth factor is ", options.growth_factor,
        ", must be above 1 and at most 2^126; try 2");
  check(options.backoff_factor > 0 && options.backoff_factor < 1, "loss scale: the backoff factor is ", options.backoff_factor,
        ", must be between 0 and 1; try 0.5");
  check(options.growth_interval >= 1, "loss scale: the growth interval must be at least 1 step, got ", options.growth_interval);
  check(options.hysteresis >= 1, "loss scale: the hysteresis must be at least 1 overflow, got ", options.hysteresis);
  const bool falls = options.enabled && options.dynamic;
  check(!falls || options.scale >= options.minimum, "loss scale: the initial scale ", options.scale, " is below the minimum ",
        options.minimum, "; raise the scale or lower the minimum");
  options_.minimum = rounded(options.minimum);
}

void LossScaler::update(bool found_inf) {
  if (!options_.enabled || !options_.dynamic) return;
  if (found_inf) {
    good_steps_ = 0;
    if (overflows_left_ > 1) {
      --overflows_left_;
      return;
    }
    scale_ = std::max(rounded(scale_ * options_.backoff_factor), std::min(scale_, options_.minimum));
    return;
  }
  if (options_.consecutive_hysteresis) overflows_left_ = options_.hysteresis;
  if (++good_steps_ < options_.growth_interval) return;
  good_steps_ = 0;
  overflows_left_ = options_.hysteresis;
  const double grown = rounded(scale_ * options_.growth_factor);
  if (is_scale(grown)) scale_ = grown;
}

std::string LossScaler::state() const {
  JsonLine line;
  line.add_json("scale", json_of(scale_)).add("good_steps", good_steps_);
  if (options_.hysteresis > 1) line.add("overflows_left", overflows_left_);
  return line.text();
}

void LossScaler::restore(std::string_view state) {
  const Json json = parse_json(state, "loss scale: state");
  const Json* scale = json.is(Json::Kind::object) ? json.find("scale") : nullptr;
  const Json* steps = json.is(Json::Kind::object) ? json.find("good_steps") : nullptr;
  const bool bears = options_.hysteresis > 1;
  const Json* left = bears && json.is(Json::Kind::object) ? json.find("overflows_left") : nullptr;
  check(scale != nullptr && steps != nullptr && bears == (left != nullptr) && json.members().size() == (bears ? 3U : 2U),
        "loss scale: state must have the form {\"scale\":65536.0,\"good_steps\":0", bears ? ",\"overflows_left\":1" : "", "}, got ",
        json.dump());
  check(scale->is_number() && is_scale(scale->number()) && rounded(scale->number()) == scale->number(), "loss scale: the state's scale is ",
        scale->dump(), ", must be an fp32 number in [2^-126, 2^126]");
  check(steps->is(Json::Kind::whole) && steps->whole() >= 0 && steps->whole() < options_.growth_interval,
        "loss scale: the state's good_steps is ", steps->dump(), ", must be in [0, ", options_.growth_interval, "), the growth interval");
  check(left == nullptr || (left->is(Json::Kind::whole) && left->whole() >= 1 && left->whole() <= options_.hysteresis),
        "loss scale: the state's overflows_left is ", bears ? left->dump() : "", ", must be in [1, ", options_.hysteresis,
        "], the hysteresis");
  scale_ = scale->number();
  if (bears) overflows_left_ = left->whole();
  good_steps_ = steps->whole();
}

}  // namespace st

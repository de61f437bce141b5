#include "own_step.h"

#include <algorithm>
#include <random>

#include "seconds_now.h"

namespace cli {

std::string name_of(const Shape& s) {
  return "gpt " + std::to_string(s.width) + "x" + std::to_string(s.layers) + " context " + std::to_string(s.context) + " batch " +
         std::to_string(s.batch) + " vocabulary " + std::to_string(s.vocabulary) + " " + std::string(s.precision);
}

double flops_a_token(const Shape& s) {
  const double weights = double(s.layers) * 12 * double(s.width * s.width) + double(s.vocabulary * s.width);
  return 6 * weights + 6 * double(s.layers * s.width * s.context);
}

std::vector<int32_t> draw_tokens(const Shape& s, int64_t steps) {
  std::mt19937_64 random(7);
  std::vector<int32_t> tokens(static_cast<size_t>(steps * s.batch * (s.context + 1)));
  for (int32_t& token : tokens) {
    const double u = std::generate_canonical<double, 53>(random);
    token = static_cast<int32_t>(std::min(double(s.vocabulary - 1), u * u * u * double(s.vocabulary)));
  }
  return tokens;
}

OwnStep::OwnStep(const Context& context, const Shape& shape, std::vector<int32_t> tokens) : shape_(shape), tokens_(std::move(tokens)) {
  const Json json = {{"layers", shape.layers},
                     {"width", shape.width},
                     {"heads", shape.heads},
                     {"context", shape.context},
                     {"vocabulary", shape.vocabulary}};
  model_ = make<Model>(st_model_builtin, context.get(), "gpt", json.dump().c_str(), int64_t{1});
  const Recipe recipe = make<Recipe>(
      st_recipe_create, Json{{"batch", shape.batch}, {"lr", kBenchRate}, {"precision", std::string(shape.precision)}}.dump().c_str());
  trainer_ = make<Trainer>(st_trainer_create, model_.get(), recipe.get(), static_cast<st_data*>(nullptr));
}

PytorchPeer::Step OwnStep::step() {
  split_next();
  const int64_t dims[] = {shape_.batch, shape_.context};
  const auto view = [&dims](const char* name, std::vector<int32_t>& ids) {
    return st_named_view{name, {ST_I32, 2, dims, nullptr, ids.data(), std::ssize(ids) * 4, 0, 0}};
  };
  const st_named_view batch[] = {view("tokens", inputs_), view("targets", targets_)};
  st_step_report report;
  ask(st_step_report_init(&report, sizeof report));
  const double start = seconds_now();
  cli::run(st_trainer_step(trainer_.get(), 2, batch, &report));
  return {report.loss, seconds_now() - start};
}

void OwnStep::split_next() {
  inputs_.clear(), targets_.clear();
  for (int64_t row = 0; row < shape_.batch; ++row) {
    const auto begin = tokens_.begin() + (steps_ * shape_.batch + row) * (shape_.context + 1);
    inputs_.insert(inputs_.end(), begin, begin + shape_.context);
    targets_.insert(targets_.end(), begin + 1, begin + shape_.context + 1);
  }
  ++steps_;
}

}  // namespace cli

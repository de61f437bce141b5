#include "models/mlp.h"

#include "base/error.h"
#include "base/heap.h"
#include "ir/build.h"
#include "models/activation.h"
#include "models/json_options.h"
#include "models/layers.h"

namespace st {
namespace {

const std::vector<std::string>& losses() {
  static const auto table = once_for_the_process([] { return std::vector<std::string>{"mse", "cross_entropy"}; });
  return table;
}

std::vector<int64_t> widths_of(const MlpOptions& options) {
  std::vector<int64_t> widths = {options.inputs};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(options.outputs);
  return widths;
}

}  // namespace

void check_options(const MlpOptions& options) {
  check(options.inputs >= 1, "mlp: inputs must be at least 1, got ", options.inputs);
  check(options.outputs >= 1, "mlp: outputs must be at least 1, got ", options.outputs);
  for (size_t i = 0; i < options.hidden.size(); ++i)
    check(options.hidden[i] >= 1, "mlp: hidden widths must be at least 1, hidden[", i, "] is ", options.hidden[i]);
  activation_named("mlp", options.activation);  // checks
  check_word("mlp", "loss", options.loss, losses());
}

int64_t parameter_count(const MlpOptions& options) {
  check_options(options);
  const auto widths = widths_of(options);
  double estimate = 0;  // in double, because int64 would overflow without notice
  for (size_t i = 0; i + 1 < widths.size(); ++i) estimate += (static_cast<double>(widths[i]) + 1) * static_cast<double>(widths[i + 1]);
  check(estimate < 0x1p53, "mlp: widths ", std::span<const int64_t>(widths), " ask for about ", estimate, " parameters; the limit is 2^53");
  int64_t count = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) count += (widths[i] + 1) * widths[i + 1];
  return count;
}

Program build_mlp(const MlpOptions& options) {
  parameter_count(options);  // checks
  const bool classes = options.loss == "cross_entropy";
  const Activation& activation = activation_named("mlp", options.activation);
  const auto widths = widths_of(options);

  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  Value x = b.input("x", DType::f32, {kBatch, options.inputs});
  const Value y = classes ? b.input("y", DType::i32, {kBatch}) : b.input("y", DType::f32, {kBatch, options.outputs});

  std::vector<Value> loss;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const bool last = i + 2 == widths.size();
    b.enter(text("layer.", i));
    x = linear(b, "", x, {.outputs = widths[i + 1], .init = last ? "xavier" : "kaiming", .scale = last ? 1 : activation.gain});
    if (last)
      loss = b.append(classes ? Op::cross_entropy : Op::mse, {x, y});
    else
      x = b(activation.op, {x});
    b.leave();
  }
  program.outputs.push_back({classes ? "logits" : "prediction", x});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  return program;
}

}  // namespace st

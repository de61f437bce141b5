#include "models/gpt.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "ir/build.h"
#include "models/json_options.h"
#include "models/layers.h"
#include "models/model_sizes.h"

namespace st {
namespace {

constexpr double kDeviation = 0.02;  // GPT-2's for every weight

struct GptActivation {
  std::string_view name;
  Op op;
  std::string_view approximate;  // of gelu
};
constexpr GptActivation kActivations[] = {
    {"gelu_new", Op::gelu, "tanh"}, {"gelu", Op::gelu, "erf"}, {"relu", Op::relu, ""}, {"silu", Op::silu, ""}, {"tanh", Op::tanh, ""}};

/// Builds the forward pass in the order of the paper. Activations between blocks are [B*T, C], so that each matrix product, and each
/// weight's gradient, is one product over all tokens.
class GptBuilder {
 public:
  GptBuilder(Program& program, const GptOptions& options) : options_(options), program_(program), b_(program, 0) {}

  void build() {
    tokens_ = b_.input("tokens", DType::i32, {kBatch, options_.context});
    targets_ = b_.input("targets", DType::i32, {kBatch, options_.context});

    Value x = embedding();
    for (int64_t i = 0; i < options_.layers; ++i) x = block(x, i);
    head(x);
  }

 private:
  Value embedding() {
    b_.enter("embedding");
    const Initializer normal{Init::normal, kDeviation, {}};
    const Value weight = named_parameter(b_, "token_embedding.weight", {options_.vocabulary, options_.width}, normal);
    const Value positions = named_parameter(b_, "position_embedding.weight", {options_.context, options_.width}, normal);
    const Value x = b_.add(b_(Op::embedding, {weight, tokens_}), positions);
    const Value y = b_.dropout(b_.reshape(x, tokens_by(options_.width)));
    b_.leave();
    return y;
  }

  Value block(Value x, int64_t i) {
    b_.enter(text("block.", i));
    x = b_.add(x, b_.dropout(attention(norm(b_, "attention_norm", x, norm_options()), i)));
    x = b_.add(x, b_.dropout(mlp(norm(b_, "mlp_norm", x, norm_options()))));
    b_.leave();
    return x;
  }

  Value attention(Value x, int64_t i) {
    const int64_t width = options_.width;
    const Shape by_head{kBatch, options_.context, options_.heads, width / options_.heads};
    b_.enter("attention");
    const Value qkv = linear(b_, "qkv", x, normal(3 * width, kDeviation));
    auto parts = b_.append(Op::split, {qkv}, {{"axis", int64_t{-1}}, {"sizes", Ints{width, width, width}}});  // q, k, v
    for (Value& part : parts) part = b_.reshape(part, by_head);
    const Value o = b_(Op::attention, parts, {{"causal", true}, {"scale", attention_scale(i)}});
    const Value y = linear(b_, "projection", b_.reshape(o, tokens_by(width)), normal(width, residual_deviation()));
    b_.leave();
    return y;
  }

  Value mlp(Value x) {
    b_.enter("mlp");
    const Value h = activation(linear(b_, "expand", x, normal(4 * options_.width, kDeviation)));
    const Value y = linear(b_, "contract", h, normal(options_.width, residual_deviation()));
    b_.leave();
    return y;
  }

  Value activation(Value x) {
    const auto& [name, op, approximate] = *std::ranges::find(kActivations, options_.activation, &GptActivation::name);
    return approximate.empty() ? b_(op, {x}) : b_(op, {x}, {{"approximate", std::string(approximate)}});
  }

  void head(Value x) {
    b_.enter("head");
    const Value gamma = named_parameter(b_, "final_norm.gamma", {options_.width}, {Init::ones, 1, {}});
    const Value beta = named_parameter(b_, "final_norm.beta", {options_.width}, {Init::zeros, 1, {}});
    x = b_(Op::layer_norm, {x, gamma, beta}, {{"epsilon", options_.layer_norm_epsilon}});
    // Loads the tied weight again: a use in another scope has a separate gradient until the boundary.
    const Value weight = b_.load(program_.slot_named("token_embedding.weight"));
    const Value flat = b_.matmul(x, weight, false, true);
    const Value logits = b_.reshape(flat, {kBatch, options_.context, options_.vocabulary});
    const auto loss = b_.append(Op::cross_entropy, {logits, targets_});
    b_.leave();

    program_.outputs.push_back({"logits", logits});
    program_.loss_sum = loss[0];
    program_.loss_count = loss[1];
  }

  static LinearOptions normal(int64_t outputs, double deviation) { return {.outputs = outputs, .init = "normal", .scale = deviation}; }
  NormOptions norm_options() const { return {.epsilon = options_.layer_norm_epsilon}; }

  Shape tokens_by(int64_t columns) const { return {kBatch * options_.context, columns}; }

  // Each block adds two projections to the residual stream; their variance is divided by the number of all projections.
  double residual_deviation() const { return kDeviation / std::sqrt(2.0 * static_cast<double>(options_.layers)); }

  /// The op's attribute `scale`; 0 means 1 / sqrt(D).
  double attention_scale(int64_t i) const {
    if (options_.scale_attn_weights && !options_.scale_attn_by_inverse_layer_idx) return 0;
    const int64_t size = options_.width / options_.heads;
    const double scale = options_.scale_attn_weights ? 1 / std::sqrt(static_cast<double>(size)) : 1;
    return options_.scale_attn_by_inverse_layer_idx ? scale / static_cast<double>(i + 1) : scale;
  }

  const GptOptions& options_;
  Program& program_;
  Builder b_;
  Value tokens_, targets_;
};

}  // namespace

void check_activation(std::string_view what, std::string_view key, std::string_view name) {
  std::vector<std::string> names;
  for (const GptActivation& activation : kActivations) names.emplace_back(activation.name);
  check_word(what, key, name, names);
}

void check_options(const GptOptions& o) {
  check_layers("gpt", o.layers);
  check_at_least_one("gpt", "width", o.width);
  check_at_least_one("gpt", "heads", o.heads);
  check_at_least_one("gpt", "context", o.context);
  check_vocabulary("gpt", o.vocabulary);
  check_heads("gpt", o.width, o.heads);
  check_activation("gpt", "activation", o.activation);
  check_above_zero("gpt", "layer_norm_epsilon", o.layer_norm_epsilon);
}

int64_t parameter_count(const GptOptions& o) {
  check_options(o);
  // Estimated in double first, because int64 would overflow without notice.
  const double width = static_cast<double>(o.width), rows = static_cast<double>(o.vocabulary) + static_cast<double>(o.context);
  const double estimate = rows * width + static_cast<double>(o.layers) * (12 * width * width + 13 * width) + 2 * width;
  check(estimate < 0x1p53, "gpt: these options ask for about ", estimate, " parameters: layers ", o.layers, ", width ", o.width,
        ", context ", o.context, ", vocabulary ", o.vocabulary, "; the limit is 2^53");
  return (o.vocabulary + o.context) * o.width + o.layers * (12 * o.width * o.width + 13 * o.width) + 2 * o.width;
}

Program build_gpt(const GptOptions& options) {
  parameter_count(options);  // checks
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  GptBuilder(program, options).build();
  return program;
}

}  // namespace st

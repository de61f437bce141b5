#include "models/layers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/heap.h"
#include "models/activation.h"
#include "models/json_options.h"

namespace st {
namespace {

void check_positive(std::string_view layer, std::string_view key, int64_t value) {
  check(value >= 1, layer, ": ", key, " must be at least 1, got ", value);
}

Init init_named(const std::string& name) {
  static const auto names = once_for_the_process([] { return std::vector<std::string>{"xavier", "kaiming", "normal", "zeros"}; });
  constexpr std::array<Init, 4> kInits = {Init::xavier, Init::kaiming, Init::normal, Init::zeros};
  check_word("linear", "init", name, names);
  return kInits[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
}

/// All rows of x as one matrix, so that there is one product over all of them and one for the weight's gradient.
Value as_matrix(Builder& b, Value x) {
  const Shape shape = b.shape(x);
  return shape.rank() == 2 ? x : b.reshape(x, {shape.elements(0, shape.rank() - 1), shape.last()});
}

Value with_last(Builder& b, Value y, Shape shape) {
  shape[shape.rank() - 1] = b.shape(y).last();
  return b.reshape(y, shape);
}

}  // namespace

Value named_parameter(Builder& b, const std::string& name, const Shape& shape, Initializer init) {
  Slot slot;
  slot.name = name;
  slot.type.shape = shape;
  slot.init = std::move(init);
  return b.load(b.program().add_slot(std::move(slot)));
}

Value linear(Builder& b, const std::string& name, Value x, const LinearOptions& options) {
  check_positive("linear", "outputs", options.outputs);
  const Shape shape = b.shape(x);
  check(shape.rank() >= 1, "linear: x must be [..., K], got ", text_of(b.type(x)));
  const std::string prefix = name.empty() ? "" : name + ".";
  const Value weight = b.parameter(prefix + "weight", {shape.last(), options.outputs}, {init_named(options.init), options.scale, {}});
  const Value bias = options.bias ? b.parameter(prefix + "bias", {options.outputs}, Initializer{}) : Value{};
  Value y = b.matmul(as_matrix(b, x), weight);
  if (options.bias) y = b.add(y, bias);
  return shape.rank() == 2 ? y : with_last(b, y, shape);
}

Value linear_layer(Builder& b, const std::string& name, Value x, const LinearOptions& options) {
  b.enter(name, false);
  const Value y = linear(b, "", x, options);
  b.leave();
  return y;
}

Value embedding_layer(Builder& b, const std::string& name, Value tokens, const EmbeddingOptions& options) {
  check_positive("embedding", "vocabulary", options.vocabulary);
  check_positive("embedding", "width", options.width);
  b.enter(name, false);
  const Value weight = b.parameter("weight", {options.vocabulary, options.width}, {Init::normal, options.scale, {}});
  const Value y = b(Op::embedding, {weight, tokens});
  b.leave();
  return y;
}

Value norm(Builder& b, const std::string& name, Value x, const NormOptions& options) {
  check_word("norm", "kind", options.kind, {"layer", "rms"});
  const Shape shape = b.shape(x);
  check(shape.rank() >= 1, "norm: x must be [..., C], got ", text_of(b.type(x)));
  const std::string prefix = name.empty() ? "" : name + ".";
  const Value gamma = b.parameter(prefix + "gamma", {shape.last()}, {Init::ones, 1, {}});
  const Attrs epsilon = {{"epsilon", options.epsilon}};
  if (options.kind == "rms") return b(Op::rms_norm, {x, gamma}, epsilon);
  return b(Op::layer_norm, {x, gamma, b.parameter(prefix + "beta", {shape.last()}, Initializer{})}, epsilon);
}

Value norm_layer(Builder& b, const std::string& name, Value x, const NormOptions& options) {
  b.enter(name, false);
  const Value y = norm(b, "", x, options);
  b.leave();
  return y;
}

Value attention_layer(Builder& b, const std::string& name, Value x, const AttentionOptions& options) {
  const int64_t heads = options.heads, groups = options.groups == 0 ? heads : options.groups;
  check_positive("attention", "heads", heads);
  check_positive("attention", "groups", groups);
  const Shape shape = b.shape(x);
  check(shape.rank() == 3, "attention: x must be [batch, T, C], got ", text_of(b.type(x)));
  const int64_t time = shape[1], width = shape[2];
  check(width > 0 && width % heads == 0, "attention: heads must divide C, got ", heads, " heads for x ", text_of(b.type(x)));
  check(heads % groups == 0, "attention: groups must divide heads, got ", groups, " groups and ", heads, " heads");
  const int64_t size = width / heads, group_width = size * groups;
  check(width <= INT64_MAX / 4, "attention: C must be below 2^61, got ", width);

  b.enter(name);
  const Value qkv = linear_layer(b, "qkv", x, {.outputs = width + 2 * group_width, .bias = options.bias});
  auto parts = b.append(Op::split, {qkv}, {{"axis", int64_t{-1}}, {"sizes", Ints{width, group_width, group_width}}});  // q, k, v
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = b.reshape(parts[i], {shape[0], time, i == 0 ? heads : groups, size});
    if (options.rope && i < 2) parts[i] = b(Op::rope, {parts[i]});
  }
  const Value o = b(Op::attention, parts, {{"causal", options.causal}});
  const Value y = linear_layer(b, "projection", b.reshape(o, shape), {.outputs = width, .bias = options.bias});
  b.leave();
  return y;
}

Value mlp_layer(Builder& b, const std::string& name, Value x, const MlpLayerOptions& options) {
  const Activation& activation = activation_named("mlp", options.activation);
  for (const int64_t width : options.hidden) check_positive("mlp", "each of hidden", width);
  check_positive("mlp", "outputs", options.outputs);
  b.enter(name);
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    x = linear_layer(b, text(i), x, {.outputs = options.hidden[i], .init = "kaiming", .scale = activation.gain});
    x = b(activation.op, {x});
  }
  x = linear_layer(b, text(options.hidden.size()), x, {.outputs = options.outputs});
  b.leave();
  return x;
}

Value dropout_layer(Builder& b, const std::string& name, Value x, const DropoutOptions& options) {
  b.enter(name, false);
  const Value y = b.dropout(x, options.rate);
  b.leave();
  return y;
}

}  // namespace st

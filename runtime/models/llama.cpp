#include "models/llama.h"

#include <string>

#include "base/error.h"
#include "ir/build.h"
#include "models/layers.h"
#include "models/model_sizes.h"

namespace st {
namespace {

constexpr int64_t kFfnMultiple = 256;

int64_t groups_of(const LlamaOptions& o) { return o.groups == 0 ? o.heads : o.groups; }

int64_t ffn_of(const LlamaOptions& o) { return o.ffn > 0 ? o.ffn : (8 * o.width / 3 + kFfnMultiple - 1) / kFfnMultiple * kFfnMultiple; }

/// Builds the forward pass in the order of the paper. Activations between blocks are [B*T, C], so that each matrix product, and each
/// weight's gradient, is one product over all tokens.
class LlamaBuilder {
 public:
  LlamaBuilder(Program& program, const LlamaOptions& options) : options_(options), program_(program), b_(program, 0) {}

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
    const Value weight = named_parameter(b_, "token_embedding.weight", {options_.vocabulary, options_.width}, normal());
    const Value y = b_.dropout(b_.reshape(b_(Op::embedding, {weight, tokens_}), tokens_by(options_.width)));
    b_.leave();
    return y;
  }

  Value block(Value x, int64_t i) {
    b_.enter(text("block.", i));
    x = b_.add(x, b_.dropout(attention(norm(b_, "attention_norm", x, norm_options()))));
    x = b_.add(x, b_.dropout(mlp(norm(b_, "mlp_norm", x, norm_options()))));
    b_.leave();
    return x;
  }

  Value attention(Value x) {
    const int64_t width = options_.width, size = width / options_.heads, groups = groups_of(options_);
    b_.enter("attention");
    const Value qkv = weights("qkv", x, width + 2 * groups * size);
    auto parts = b_.append(Op::split, {qkv}, {{"axis", int64_t{-1}}, {"sizes", Ints{width, groups * size, groups * size}}});
    const Value q = b_.reshape(parts[0], {kBatch, options_.context, options_.heads, size});
    const Value k = b_.reshape(parts[1], {kBatch, options_.context, groups, size});
    const Value v = b_.reshape(parts[2], {kBatch, options_.context, groups, size});
    const Value o = b_(Op::attention, {rotated(q), rotated(k), v}, {{"causal", true}});
    const Value y = weights("projection", b_.reshape(o, tokens_by(width)), width);
    b_.leave();
    return y;
  }

  Value rotated(Value x) { return b_(Op::rope, {x}, {{"base", options_.rope_base}}); }

  /// Gate and up are two products: fuse joins SiLU to the gate's. The halves of one joined product, and their gradients, would be copied:
  /// a step in fp32 took 4 % longer, in bf16 as long.
  Value mlp(Value x) {
    const int64_t ffn = ffn_of(options_);
    b_.enter("mlp");
    const Value gate = b_(Op::silu, {weights("gate", x, ffn)});
    const Value y = weights("down", b_.mul(gate, weights("up", x, ffn)), options_.width);
    b_.leave();
    return y;
  }

  void head(Value x) {
    b_.enter("head");
    const Value gamma = named_parameter(b_, "final_norm.gamma", {options_.width}, {Init::ones, 1, {}});
    x = b_(Op::rms_norm, {x, gamma}, {{"epsilon", options_.rms_norm_epsilon}});
    const Value flat = options_.tied_embedding ? b_.matmul(x, b_.load(program_.slot_named("token_embedding.weight")), false, true)
                                               : b_.matmul(x, b_.parameter("weight", {options_.width, options_.vocabulary}, normal()));
    const Value logits = b_.reshape(flat, {kBatch, options_.context, options_.vocabulary});
    const auto loss = b_.append(Op::cross_entropy, {logits, targets_});
    b_.leave();

    program_.outputs.push_back({"logits", logits});
    program_.loss_sum = loss[0];
    program_.loss_count = loss[1];
  }

  Value weights(const std::string& name, Value x, int64_t outputs) {
    return linear(b_, name, x, {.outputs = outputs, .bias = false, .init = "normal", .scale = kDeviation});
  }
  static Initializer normal() { return {Init::normal, kDeviation, {}}; }
  NormOptions norm_options() const { return {.kind = "rms", .epsilon = options_.rms_norm_epsilon}; }
  Shape tokens_by(int64_t columns) const { return {kBatch * options_.context, columns}; }

  static constexpr double kDeviation = 0.02;  // of every weight

  const LlamaOptions& options_;
  Program& program_;
  Builder b_;
  Value tokens_, targets_;
};

}  // namespace

void check_options(const LlamaOptions& o) {
  check_layers("llama", o.layers);
  check_at_least_one("llama", "width", o.width);
  check_at_least_one("llama", "heads", o.heads);
  check_at_least_one("llama", "context", o.context);
  check_vocabulary("llama", o.vocabulary);
  check_heads("llama", o.width, o.heads);
  check(o.width / o.heads % 2 == 0, "llama: a head's size, width / heads, must be even, because rope rotates pairs; got width ", o.width,
        " and heads ", o.heads);
  check(o.groups >= 0 && o.heads % groups_of(o) == 0, "llama: groups must divide heads, or be 0 for as many, got groups ", o.groups,
        " and heads ", o.heads);
  check(o.ffn >= 0, "llama: ffn must be at least 1, or 0 for 8/3 of the width, got ", o.ffn);
  check_above_zero("llama", "rope_base", o.rope_base);
  check_above_zero("llama", "rms_norm_epsilon", o.rms_norm_epsilon);
}

int64_t parameter_count(const LlamaOptions& o) {
  check_options(o);
  const auto count = [&o](auto width, auto ffn, auto vocabulary) {
    const auto layers = static_cast<decltype(width)>(o.layers), heads = static_cast<decltype(width)>(o.heads),
               groups = static_cast<decltype(width)>(groups_of(o));
    const auto qkv = width * (width + 2 * groups * (width / heads));
    return vocabulary * width * (o.tied_embedding ? 1 : 2) + layers * (qkv + width * width + 3 * width * ffn + 2 * width) + width;
  };
  // Estimated in double first, because int64 would overflow without notice.
  const auto real = [](int64_t size) { return static_cast<double>(size); };
  const double estimate = count(real(o.width), o.ffn > 0 ? real(o.ffn) : 8 * real(o.width) / 3, real(o.vocabulary));
  check(estimate < 0x1p53, "llama: these options ask for about ", estimate, " parameters: layers ", o.layers, ", width ", o.width, ", ffn ",
        o.ffn, ", vocabulary ", o.vocabulary, "; the limit is 2^53");
  return count(o.width, ffn_of(o), o.vocabulary);
}

Program build_llama(const LlamaOptions& options) {
  parameter_count(options);  // checks
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  LlamaBuilder(program, options).build();
  return program;
}

}  // namespace st

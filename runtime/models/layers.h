// Layers: parameters and their ops. Parameters are f32. Each X_layer has a scope of its own, `name`; linear and norm add to the scope that
// b is in, and name may be empty there. Parameters have the same names both ways: <scope>.<name>.weight. Throws invalid_argument for
// invalid shapes and options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/build.h"

namespace st {

/// Adds and loads a parameter whose name does not follow from the scope.
Value named_parameter(Builder& b, const std::string& name, const Shape& shape, Initializer init);

struct LinearOptions {
  int64_t outputs = 0;
  bool bias = true;
  std::string init = "xavier";  // xavier, kaiming, normal, zeros
  double scale = 1;             // as in Initializer
};
/// x [..., K] -> [..., outputs]. Parameters name.weight [K, outputs], name.bias [outputs].
Value linear(Builder& b, const std::string& name, Value x, const LinearOptions& options);
Value linear_layer(Builder& b, const std::string& name, Value x, const LinearOptions& options);

struct EmbeddingOptions {
  int64_t vocabulary = 0, width = 0;
  double scale = 0.02;  // standard deviation, GPT-2's
};
/// tokens [...] -> [..., width]. Parameter name.weight [vocabulary, width].
Value embedding_layer(Builder& b, const std::string& name, Value tokens, const EmbeddingOptions& options);

struct NormOptions {
  std::string kind = "layer";  // layer, rms
  double epsilon = 1e-5;
};
/// Normalises over the last dimension. Parameters name.gamma (ones) and, for kind layer, name.beta (zeros).
Value norm(Builder& b, const std::string& name, Value x, const NormOptions& options);
Value norm_layer(Builder& b, const std::string& name, Value x, const NormOptions& options);

struct AttentionOptions {
  int64_t heads = 0;
  int64_t groups = 0;  // key and value heads (Ainslie et al. 2023, arXiv:2305.13245); 0: as many as heads
  bool causal = true;
  bool rope = false;  // rotary position embedding of queries and keys (Su et al. 2021, arXiv:2104.09864)
  bool bias = true;
};
/// Self-attention, x [B, T, C] -> [B, T, C]. Parameters name.qkv and name.projection, each a linear layer with Xavier initialisation. Its
/// scope is a boundary.
Value attention_layer(Builder& b, const std::string& name, Value x, const AttentionOptions& options);

struct MlpLayerOptions {
  std::vector<int64_t> hidden;
  int64_t outputs = 0;
  std::string activation = "gelu";  // gelu, relu, silu, tanh
};
/// x [..., K] -> [..., outputs]. Parameters name.<i>, each a linear layer: He-initialised for the activation, the last one Xavier. Its
/// scope is a boundary.
Value mlp_layer(Builder& b, const std::string& name, Value x, const MlpLayerOptions& options);

struct DropoutOptions {
  double rate = 0;  // 0: the recipe's
};
Value dropout_layer(Builder& b, const std::string& name, Value x, const DropoutOptions& options);

}  // namespace st

// Generates text with a trained token model, one token at a time from the logits at the last position.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "model/model.h"

namespace st {

struct GenerateOptions {
  int64_t tokens = 200;      // upper limit
  double temperature = 0.8;  // 0: always the most likely token
  int64_t top_k = 40;        // 0: all tokens
  uint64_t seed = 0;         // token i is sampled with Philox of (seed, i)
};

/// Plans once, then generates any number of times. The model needs an input "tokens" i32 [batch, T] and an output "logits" [batch, T, V].
class Generator {
 public:
  explicit Generator(const std::shared_ptr<Model>& model);
  /// With other weights of the same model, borrowed. With `gate`, each forward pass reads through it and throws busy while a step writes
  /// the weights; the gate is not held while on_token runs. `ranks`: the group over which the model is sharded; `weights` are this rank's
  /// shards.
  Generator(std::shared_ptr<Model> model, Storage& weights, int threads, WeightsGate* gate, ExchangeQueue* ranks = nullptr);

  /// Continues `prompt`, which has at least one token; the model sees its last T tokens. Calls on_token for each new token; false ends the
  /// run. Throws invalid_argument for an empty prompt or a token outside the vocabulary. Over ranks, each rank has its own prompt, and all
  /// end after the same number of tokens: as soon as one ends or fails.
  std::vector<int32_t> run(std::span<const int32_t> prompt, const GenerateOptions& options,
                           const std::function<bool(int32_t)>& on_token = {}, ShardedModelCall* collective = nullptr);

 private:
  void forward();

  std::shared_ptr<Model> model_;
  WeightsGate* gate_;
  Storage* pieces_ = nullptr;  // this rank's shards of the weights; null: the model is not sharded
  std::unique_ptr<Workers> workers_;
  CancelToken cancelled_;
  std::unique_ptr<Executor> executor_;
  SlotId tokens_ = -1, logits_ = -1;
  int64_t context_ = 0, vocabulary_ = 0;
};

}  // namespace st

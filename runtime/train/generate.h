// Text from a trained token model: one token after the other, each from the logits of the last one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "train/model.h"

namespace st {

struct GenerateOptions {
  int64_t tokens = 200;      // to generate at most
  double temperature = 0.8;  // 0: always the likeliest
  int64_t top_k = 40;        // 0: all
  uint64_t seed = 0;         // token i is drawn with Philox of (seed, i)
};

/// Plans once, then generates as often as asked. The model has an input "tokens" i32 [batch, T] and an output "logits" [batch, T, V].
class Generator {
 public:
  explicit Generator(const std::shared_ptr<Model>& model);
  /// With other weights of the same model, borrowed, and so many threads. With `gate`, each forward pass reads through it: busy while a
  /// step writes the weights; nothing is held while on_token runs. `ranks`: who have the model in pieces, of which `weights` are this
  /// rank's.
  Generator(std::shared_ptr<Model> model, Storage& weights, int threads, WeightsGate* gate, ExchangeQueue* ranks = nullptr);

  /// Continues `prompt` (at least one token; of a longer one than the context the last T are seen). Calls on_token for each new one; its
  /// false ends the run. Throws invalid_argument for an empty prompt or a token outside the vocabulary. Of ranks each has a prompt of its
  /// own, and all end after the same number of tokens: where one does, or fails.
  std::vector<int32_t> run(std::span<const int32_t> prompt, const GenerateOptions& options,
                           const std::function<bool(int32_t)>& on_token = {}, JointCall* joint = nullptr);

 private:
  void forward();

  std::shared_ptr<Model> model_;
  WeightsGate* gate_;
  Storage* pieces_ = nullptr;  // of ranks: this one's weights
  std::unique_ptr<Workers> workers_;
  CancelToken cancelled_;
  std::unique_ptr<Executor> executor_;
  SlotId tokens_ = -1, logits_ = -1;
  int64_t context_ = 0, vocabulary_ = 0;
};

}  // namespace st

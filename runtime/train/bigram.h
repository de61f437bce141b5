// The bigram baseline: predicts each token from the previous one alone. A language model that has learned anything has a lower loss.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace st {

/// Returns token i of a sequence; called with ascending i.
using TokenAt = std::function<int64_t(int64_t i)>;

/// Mean negative log likelihood (nats per token) of validation tokens 1..m-1 given the previous token, from counts of the train tokens:
///   p(b | a) = (count(a b) + k q(b)) / (count(a) + k),   q(b) = (count(b) + 1) / (n + V)
/// where k >= 1 is the number of different successors of a: pairs are smoothed towards the unigram as in Witten and Bell (1991), the
/// unigram by adding one. Nothing is tuned on the validation part. Memory grows with the pairs seen, not with V^2. Throws invalid_argument
/// for fewer than 2 tokens on either side and for an id outside V.
double bigram_loss(int64_t train_tokens, const TokenAt& train, int64_t validation_tokens, const TokenAt& validation, int64_t vocabulary);

template <class Token>
double bigram_loss(std::span<const Token> train, std::span<const Token> validation, int64_t vocabulary) {
  const auto at = [](std::span<const Token> tokens) {
    return [tokens](int64_t i) { return static_cast<int64_t>(tokens[static_cast<size_t>(i)]); };
  };
  return bigram_loss(static_cast<int64_t>(train.size()), at(train), static_cast<int64_t>(validation.size()), at(validation), vocabulary);
}

}  // namespace st

// The bigram table: what can be known of a text from the previous token alone. A language model that learned anything is below its loss.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace st {

/// Gives token i of a sequence; called with i rising.
using TokenAt = std::function<int64_t(int64_t i)>;

/// Mean negative log likelihood (nats a token) of validation tokens 1..m-1 given the one before, under counts of the train tokens:
///   p(b | a) = (count(a b) + k q(b)) / (count(a) + k),   q(b) = (count(b) + 1) / (n + V)
/// where k = the number of different successors of a, at least 1: pairs are smoothed towards the unigram as Witten and Bell (1991) do, the
/// unigram by adding one. Nothing is tuned on the validation part. Holds the pairs seen, not V^2 counts. Throws invalid_argument: fewer
/// than 2 tokens on a side, an id outside V.
double bigram_loss(int64_t train_tokens, const TokenAt& train, int64_t validation_tokens, const TokenAt& validation, int64_t vocabulary);

template <class Token>
double bigram_loss(std::span<const Token> train, std::span<const Token> validation, int64_t vocabulary) {
  const auto at = [](std::span<const Token> tokens) {
    return [tokens](int64_t i) { return static_cast<int64_t>(tokens[static_cast<size_t>(i)]); };
  };
  return bigram_loss(static_cast<int64_t>(train.size()), at(train), static_cast<int64_t>(validation.size()), at(validation), vocabulary);
}

}  // namespace st

#include "train/bigram.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace st {
namespace {

struct Counts {
  std::unordered_map<int64_t, int64_t> pairs;  // a * V + b
  std::vector<int64_t> tokens;                 // of each token, anywhere
  std::vector<int64_t> followed;               // of each token, with one after it
  std::vector<int64_t> successors;             // different ones
};

int64_t token_at(const TokenAt& tokens, int64_t i, int64_t vocabulary, const char* part) {
  const int64_t token = tokens(i);
  check(token >= 0 && token < vocabulary, "bigram: ", part, " token ", i, " must be in [0, ", vocabulary, "), got ", token);
  return token;
}

Counts count(int64_t n, const TokenAt& train, int64_t vocabulary) {
  const std::vector<int64_t> zeros(static_cast<size_t>(vocabulary));
  Counts counts{{}, zeros, zeros, zeros};
  int64_t before = -1;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t token = token_at(train, i, vocabulary, "train");
    ++counts.tokens[static_cast<size_t>(token)];
    if (before >= 0) {
      ++counts.followed[static_cast<size_t>(before)];
      if (++counts.pairs[before * vocabulary + token] == 1) ++counts.successors[static_cast<size_t>(before)];
    }
    before = token;
  }
  return counts;
}

}  // namespace

double bigram_loss(int64_t train_tokens, const TokenAt& train, int64_t validation_tokens, const TokenAt& validation, int64_t vocabulary) {
  check(vocabulary >= 1 && vocabulary <= INT32_MAX, "bigram: vocabulary must be 1 to 2147483647, got ", vocabulary);
  check(train_tokens >= 2 && validation_tokens >= 2, "bigram: needs at least 2 tokens in each part, got ", train_tokens,
        " for training and ", validation_tokens, " for validation");
  const Counts counts = count(train_tokens, train, vocabulary);

  double sum = 0;
  int64_t before = token_at(validation, 0, vocabulary, "validation");
  for (int64_t i = 1; i < validation_tokens; ++i) {
    const int64_t token = token_at(validation, i, vocabulary, "validation");
    const auto a = static_cast<size_t>(before), b = static_cast<size_t>(token);
    const auto found = counts.pairs.find(before * vocabulary + token);
    const double pairs = found == counts.pairs.end() ? 0 : static_cast<double>(found->second);
    const double strength = static_cast<double>(std::max<int64_t>(1, counts.successors[a]));
    const double unigram = static_cast<double>(counts.tokens[b] + 1) / static_cast<double>(train_tokens + vocabulary);
    sum -= std::log((pairs + strength * unigram) / (static_cast<double>(counts.followed[a]) + strength));
    before = token;
  }
  return sum / static_cast<double>(validation_tokens - 1);
}

}  // namespace st

// Rows of tokens given by a host, including rows that a trainer refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "thrown_error.h"
#include "train/trainer.h"

namespace st {

/// Each row's targets are the tokens that follow.
class TokenRows {
 public:
  TokenRows(int64_t rows, int64_t context, int64_t vocabulary) : context_(context), tokens_(static_cast<size_t>(rows * context + 1)) {
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<int32_t>((i * i + 3 * i) % static_cast<size_t>(vocabulary));
  }
  std::vector<HostView> rows(int64_t from, int64_t count) const {
    const int32_t* first = tokens_.data() + from * context_;
    return {plain_view("tokens", DType::i32, {count, context_}, first), plain_view("targets", DType::i32, {count, context_}, first + 1)};
  }
  std::vector<HostView> first(int64_t count) const { return rows(0, count); }

 private:
  int64_t context_;
  std::vector<int32_t> tokens_;
};

inline Code code_of(const std::function<void()>& call) { return error_of(call).code(); }

}  // namespace st

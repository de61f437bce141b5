// A dataset of token sequences without a file: each token is the previous one plus one, modulo the vocabulary.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace st {

class Sequences : public Dataset {
 public:
  /// Row r starts at token 3 r. With `ignored`, the first r % 4 of its targets are -100, which the loss ignores.
  Sequences(int64_t rows, int64_t context, int64_t vocabulary, bool ignored = false)
      : rows_(rows),
        context_(context),
        vocabulary_(vocabulary),
        ignored_(ignored),
        fields_{{"tokens", DType::i32, {context}}, {"targets", DType::i32, {context}}} {}

  int64_t rows() const override { return rows_; }
  std::span<const Field> fields() const override { return fields_; }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override {
    for (size_t r = 0; r < rows.size(); ++r)
      for (int64_t t = 0; t < context_; ++t) {
        const int64_t at = static_cast<int64_t>(r) * context_ + t;
        reinterpret_cast<int32_t*>(out[0].data)[at] = static_cast<int32_t>((rows[r] * 3 + t) % vocabulary_);
        const bool left_out = ignored_ && t < rows[r] % 4;
        reinterpret_cast<int32_t*>(out[1].data)[at] = left_out ? -100 : static_cast<int32_t>((rows[r] * 3 + t + 1) % vocabulary_);
      }
  }

 private:
  int64_t rows_, context_, vocabulary_;
  bool ignored_;
  std::vector<Field> fields_;
};

}  // namespace st

// A, B and C of one product: fresh numbers for each sample, and the check that a product of them is right.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gemm_shapes.h"

namespace cli {

class GemmOperands {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

 public:
  using Matrix = std::unique_ptr<void, Free>;
  /// On a cache line's bounds, in huge pages where the system gives them, as the tensors of a training step are.
  static Matrix allocate(int64_t bytes);

  explicit GemmOperands(const GemmShape& shape);

  /// A and B are uniform in [-1, 1), rounded to their element; C is all NaN.
  void draw(uint64_t seed);
  /// Where C is not A B; "" when it is. Small products are compared everywhere, others on some rows and columns, with a product in double
  /// precision; a NaN that is left is found anywhere.
  std::string difference(uint64_t seed) const;

  const GemmShape& shape() const { return shape_; }
  /// Of the shape's element.
  void* a() const { return a_.get(); }
  void* b() const { return b_.get(); }
  float* c() const { return static_cast<float*>(c_.get()); }
  int64_t element_bytes() const { return shape_.element == Element::fp32 ? 4 : 2; }
  /// Elements between the rows of A and B as they lie.
  int64_t a_row() const { return shape_.transposed_a ? shape_.m : shape_.k; }
  int64_t b_row() const { return shape_.transposed_b ? shape_.k : shape_.n; }

 private:
  void fill(void* values, int64_t count, uint64_t seed) const;
  template <class Value>
  std::string difference_at(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns) const;

  GemmShape shape_;
  Matrix a_, b_, c_;
};

}  // namespace cli

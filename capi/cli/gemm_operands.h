// A, B and C of one product: new values for each sample, and the check of the result.
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
  /// Aligned to cache lines, in huge pages if the system provides them, like the tensors of a training step.
  static Matrix allocate(int64_t bytes);

  explicit GemmOperands(const GemmShape& shape);

  /// A and B are uniform in [-1, 1), rounded to their element; C is all NaN.
  void draw(uint64_t seed);
  /// Where C differs from A B; "" if it is right. Compares small products everywhere and large ones in some rows and columns, with a
  /// double-precision product. Finds a remaining NaN anywhere.
  std::string difference(uint64_t seed) const;

  const GemmShape& shape() const { return shape_; }
  /// Arrays of the shape's element type.
  void* a() const { return a_.get(); }
  void* b() const { return b_.get(); }
  float* c() const { return static_cast<float*>(c_.get()); }
  int64_t element_bytes() const { return shape_.element == Element::fp32 ? 4 : 2; }
  /// Row strides of A and B as stored, in elements.
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

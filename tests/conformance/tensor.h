// A tensor in the tests' own memory, for cases, fixtures and expected values.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace st::conformance {

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape);  // zeros
  static Tensor of(const Shape& shape, const std::vector<double>& values, DType dtype = DType::f32);
  static Tensor scalar(double value, DType dtype) { return of({}, {value}, dtype); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  double at(int64_t i) const;          // any dtype
  std::vector<double> values() const;  // all of them, for loops
  void set(int64_t i, double value);   // rounds to nearest even
  Tensor to(DType dtype) const;        // element by element
  Tensor reshaped(const Shape& shape) const;
  bool operator==(const Tensor& other) const;  // bitwise

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

/// Allowed distance between two kernels, in units in the last place of the compute type (fp32 for bf16 and fp16 storage, which are allowed
/// one unit of their own in addition, since rounding may go either way). {}: all bits equal except for the sign of zero.
struct Tolerance {
  double each = 0;     // relative to the expected element: elementwise formulas
  double largest = 0;  // relative to the largest expected element: sums, whose terms cancel
  double stored = 0;   // relative to the largest, in units of 16-bit storage: kernels that round intermediates to it
  bool exact() const { return each == 0 && largest == 0; }
};

/// 2^-23 for f32, 2^-52 for f64, ...
double unit_of(DType dtype);

}  // namespace st::conformance

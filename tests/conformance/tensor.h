// A tensor in the tests' own memory: cases, fixtures and expected values are made of it.
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

  double at(int64_t i) const;         // any dtype
  void set(int64_t i, double value);  // rounds to nearest even
  Tensor to(DType dtype) const;       // element by element
  Tensor reshaped(const Shape& shape) const;
  bool operator==(const Tensor&) const = default;  // bitwise

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

/// How far two kernels may be apart, in units of the last place of the type that is computed in (fp32 for bf16 and fp16 storage, which are
/// allowed one unit of their own on top: a rounding may fall to either side). {}: every bit is the same but for the sign of zero.
struct Tolerance {
  double each = 0;     // of the wanted element: elementwise formulas
  double largest = 0;  // of the largest wanted element of the tensor: sums, whose terms cancel
  double stored = 0;   // of the largest, in units of 16-bit storage: kernels that round intermediates to it
  bool exact() const { return each == 0 && largest == 0; }
};

/// 2^-23 for f32, 2^-52 for f64, ...
double unit_of(DType dtype);

}  // namespace st::conformance

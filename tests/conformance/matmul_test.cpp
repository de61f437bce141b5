#include <array>
#include <utility>

#include "conformance.h"

namespace st::conformance {
namespace {

// fp32 sums of up to 300 random terms, in any order: some units of the largest element (errors add up while terms cancel).
const Cases matmul_cases(Op::matmul, {.largest = 8}, [](Suite& s) {
  struct Product {
    Shape a, b;  // not transposed
  };
  const Product products[] = {
      {{1, 1}, {1, 1}},
      {{1, 37}, {37, 1}},
      {{3, 37}, {37, 5}},
      {{37, 3}, {3, 129}},
      {{129, 1}, {1, 129}},
      {{17, 129}, {129, 37}},
      {{65, 300}, {300, 33}},
      {{0, 3}, {3, 5}},
      {{3, 0}, {0, 5}},
      {{3, 5}, {5, 0}},
      {{2, 3, 4}, {2, 4, 5}},
      {{2, 1, 3, 4}, {3, 4, 5}},
      {{2, 3, 4}, {4, 5}},
      {{3, 4}, {2, 4, 5}},
      {{0, 3, 4}, {0, 4, 5}},
      {{130, 70}, {70, 90}},
      {{3, 1, 37, 9}, {2, 9, 7}},
      {{4, 9, 13}, {13, 21}},
      {{9, 13}, {4, 13, 21}},
      {{2, 3, 9, 13}, {2, 3, 13, 21}},
      {{2, 3, 9, 13}, {3, 13, 21}},
      {{2, 1, 3, 9, 13}, {1, 5, 1, 13, 21}},
      {{2, 1, 9, 13}, {1, 3, 13, 21}},
      {{1, 1, 9, 13}, {4, 2, 13, 21}},
      {{0, 2, 9, 13}, {0, 2, 13, 21}},
  };
  const auto swapped = [](Shape shape) {
    std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
    return shape;
  };
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [a, b] : products)
        s.add({s.normal(ta ? swapped(a) : a), s.normal(tb ? swapped(b) : b)}, {{"transpose_a", ta}, {"transpose_b", tb}});
  // Sums of 16-bit operands, not rounded to 16 bits.
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const Attrs attrs = {{"transpose_a", ta}, {"transpose_b", tb}, {"result", std::string("f32")}};
      const auto at = [](bool transposed, int64_t rows, int64_t columns) {
        return transposed ? Shape{columns, rows} : Shape{rows, columns};
      };
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 5, 7}, {3, 129, 37}, {67, 33, 300}})
        s.add_special({s.normal(at(ta, m, k)), s.normal(at(tb, k, n))}, attrs).dtypes = {DType::f32, DType::bf16, DType::f16};
    }
  s.add_special({s.normal({2, 1, 3, 4}), s.normal({3, 4, 5})}, {{"result", std::string("f32")}}).dtypes = {DType::bf16, DType::f16};
});

// Large enough for several tiles in each dimension of the fast kernels.
const Cases large_matmul_cases(Op::matmul, {.largest = 16}, [](Suite& s) {
  s.add({s.normal({259, 517}), s.normal({517, 131})}).dtypes = {DType::f32};
  s.add({s.normal({517, 259}), s.normal({131, 517})}, {{"transpose_a", true}, {"transpose_b", true}}).dtypes = {DType::f32};
  s.add_special({s.normal({259, 517}), s.normal({517, 131})}, {{"result", std::string("f32")}}).dtypes = {DType::bf16, DType::f16};
  s.add_special({s.normal({517, 259}), s.normal({517, 131})}, {{"transpose_a", true}, {"result", std::string("f32")}}).dtypes = {
      DType::bf16};
});

// As matmul; the bias is one more term.
const Cases linear_cases(Op::linear, {.largest = 8}, [](Suite& s) {
  const Shape inputs[] = {{37}, {1, 37}, {3, 37}, {2, 3, 37}, {0, 37}, {67, 37}};
  for (const Shape& x : inputs)
    for (const int64_t columns : {1, 5, 129, 0}) {
      s.add({s.normal(x), s.normal({37, columns}), s.normal({columns})});
      s.add({s.normal(x), s.normal({columns, 37}), s.normal({columns})}, {{"transpose_weight", true}});
    }
  for (const Shape& x : inputs) {  // fp32 results of 16-bit operands, with an fp32 bias
    OpCase& summed = s.add_special({s.normal(x), s.normal({37, 129}), s.normal({129})}, {{"result", std::string("f32")}});
    summed.dtypes = {DType::f32, DType::bf16, DType::f16};
    summed.statistics = {2};
  }
  s.add({s.normal({3, 0}), s.normal({0, 5}), s.normal({5})});  // only the bias
  s.add({s.normal({2, 3}), s.normal({3, 4}), s.normal({4})});
});

// The layout is private to each backend, so only an empty weight gives the same; fused_linear_test.cpp checks that products read it right.
const Cases pack_cases(Op::pack, {}, [](Suite& s) {
  for (const bool transposed : {false, true})
    s.add({s.normal({0, 5})}, {{"transpose_weight", transposed}, {"rows", int64_t{3}}}).slots = {Tensor(DType::u8, {64})};
});

}  // namespace
}  // namespace st::conformance

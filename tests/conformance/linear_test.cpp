#include "conformance.h"

namespace st::conformance {
namespace {

// As matmul; the bias is one more term.
const Cases linear_cases(Op::linear, {.largest = 8}, [](Suite& s) {
  const Shape inputs[] = {{37}, {1, 37}, {3, 37}, {2, 3, 37}, {0, 37}, {67, 37}};
  for (const Shape& x : inputs)
    for (const int64_t columns : {1, 5, 129, 0}) {
      s.add({s.normal(x), s.normal({37, columns}), s.normal({columns})});
      s.add({s.normal(x), s.normal({columns, 37}), s.normal({columns})}, {{"transpose_weight", true}});
    }
  for (const Shape& x : inputs) {  // fp32 results of 16-bit operands, and a bias like them
    OpCase& summed = s.add_special({s.normal(x), s.normal({37, 129}), s.normal({129})}, {{"result", std::string("f32")}});
    summed.dtypes = {DType::f32, DType::bf16, DType::f16};
    summed.statistics = {2};
  }
  s.add({s.normal({3, 0}), s.normal({0, 5}), s.normal({5})});  // the bias alone
  s.add({s.normal({2, 3}), s.normal({3, 4}), s.normal({4})});
});

}  // namespace
}  // namespace st::conformance

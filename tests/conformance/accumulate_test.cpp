#include "conformance.h"

namespace st::conformance {
namespace {

// One correctly rounded sum: the same bits everywhere.
const Cases accumulate_cases(Op::accumulate, {}, [](Suite& s) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const Shape& shape : shapes()) {
      OpCase& c = s.add({s.normal(shape).to(dtype)});
      c.slots = {s.normal(shape).to(dtype)};
      c.dtypes = {DType::f32};
    }
});

}  // namespace
}  // namespace st::conformance

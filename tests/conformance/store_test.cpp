#include "conformance.h"

namespace st::conformance {
namespace {

// A copy: the same bits everywhere.
const Cases store_cases(Op::store, {}, [](Suite& s) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64})
    for (const Shape& shape : shapes()) {
      OpCase& c = s.add({s.normal(shape).to(dtype)});
      c.slots = {s.normal(shape).to(dtype)};
      c.dtypes = {DType::f32};
    }
  OpCase& flags = s.add({s.flags({37})});
  flags.slots = {s.flags({37})};
});

}  // namespace
}  // namespace st::conformance

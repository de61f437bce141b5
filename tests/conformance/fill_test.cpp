#include "conformance.h"

namespace st::conformance {
namespace {

const Cases fill_cases(Op::fill, {}, [](Suite& s) {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"})
    for (const Shape& shape : shapes())
      s.add({}, {{"shape", Ints(shape.begin(), shape.end())}, {"value", 3.0}, {"dtype", std::string(dtype)}});
  for (const double value : {0.0, -0.1, 1e30}) s.add({}, {{"shape", Ints{37}}, {"value", value}});
});

}  // namespace
}  // namespace st::conformance

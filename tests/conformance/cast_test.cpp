#include "conformance.h"

namespace st::conformance {
namespace {

// Rounded once, to nearest even: the same bits everywhere.
const Cases cast_cases(Op::cast, {}, [](Suite& s) {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"}) {
    const Attrs attrs = {{"dtype", std::string(dtype)}};
    for (const Shape& shape : shapes()) s.add_special({s.uniform(shape, 0, 200)}, attrs);
    s.add_special({s.flags({37})}, attrs);
    s.add_special({s.integers({37}, 100, DType::i32)}, attrs);
    s.add_special({s.integers({37}, 100, DType::i64)}, attrs);
    s.add_special({s.integers({37}, 100, DType::u8)}, attrs);
  }
  for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
    s.add_special({special_values()}, {{"dtype", std::string(dtype)}});
    // Halfway between two neighbours of bf16, and of f16.
    s.add_special({Tensor::of({6}, {1.00390625, 1.01171875, -1.00390625, 1.00048828125, 1.00146484375, 65519})},
                  {{"dtype", std::string(dtype)}});
  }
  for (const char* dtype : {"i32", "i64"})
    s.add_special({Tensor::of({6}, {2.5, -2.5, 1e6, -1e6, 0.99, -0.99})}, {{"dtype", std::string(dtype)}});
  s.add({s.normal({3, 37})}, {{"dtype", std::string("f64")}});
});

}  // namespace
}  // namespace st::conformance

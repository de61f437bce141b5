#include "conformance.h"

namespace st::conformance {
namespace {

// The layout is each backend's own, so only that of nothing is the same; that products read it right is in fused_linear_test.cpp.
const Cases pack_cases(Op::pack, {}, [](Suite& s) {
  for (const bool transposed : {false, true})
    s.add({s.normal({0, 5})}, {{"transpose_weight", transposed}, {"rows", int64_t{3}}}).slots = {Tensor(DType::u8, {64})};
});

}  // namespace
}  // namespace st::conformance

#include "conformance.h"

namespace st::conformance {
namespace {

// A view, not a kernel; its gradient is one too.
const Cases reshape_cases(Op::reshape, {}, [](Suite& s) {
  s.add({s.normal({3, 4, 5})}, {{"shape", Ints{6, 10}}});
  s.add({s.normal({1})}, {{"shape", Ints{}}});
  s.add({s.normal({})}, {{"shape", Ints{1, 1}}});
});

}  // namespace
}  // namespace st::conformance

#include "conformance.h"

namespace st::conformance {
namespace {

// Changes a sign: the same bits everywhere.
const Cases abs_cases(Op::abs, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  s.add_special({special_values()});
});

}  // namespace
}  // namespace st::conformance

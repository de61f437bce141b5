#include "conformance.h"

namespace st::conformance {
namespace {

// The tail of Phi: its exponent, x^2 / 2 or so, magnifies the rounding of x.
const Cases gelu_cases(Op::gelu, {.each = 12}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{{"approximate", std::string("tanh")}}, Attrs{{"approximate", std::string("erf")}}}) {
    for (const Shape& shape : shapes()) s.add({s.normal(shape)}, attrs);
    s.add_special({special_values()}, attrs);
  }
});

// x Phi'(x) + Phi(x) crosses zero: relative to the largest there. The rounding of s is multiplied by x and the slope of u.
const Cases gelu_backward_cases(Op::gelu_backward, {.each = 8, .largest = 8}, [](Suite& s) {
  for (const char* approximate : {"tanh", "erf"}) {
    const Attrs attrs = {{"approximate", std::string(approximate)}};
    for (const Shape& shape : shapes()) s.add({s.normal(shape), s.normal(shape)}, attrs);
    s.add({s.normal({129}, 6), s.normal({129})}, attrs);
  }
});

}  // namespace
}  // namespace st::conformance

#include "backend/index_check.h"

#include "base/error.h"

namespace st {
namespace {

Shape coordinates(int64_t element, const Shape& shape) {
  Shape at = shape;
  for (int32_t axis = shape.rank() - 1; axis >= 0; --axis) {
    at[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return at;
}

}  // namespace

void fail_index(std::string_view op, std::string_view what, int64_t value, int64_t element, const Shape& shape, std::string_view range,
                int64_t size, std::string_view way_out) {
  Error error(Code::invalid_argument, text(op, ": ", what, " ", value, " at ", coordinates(element, shape), " is outside ", range, " 0..",
                                           size - 1, "; ", way_out));
  error.place.op = op;
  throw error;
}

}  // namespace st

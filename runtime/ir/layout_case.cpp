#include "ir/layout_case.h"

#include <string>

#include "base/error.h"
#include "base/text.h"
#include "ir/shape_rules.h"

namespace st::layout_rule {

void refuse(const Case& on, std::string_view why) {
  std::string message = text(name_of(on.op.op), ": layouts do not fit along the ", name_of(on.axis), " axis");
  for (size_t i = 0; i < on.inputs(); ++i)
    message += text(i == 0 ? ": " : ", ", shape_rule::input_name(on.op, i), " is ", on.op.in[i], on.is_replicated(i) ? " replicated" : "");
  fail(Code::invalid_argument, text(message, "; ", why));
}

void need_replicated(const Case& on, size_t input) {
  if (on.is_replicated(input)) return;
  refuse(on, text(shape_rule::input_name(on.op, input), " must be replicated: ", on.is_partial(input) ? kReduceFirst : kGatherFirst));
}

void need_equal(const Case& on, size_t a, size_t b) {
  if (!(on.in(a) == on.in(b)))
    refuse(on, text(shape_rule::input_name(on.op, a), " and ", shape_rule::input_name(on.op, b), " must have one layout"));
}

AxisLayout rows_of(const Case& on, int32_t axis) {
  if (on.is_partial(0)) refuse(on, kReduceFirst);
  if (on.is(0, Kind::flat) || (on.is_sharded(0) && on.in(0).where == axis)) refuse(on, kGatherFirst);
  return on.in(0);
}

}  // namespace st::layout_rule

// What a layout rule is given, an op on one axis of the mesh, and what several rules have in common. Internal to ir: the rules themselves
// are reached through infer_layouts().
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/rules.h"

namespace st::layout_rule {

using Kind = AxisLayout::Kind;
inline constexpr AxisLayout kReplicated{};
inline constexpr AxisLayout kPartial{.kind = Kind::partial, .where = 0, .grain = 0};

inline AxisLayout sharded(int32_t dimension, int64_t grain = 0) { return {.kind = Kind::sharded, .where = dimension, .grain = grain}; }

/// One op on one axis of the mesh. `out` has the shapes.
struct Case {
  const OpTypes& op;
  std::span<const Type> out;
  MeshAxis axis;

  size_t inputs() const { return op.in.size(); }
  const AxisLayout& in(size_t input) const { return op.in[input].layout[axis]; }
  const Shape& shape(size_t input) const { return op.in[input].shape; }
  int32_t rank(size_t input) const { return shape(input).rank(); }
  bool is(size_t input, Kind kind) const { return in(input).kind == kind; }
  bool is_replicated(size_t input) const { return is(input, Kind::replicated); }
  bool is_partial(size_t input) const { return is(input, Kind::partial); }
  bool is_sharded(size_t input) const { return is(input, Kind::sharded); }
  bool all(Kind kind) const {
    for (size_t i = 0; i < inputs(); ++i)
      if (!is(i, kind)) return false;
    return true;
  }
};

using Layouts = std::vector<AxisLayout>;  // by output
inline Layouts every_output(const Case& on, AxisLayout layout) { return Layouts(on.out.size(), layout); }

inline constexpr std::string_view kReduceFirst = "a partial value must be summed over the ranks first";
inline constexpr std::string_view kGatherFirst = "the sharded dimension must be gathered first";

// Each throws invalid_argument with the op, the layouts of its inputs, and why.
[[noreturn]] void refuse(const Case& on, std::string_view why);
void need_replicated(const Case& on, size_t input);
void need_equal(const Case& on, size_t a, size_t b);
/// The layout of the first input, in which the elements along dimension `axis` must be on one rank: a row is one unit of work.
AxisLayout rows_of(const Case& on, int32_t axis);

}  // namespace st::layout_rule

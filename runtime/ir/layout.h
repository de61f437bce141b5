// Layout: how a value's elements are distributed along each axis of the mesh of ranks. It is part of the type. The verifier refuses ops on
// mismatched layouts, so that ZeRO, clipping, loss reduction and tensor parallelism compose.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/mesh.h"

namespace st {

struct AxisLayout {
  enum class Kind : int32_t {
    replicated,  // each rank has all of it
    partial,     // the value is the sum over ranks
    sharded,     // each rank has a slice along dimension `where`
    flat,        // each rank has a range of the flattened elements, in order of rank (ir/cuts.h): how ZeRO owns state
  };
  Kind kind = Kind::replicated;
  int32_t where = 0;  // sharded: tensor dimension; flat: the rank that gets the first of the grains that do not divide evenly
  int64_t grain =
      0;  // flat: ranges begin at multiples of so many elements; sharded: 1: each of several segments is cut (ir/parameter_piece.h)

  bool is_flat() const { return kind == Kind::flat; }
  bool operator==(const AxisLayout&) const = default;
};

struct Layout {
  std::array<AxisLayout, kMeshAxes> axes;

  AxisLayout& operator[](MeshAxis axis) { return axes[static_cast<size_t>(axis)]; }
  const AxisLayout& operator[](MeshAxis axis) const { return axes[static_cast<size_t>(axis)]; }
  bool is_replicated() const { return *this == Layout{}; }
  bool operator==(const Layout&) const = default;

  bool is_flat() const { return (*this)[MeshAxis::data].is_flat(); }
  /// That along one axis; replicated along the others.
  Layout only(MeshAxis axis) const {
    Layout made;
    made[axis] = (*this)[axis];
    return made;
  }

  static Layout sharded(MeshAxis axis, int32_t dimension);
  static Layout partial(MeshAxis axis);
};

std::string text_of(const AxisLayout& layout);
std::string text_of(const Layout& layout);  // "" when replicated everywhere, else "data:sharded(0)" and the like

}  // namespace st

// Neighbouring axes that are all kept or all reduced merge, so nearly every reduction is [outer, gone, inner]: rows when inner is 1, else
// columns. Anything else (kept and reduced axes alternate) takes a plain loop.
#pragma once

#include <array>
#include <string_view>

#include "base/shape.h"
#include "ir/attrs.h"

namespace st {

struct MergedAxes {
  int64_t outer = 1, gone = 1, inner = 1;
  bool regular = true;
  int64_t removed = 1;  // elements reduced to one
  // For the plain loop: kept and reduced dimensions with their strides.
  int kept_rank = 0, gone_rank = 0;
  std::array<int64_t, kMaxDims> kept_size{}, kept_stride{}, gone_size{}, gone_stride{};

  MergedAxes(std::string_view op, const Shape& x, const Ints& axes) {
    std::array<bool, kMaxDims> goes{};
    for (const int64_t axis : axes) goes[static_cast<size_t>(normalize_axis(op, axis, x.rank()))] = true;
    if (axes.empty()) goes.fill(true);
    int turns = 0;  // changes between kept and reduced along the shape
    bool last = false;
    for (int32_t i = 0; i < x.rank(); ++i) {
      const bool now = goes[static_cast<size_t>(i)];
      const int64_t stride = x.elements(i + 1, x.rank());
      if (now) removed *= x[i];
      if (x[i] == 1) continue;
      if (now != last) ++turns;
      last = now;
      (now ? gone : turns == 0 ? outer : inner) *= x[i];
      auto& size = now ? gone_size : kept_size;
      auto& step = now ? gone_stride : kept_stride;
      int& rank = now ? gone_rank : kept_rank;
      size[static_cast<size_t>(rank)] = x[i];
      step[static_cast<size_t>(rank++)] = stride;
    }
    regular = turns <= 2;
    if (regular && gone_rank == 0) gone = 1;
  }

  int64_t kept() const { return regular ? outer * inner : kept_elements(); }
  int64_t kept_elements() const {
    int64_t n = 1;
    for (int i = 0; i < kept_rank; ++i) n *= kept_size[static_cast<size_t>(i)];
    return n;
  }

  /// Calls body(offset) for the elements reduced to output element `index`, in row-major order.
  template <class Body>
  void each(int64_t index, const Body& body) const {
    int64_t base = 0;
    for (int i = kept_rank; i-- > 0;) {
      base += index % kept_size[static_cast<size_t>(i)] * kept_stride[static_cast<size_t>(i)];
      index /= kept_size[static_cast<size_t>(i)];
    }
    for (int64_t n = 0; n < removed; ++n) {
      int64_t at = base, rest = n;
      for (int i = gone_rank; i-- > 0;) {
        at += rest % gone_size[static_cast<size_t>(i)] * gone_stride[static_cast<size_t>(i)];
        rest /= gone_size[static_cast<size_t>(i)];
      }
      body(at);
    }
  }
};

}  // namespace st

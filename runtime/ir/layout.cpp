#include "ir/layout.h"

#include "base/text.h"

namespace st {

Layout Layout::sharded(MeshAxis axis, int32_t dimension) {
  Layout layout;
  layout[axis] = {.kind = AxisLayout::Kind::sharded, .where = dimension};
  return layout;
}

Layout Layout::partial(MeshAxis axis) {
  Layout layout;
  layout[axis].kind = AxisLayout::Kind::partial;
  return layout;
}

std::string text_of(const AxisLayout& layout) {
  switch (layout.kind) {
    case AxisLayout::Kind::replicated:
      return "replicated";
    case AxisLayout::Kind::partial:
      return "partial";
    case AxisLayout::Kind::sharded:
      return text("sharded(", layout.where, ")");
    case AxisLayout::Kind::flat:
      return text("flat(", layout.grain, ", ", layout.where, ")");
  }
  return "";
}

std::string text_of(const Layout& layout) {
  std::string out;
  for (int32_t i = 0; i < kMeshAxes; ++i) {
    const auto axis = static_cast<MeshAxis>(i);
    if (layout[axis].kind == AxisLayout::Kind::replicated) continue;
    if (!out.empty()) out += ", ";
    out += text(name_of(axis), ":", text_of(layout[axis]));
  }
  return out;
}

}  // namespace st

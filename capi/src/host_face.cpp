#include "host_face.h"

namespace st::capi {

bool is_for_models(Op op) {
  const OpInfo& info = info_of(op);
  // An op that the host registered is called by its own name; tensor_parallel makes the others.
  const bool is_for_passes = info.name.starts_with("tensor_") || info.name == "vocabulary_cross_entropy";
  return info.gradient != "none" && info.name != "host" && !is_for_passes;
}

OpInfo host_face(Op op) {
  OpInfo face = info_of(op);
  // Attributes that passes set.
  const auto is_for_passes = [](const OpAttr& attr) {
    return attr.name == "tiles" || attr.name == "library" || attr.name == "result" || attr.name == "cut" || attr.name == "first" ||
           attr.name == "classes";
  };
  std::erase_if(face.attrs, is_for_passes);
  if (op != Op::dropout) return face;
  std::erase_if(face.inputs, [](const OpInput& input) { return input.name != "x"; });
  std::erase_if(face.attrs, [](const OpAttr& attr) { return attr.name != "rate"; });
  face.help = "y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training";
  return face;
}

}  // namespace st::capi

#include "ir/piece_update.h"

#include "base/error.h"
#include "ir/cuts.h"

namespace st {
namespace {

/// The number of variances that Adafactor keeps: of rows and columns, or of elements.
size_t variances_of(const Shape& piece) { return piece.rank() < 2 ? 1 : 2; }

}  // namespace

bool updates_piece(Op op) {
  return op == Op::muon_direction || op == Op::muon_step || op == Op::adafactor_size || op == Op::adafactor_step;
}

bool updates_slots(Op op) { return updates_piece(op) || info_of(op).shape_rule == "optimizer"; }

Shape whole_of(const Shape& piece, const Attrs& attrs) {
  Shape whole = piece;
  const auto dimension = static_cast<int32_t>(attrs.integer("dimension"));
  whole[dimension] = whole[dimension] * attrs.integer("ranks");
  return whole;
}

Shape whole_of_directions(Shape directions, const Attrs& attrs) {
  directions[0] = directions[0] / attrs.integer("ranks");
  return whole_of(directions, attrs);
}

void check_piece_update(const Program& program, const Graph& graph, const Node& node) {
  Shape piece = graph.type(node.in[0]).shape;
  if (node.op == Op::muon_step) piece[0] = piece[0] / node.attrs.integer("ranks");
  const Shape whole = whole_of(piece, node.attrs);
  std::vector<Shape> shapes;
  if (node.op != Op::adafactor_size) shapes.push_back(piece);  // the parameter, or muon's momentum
  if (node.op == Op::adafactor_size || node.op == Op::adafactor_step) {
    if (variances_of(piece) == 2)
      shapes.insert(shapes.end(), {Shape{whole[0]}, Shape{whole[1]}});
    else
      shapes.push_back(piece);
  }
  const bool may_leave_copy = node.op == Op::muon_step || node.op == Op::adafactor_step;
  const bool leaves_copy = may_leave_copy && node.writes.size() == shapes.size() + 1;
  check(leaves_copy || node.writes.size() == shapes.size(), name_of(node.op), ": needs ", shapes.size(), " slots",
        may_leave_copy ? ", optionally followed by one working copy" : "", ", got ", node.writes.size());
  check(!leaves_copy || is_working_copy(program, node.writes.back(), node.writes[0]), name_of(node.op), ": \"",
        program.slot(node.writes.back()).name, "\" is not a working copy of \"", program.slot(node.writes[0]).name, "\"");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Type own = own_type(program, program.slot(node.writes[i]));
    check(is_floating(own.dtype) && own.shape == shapes[i], name_of(node.op), ": needs ", shapes[i], " for a piece ", piece, ", slot \"",
          program.slot(node.writes[i]).name, "\" is ", own);
  }
}

}  // namespace st

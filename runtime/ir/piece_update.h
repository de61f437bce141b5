// Updates of a parameter of which each rank along the tensor axis has a piece: muon_direction and the like in ops.def.
#pragma once

#include "ir/program.h"

namespace st {

/// Whether an op reads and writes slots as an optimizer does: muon_direction, muon_step, adafactor_size, adafactor_step.
bool updates_piece(Op op);
/// Whether an op changes parameters or their state: an optimizer, or one that updates a piece.
bool updates_slots(Op op);

/// The shape of the parameter of which `piece` is the piece that the attributes describe.
Shape whole_of(const Shape& piece, const Attrs& attrs);
/// The same, from the shape of muon_step's directions.
Shape whole_of_directions(Shape directions, const Attrs& attrs);

/// Throws invalid_argument unless the slots of a node that updates a piece fit its inputs.
void check_piece_update(const Program& program, const Graph& graph, const Node& node);

}  // namespace st

#include "passes/piece_updates.h"

#include "base/error.h"
#include "ir/optimizer_state.h"

namespace st {
namespace {

/// The parameter's blocks of kMomentBlock elements.
ParameterPiece blocks_of(const Slot& parameter) {
  const ParameterPiece& piece = parameter.piece;
  const int64_t inner = piece.whole.elements(piece.dimension + 1, piece.whole.rank());
  ParameterPiece blocks = piece;
  blocks.segments.clear();
  for (const int64_t segment : piece.segments) {
    const int64_t run = segment / piece.ranks * inner;
    require(run % kMomentBlock == 0, Code::unsupported, "update: adamw-8bit cannot update \"", parameter.name, "\" in ", piece.ranks,
            " pieces: they have runs of ", run, " elements, which are not whole blocks of ", kMomentBlock,
            "; use a tensor degree or a width with which they are, or another optimizer for this parameter (groups)");
    blocks.segments.push_back(segment * inner / kMomentBlock);
  }
  const int64_t row = piece.whole.elements(piece.dimension, piece.whole.rank()) / kMomentBlock;
  blocks.whole = {piece.whole.elements() / kMomentBlock};
  if (piece.dimension > 0) blocks.whole = {piece.whole.elements(0, piece.dimension), row};
  blocks.dimension = piece.dimension > 0 ? 1 : 0;
  return blocks;
}

Attrs with_piece(Op op, const Attrs& attrs, const ParameterPiece& piece) {
  Attrs all;
  for (const OpAttr& attr : info_of(op).attrs)
    if (const AttrValue* value = attrs.find(attr.name)) all.set(attr.name, *value);
  all.set("dimension", int64_t{piece.dimension});
  all.set("segments", Ints(piece.segments.begin(), piece.segments.end()));
  all.set("rank", int64_t{piece.rank});
  all.set("ranks", int64_t{piece.ranks});
  return all;
}

Value gathered(Builder& b, Value pieces, int64_t ranks) {
  return b(Op::tensor_gather, {pieces}, {{"ranks", ranks}, {"uses", std::string("whole")}});
}

}  // namespace

std::vector<PieceState> state_of(const Slot& parameter, const OptimizerChoice& optimizer) {
  const bool is_cut = parameter.piece.is_cut();
  const Type whole{.dtype = parameter.type.dtype, .shape = is_cut ? parameter.piece.whole : parameter.type.shape, .layout = {}};
  std::vector<PieceState> all;
  for (OptimizerState& state : optimizer_state(optimizer.op, make_attrs(optimizer.op, optimizer.attrs), whole)) {
    PieceState own{.name = state.name, .type = state.type};
    if (is_cut && own.type.shape == whole.shape) {
      own.type.shape = parameter.type.shape;
    } else if (is_cut && optimizer.op == Op::adamw_8bit) {
      own.piece = blocks_of(parameter);
      own.type.shape = {own.type.shape.elements() / parameter.piece.ranks};
    }
    all.push_back(std::move(own));
  }
  return all;
}

void update_piece(Builder& b, const OptimizerChoice& optimizer, const std::vector<Value>& in, const std::vector<SlotId>& slots) {
  const ParameterPiece piece = b.program().slot(slots[0]).piece;
  const Value factor = in[1], skip = in[2], rates = in[3];
  const auto attrs = [&](Op op) { return with_piece(op, optimizer.attrs, piece); };
  if (optimizer.op == Op::muon) {
    std::vector<SlotId> written = slots;  // without the momentum
    written.erase(written.begin() + 1);
    const Value direction = b.update(Op::muon_direction, in, {slots[1]}, attrs(Op::muon_direction))[0];
    b.update(Op::muon_step, {gathered(b, direction, piece.ranks), factor, skip, rates}, written, attrs(Op::muon_step));
    return;
  }
  require(optimizer.op == Op::adafactor, Code::unsupported, "update: ", name_of(optimizer.op), " needs whole parameters, but \"",
          b.program().slot(slots[0]).name, "\" is cut into ", piece.ranks, " pieces; use tensor 1, or another optimizer");
  const auto last = slots.begin() + (piece.whole.rank() < 2 ? 2 : 3);
  const Value parameter = b.load(slots[0]);
  const Value sums = b(Op::tensor_sum, {b(Op::adafactor_sums, {in[0], factor, skip, rates, parameter}, attrs(Op::adafactor_sums))});
  const Value squares =
      b.update(Op::adafactor_size, {in[0], factor, skip, rates, sums}, {slots.begin() + 1, last}, attrs(Op::adafactor_size))[0];
  b.update(Op::adafactor_step, {in[0], factor, skip, rates, sums, b(Op::tensor_sum, {squares})}, slots, attrs(Op::adafactor_step));
}

}  // namespace st

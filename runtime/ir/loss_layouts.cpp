// Layout rules of losses: sums over samples, so sharded samples give partial sums.
#include "base/text.h"
#include "ir/layout_case.h"
#include "ir/shape_rules.h"

namespace st::layout_rule {
namespace {

AxisLayout samples_of(const Case& on) {
  const bool classes = on.op.op == Op::cross_entropy || on.op.op == Op::cross_entropy_backward || on.op.op == Op::fused_cross_entropy;
  return rows_of(on, classes ? on.rank(0) - 1 : on.rank(0));
}

}  // namespace

Layouts loss(const Case& on) {
  const AxisLayout cut = samples_of(on);
  for (size_t i = 1; i < on.inputs(); ++i) need_equal(on, 0, i);
  Layouts out = every_output(on, cut.kind == Kind::sharded ? kPartial : kReplicated);
  if (on.op.op == Op::cross_entropy) out[2] = cut;
  return out;
}

Layouts loss_backward(const Case& on) {
  const AxisLayout cut = samples_of(on);
  const size_t dsum = on.op.op == Op::cross_entropy_backward ? 3 : 2;
  for (size_t i = 1; i < on.inputs(); ++i) i == dsum ? need_replicated(on, i) : need_equal(on, 0, i);
  return {cut};
}

Layouts fused_loss(const Case& on) {
  const AxisLayout cut = samples_of(on);
  for (size_t i = 1; i < on.inputs(); ++i) i == 2 ? need_replicated(on, i) : need_equal(on, 0, i);
  Layouts out = every_output(on, cut.kind == Kind::sharded ? kPartial : kReplicated);
  out[2] = cut;
  return out;
}

namespace {

/// Whether the vocabulary is sharded, of which each rank has columns; all else must then be replicated. Otherwise the rows are as in a
/// loss.
bool has_own_columns(const Case& on) {
  if (!on.is_sharded(0) || on.in(0).where != on.rank(0) - 1) return false;
  for (size_t i = 1; i < on.inputs(); ++i) need_replicated(on, i);
  return true;
}

void need_rows(const Case& on, size_t input, AxisLayout rows) {
  if (!(on.in(input) == rows))
    refuse(on, text(shape_rule::input_name(on.op, input), " must be ", rows.kind == Kind::sharded ? "sharded like" : "replicated as",
                    " the rows of logits"));
}

/// The layout of terms [ranks, ..., 4] of rows with this layout.
AxisLayout terms_layout(AxisLayout rows) { return rows.kind == Kind::sharded ? sharded(rows.where + 1) : rows; }

}  // namespace

Layouts vocabulary_terms(const Case& on) {
  if (has_own_columns(on)) return {sharded(0)};  // its rank's; gathered, those of all ranks
  const AxisLayout rows = rows_of(on, on.rank(0) - 1);
  need_rows(on, 1, rows);
  return {terms_layout(rows)};
}

Layouts vocabulary_loss(const Case& on) {
  if (has_own_columns(on)) return every_output(on, kReplicated);
  const AxisLayout rows = rows_of(on, on.rank(0) - 1);
  for (size_t i = 1; i < on.inputs(); ++i) need_rows(on, i, i == 2 ? terms_layout(rows) : rows);
  Layouts out = every_output(on, rows);
  out[0] = out[1] = rows.kind == Kind::sharded ? kPartial : kReplicated;
  return out;
}

Layouts vocabulary_loss_backward(const Case& on) {
  if (has_own_columns(on)) return {on.in(0)};
  const AxisLayout rows = rows_of(on, on.rank(0) - 1);
  for (size_t i = 1; i < on.inputs(); ++i) i == 3 ? need_replicated(on, i) : need_rows(on, i, rows);
  return {rows};
}

}  // namespace st::layout_rule

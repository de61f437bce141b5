#include "team/batch_binding.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/input_readers.h"

namespace st {
namespace {

/// The part of a view that an executor's input reads: an input whose first dimension is a multiple of the batch is cut by rows, any other
/// is the same for all micro-batches.
HostView part_of(const HostView& view, const Shape& symbolic, int64_t first_row, int64_t rows) {
  HostView part = view;
  if (!symbolic.is_symbolic()) return part;
  const int64_t per_row = -symbolic[0];
  part.shape[0] = rows * per_row;
  part.data = static_cast<std::byte*>(view.data) + first_row * per_row * view.strides[0] * bytes_of(view.dtype);
  return part;
}

void refuse_nan(const HostView& part, int64_t first) {
  const int64_t at = first_nan(part);
  if (at < 0) return;
  const int64_t row_elements = part.shape.rank() == 0 ? 1 : part.shape.elements(1, part.shape.rank());
  fail(Code::not_finite, text("step: input \"", part.name, "\" holds NaN in row ", first + at / row_elements, ", element ",
                              at % row_elements, "; nothing was updated"));
}

/// `, which has "X" and "y"`.
std::string contents_of(std::span<const HostView> batch) {
  std::vector<std::string> names;
  for (const HostView& view : batch) names.push_back(text('"', view.name, '"'));
  return names.empty() ? ", which is empty" : text(", which has ", listed(names));
}

/// Throws for an input that is not in the batch.
const HostView& view_of(std::span<const HostView> batch, const Program& model, size_t slot) {
  const std::string& name = model.slots[slot].name;
  const auto found = std::ranges::find(batch, name, &HostView::name);
  if (found == batch.end()) {
    const std::string readers = readers_of(model, static_cast<SlotId>(slot));
    about_tensor(name, [&] {
      fail(Code::invalid_argument, text("step: the model's input \"", name, "\" is missing from the batch", contents_of(batch),
                                        readers.empty() ? "" : "; it is read by ", readers));
    });
  }
  return *found;
}

void check_input(const Slot& input, const HostView& view, int64_t rows) {
  check(view.dtype == input.type.dtype, "step: input \"", input.name, "\" must be ", input.type.dtype, ", the batch gives ", view.dtype,
        "; convert it first (st_view_convert)");
  const Shape shape = input.type.shape.bind(rows);
  check(view.shape == shape, "step: input \"", input.name, "\" must have shape ", shape, ", the batch gives ", view.shape);
  check(view.data != nullptr || view.shape.elements() == 0, "step: input \"", input.name, "\" has no data (NULL)");
}

}  // namespace

std::vector<bool> inputs_read_by(const Program& program) {
  std::vector<bool> read(program.slots.size(), false);
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes)
      for (const SlotId slot : node.reads)
        if (program.slot(slot).role == Role::input) read[static_cast<size_t>(slot)] = true;
  return read;
}

BatchBinding::BatchBinding(const Program& model, std::vector<bool> wanted, const Context& context)
    : model_(&model), wanted_(std::move(wanted)), memory_(context.memory()), order_(&context.host_order()), compact_(model.slots.size()) {}

int64_t BatchBinding::rows_of(std::span<const HostView> batch, int64_t most, int64_t least) const {
  for (size_t s = 0; s < compact_.size(); ++s) {
    const Slot& slot = model_->slots[s];
    if (!wanted_[s] || !slot.type.shape.is_symbolic()) continue;
    const Shape& given = view_of(batch, *model_, s).shape;
    const int64_t rows = given.rank() == 0 ? 0 : given[0] / -slot.type.shape[0];
    return rows >= least && rows < most ? rows : most;
  }
  return most;
}

void BatchBinding::check(std::span<const HostView> batch, int64_t rows) const {
  for (size_t s = 0; s < compact_.size(); ++s)
    if (wanted_[s]) about_tensor(model_->slots[s].name, [&] { check_input(model_->slots[s], view_of(batch, *model_, s), rows); });
}

bool BatchBinding::is_read_by(const Executor& executor) const {
  for (size_t s = 0; s < wanted_.size(); ++s)
    if (wanted_[s] && executor.reads_bound(static_cast<SlotId>(s))) return true;
  return false;
}

void BatchBinding::bind(std::span<const HostView> batch, int64_t first_row, int64_t rows, Executor& executor) {
  for (size_t s = 0; s < compact_.size(); ++s) {
    if (!wanted_[s] || !executor.reads_bound(static_cast<SlotId>(s))) continue;
    const Shape& symbolic = model_->slots[s].type.shape;
    const HostView part = part_of(view_of(batch, *model_, s), symbolic, first_row, rows);
    if (part.is_on_device) {
      executor.bind(static_cast<SlotId>(s), place_of(part), *order_);
      continue;
    }
    about_tensor(part.name, [&] { refuse_nan(part, symbolic.is_symbolic() ? first_row * -symbolic[0] : 0); });
    executor.bind(static_cast<SlotId>(s), compact_data(part, compact_[s], memory_));
  }
}

}  // namespace st

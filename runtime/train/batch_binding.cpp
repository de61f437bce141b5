#include "train/batch_binding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace st {
namespace {

/// The part of a view that an executor's input sees: `count` elements from `first` on.
struct Part {
  int64_t first = 0, count = 0;
};

/// An input whose first dimension is a multiple of the batch is cut by rows; one without is the same for all.
Part part_of(const Shape& symbolic, int64_t first_row, int64_t rows) {
  const int64_t elements = symbolic.elements();
  if (!symbolic.is_symbolic()) return {0, elements};
  return {first_row * -elements, rows * -elements};
}

template <class T>
int64_t first_nan(const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(values[i])) return i;
  return -1;
}

/// Of bf16 or f16, by the bits of infinity: NaN is beyond it.
int64_t first_nan16(const uint16_t* values, int64_t count, uint16_t infinity) {
  for (int64_t i = 0; i < count; ++i)
    if ((values[i] & 0x7FFF) > infinity) return i;
  return -1;
}

void refuse_nan(const NamedView& view, const Part& part) {
  int64_t at = -1;
  if (view.dtype == DType::f32) at = first_nan(static_cast<const float*>(view.data) + part.first, part.count);
  if (view.dtype == DType::f64) at = first_nan(static_cast<const double*>(view.data) + part.first, part.count);
  if (view.dtype == DType::bf16) at = first_nan16(static_cast<const uint16_t*>(view.data) + part.first, part.count, 0x7F80);
  if (view.dtype == DType::f16) at = first_nan16(static_cast<const uint16_t*>(view.data) + part.first, part.count, 0x7C00);
  if (at < 0) return;
  at += part.first;
  const int64_t row_elements = view.shape.rank() == 0 ? 1 : view.shape.elements(1, view.shape.rank());
  fail(Code::not_finite, text("step: input \"", view.name, "\" holds NaN in row ", at / row_elements, ", element ", at % row_elements,
                              "; nothing was updated"));
}

const NamedView& view_of(std::span<const NamedView> batch, const Slot& input) {
  const auto found = std::ranges::find(batch, input.name, &NamedView::name);
  check(found != batch.end(), "step: the model's input \"", input.name, "\" is missing in the batch");
  return *found;
}

}  // namespace

std::vector<bool> inputs_read_by(const Program& program) {
  std::vector<bool> read(program.slots.size(), false);
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes)
      for (const SlotId slot : node.reads)
        if (program.slots[static_cast<size_t>(slot)].role == Role::input) read[static_cast<size_t>(slot)] = true;
  return read;
}

void check_batch(const Program& model, const std::vector<bool>& wanted, std::span<const NamedView> batch, int64_t rows) {
  for (size_t s = 0; s < model.slots.size(); ++s) {
    if (!wanted[s]) continue;
    const Slot& slot = model.slots[s];
    const NamedView& view = view_of(batch, slot);
    check(view.dtype == slot.type.dtype, "step: input \"", slot.name, "\" is ", slot.type.dtype, ", the batch gives ", view.dtype);
    const Shape shape = slot.type.shape.bind(rows);
    check(view.shape == shape, "step: input \"", slot.name, "\" wants shape ", shape, ", the batch gives ", view.shape);
    check(view.data != nullptr || view.shape.elements() == 0, "step: input \"", slot.name, "\" has no data (NULL)");
  }
}

void bind_rows(const Program& model, const std::vector<bool>& wanted, std::span<const NamedView> batch, int64_t first_row, int64_t rows,
               Executor& executor) {
  for (size_t s = 0; s < model.slots.size(); ++s) {
    if (!wanted[s]) continue;
    const NamedView& view = view_of(batch, model.slots[s]);
    const Part part = part_of(model.slots[s].type.shape, first_row, rows);
    refuse_nan(view, part);
    executor.bind(static_cast<SlotId>(s), static_cast<const std::byte*>(view.data) + part.first * bytes_of(view.dtype));
  }
}

}  // namespace st

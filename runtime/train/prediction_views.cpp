#include "train/prediction_views.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "model/host_outputs.h"
#include "model/input_readers.h"

namespace st {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 40;

/// How many rows a view of a symbolic shape has: -1 when the shape has none; none when it does not fit.
std::optional<int64_t> rows_by(const Shape& symbolic, const Shape& given) {
  if (symbolic.rank() != given.rank()) return std::nullopt;
  int64_t rows = -1;
  for (int32_t d = 0; d < given.rank(); ++d) {
    if (symbolic[d] >= 0 ? symbolic[d] != given[d] : given[d] % -symbolic[d] != 0) return std::nullopt;
    if (symbolic[d] >= 0) continue;
    const int64_t here = given[d] / -symbolic[d];
    if (rows >= 0 && rows != here) return std::nullopt;
    rows = here;
  }
  return rows;
}

void require_no_nan(const HostView& view) {
  if (view.is_on_device) return;
  const int64_t at = first_nan(view);
  if (at < 0) return;
  const int64_t row_elements = view.shape.rank() == 0 ? 1 : view.shape.elements(1, view.shape.rank());
  fail(Code::not_finite, text("predict: input \"", view.name, "\" holds NaN in row ", at / row_elements, ", element ", at % row_elements));
}

}  // namespace

PredictionViews::PredictionViews(const Program& model, std::span<const HostView> inputs, std::span<const HostView> outputs)
    : model_(model), inputs_(inputs), outputs_(outputs) {
  check(!outputs.empty(), "predict: needs at least one output, got none");
  require_distinct("predict: input", inputs);
  check_outputs("predict", model, outputs);
  for (const HostView& view : inputs) {
    const auto found = std::ranges::find_if(model.slots, [&](const Slot& s) { return s.role == Role::input && s.name == view.name; });
    if (found == model.slots.end()) {
      std::vector<std::string> names;
      for (const Slot& slot : model.slots)
        if (slot.role == Role::input) names.push_back(slot.name);
      refuse_name("predict: the model has no input", view.name, names);
    }
    look("input", view, found->type);
  }
  const Section& forward = *model.find(Phase::forward);
  for (const HostView& view : outputs)
    look("output", view, forward.graph.type(std::ranges::find(model.outputs, view.name, &Output::name)->value));
  check(rows_ != 0 && rows_ <= kMaxRows, "predict: \"", first_, "\" has ", rows_, " rows, needs at least one");
  if (rows_ < 0) rows_ = 1;
}

void PredictionViews::look(const char* what, const HostView& view, const Type& type) {
  check(view.dtype == type.dtype, "predict: ", what, " \"", view.name, "\" is ", type.dtype, ", the view is ", view.dtype);
  const auto here = rows_by(type.shape, view.shape);
  check(here.has_value(), "predict: ", what, " \"", view.name, "\" is ", type.shape, " (-1: the number of rows), the view has shape ",
        view.shape);
  check(view.data != nullptr || view.shape.elements() == 0, "predict: ", what, " \"", view.name, "\" has no data (NULL)");
  if (*here < 0) return;
  check(rows_ < 0 || rows_ == *here, "predict: ", what, " \"", view.name, "\" has ", *here, " rows, \"", first_, "\" has ", rows_);
  rows_ = *here;
  first_ = view.name;
}

const HostView& PredictionViews::input(const std::string& name) const {
  const HostView* const view = view_named(inputs_, name);
  about_tensor(name, [&] {
    if (view == nullptr)
      fail(Code::invalid_argument, text("predict: output \"", reader_of(name), "\" depends on input \"", name, "\", which is not given"));
    require_no_nan(*view);
  });
  return *view;
}

/// The output asked for that depends on an input of the model's, of which there is one.
std::string PredictionViews::reader_of(const std::string& input) const {
  const SlotId slot = model_.slot_named(input);
  const auto reader = std::ranges::find_if(outputs_, [&](const HostView& view) {
    const auto output = std::ranges::find(model_.outputs, view.name, &Output::name);
    return output != model_.outputs.end() && depends_on(model_, output->value, slot);
  });
  return std::string((reader == outputs_.end() ? outputs_.front() : *reader).name);
}

}  // namespace st

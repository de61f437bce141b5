#include "train/input_fields.h"

#include <algorithm>

#include "base/error.h"

namespace st {
namespace {

std::string names_of(std::span<const Field> fields) {
  std::string names;
  for (const Field& field : fields) names += text(names.empty() ? "\"" : ", \"", field.name, "\"");
  return names;
}

void check_input(const Slot& slot, std::span<const Field> fields, int64_t batch) {
  const auto field = std::ranges::find(fields, slot.name, &Field::name);
  check(field != fields.end(), "trainer: the data has no field for the model's input \"", slot.name, "\", it has ", names_of(fields),
        "; rename one of them");
  check(field->dtype == slot.type.dtype, "trainer: the model's input \"", slot.name, "\" is ", slot.type.dtype, ", the data's field is ",
        field->dtype, "; make it ", slot.type.dtype);
  check(field->shape.rank() < kMaxDims, "trainer: field \"", slot.name, "\" has rows of ", field->shape.rank(), " dimensions");
  Shape given{batch};
  for (const int64_t dim : field->shape) given.push_back(dim);
  const Shape wanted = slot.type.shape.bind(batch);
  check(given == wanted, "trainer: for ", batch, " rows the model's input \"", slot.name, "\" has shape ", wanted, ", the data's field ",
        given);
}

}  // namespace

void check_input_fields(const Program& model, std::span<const Field> fields, int64_t batch) {
  for (const Slot& slot : model.slots)
    if (slot.role == Role::input) about_tensor(slot.name, [&] { check_input(slot, fields, batch); });
}

}  // namespace st

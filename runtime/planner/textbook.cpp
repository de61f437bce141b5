#include "planner/textbook.h"

#include <array>
#include <cstdio>

#include "base/plain_locale.h"
#include "ir/optimizer_state.h"

namespace st {

Textbook textbook(const PlannedRun& run) {
  Textbook book;
  auto update = run.recipe.update();
  double state = 0;
  for (const Slot& slot : run.model.slots) {
    if (slot.role != Role::parameter) continue;
    book.parameters += slot.type.shape.elements();
    const OptimizerChoice choice = update.choose(slot.name, slot.type, slot.type.shape.rank() >= 2);
    for (const OptimizerState& of : optimizer_state(choice.op, choice.attrs, slot.type)) state += static_cast<double>(of.type.bytes());
  }
  book.element = run.recipe.precision == "fp32" ? 4 : 2;
  book.state = book.parameters > 0 ? state / static_cast<double>(book.parameters) : 0;
  return book;
}

std::string Textbook::text(const PlannedRun& run) const {
  const PlainLocale locale;
  std::array<char, 240> line{};
  std::snprintf(line.data(), line.size(),
                "textbook: %.3g bytes a parameter (weight %.0f, gradient %.0f, %s %.3g), %.3g B parameters: %.3g GB on each rank, %.3g GB "
                "with ZeRO-3 on %lld",
                per_parameter(), element, element, run.recipe.optimizer.c_str(), state, static_cast<double>(parameters) / 1e9,
                data_parallel() / 1e9, zero_3(run.recipe.ranks) / 1e9, static_cast<long long>(run.recipe.ranks));
  return line.data();
}

}  // namespace st

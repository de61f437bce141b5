// What a trainer gives out of its last step's gradients.
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "train/trainer.h"

namespace st {

void Trainer::gradient(std::string_view parameter, const HostView& to, JointCall* joint) const {
  const SlotId slot = model_->parameter_named(parameter);
  require(gradients_.executor != nullptr, Code::wrong_state,
          "gradient: there is none, since no step was done, or a later one was begun; do a step first, to its end");
  const std::vector<const Executor*> alone = {gradients_.executor};
  const StateTensor from = gradient_of(gradients_.executor == &executor() ? executors() : alone, model_->slot(slot));
  about_tensor(parameter, [&] {
    require(!from.pieces.empty(), Code::not_found, "gradient: \"", parameter,
            "\" has none: it is not trainable, or the loss does not depend on it");
    require(from.type.dtype == DType::f32, Code::unsupported, "gradient: that of \"", parameter, "\" is ", from.type.dtype,
            ", f32 is given out");
    check(to.dtype == DType::f32, "gradient: gradients are f32, the view's dtype is ", to.dtype);
    check(to.shape == from.type.shape, "gradient: \"", parameter, "\" has shape ", from.type.shape, ", the view's is ", to.shape);
  });
  Context& context = model_->context();
  const auto copy_to = [&](void* room) {
    read_state(from, 0, {static_cast<std::byte*>(room), static_cast<size_t>(to.bytes())});
    // The update has added the uses of a tied weight to its first one.
    for (float& g : std::span(static_cast<float*>(room), static_cast<size_t>(from.type.shape.elements())))
      g = static_cast<float>(static_cast<double>(g) / gradients_.unit);
  };
  std::optional<Memory> values;
  if (!to.is_plain()) values.emplace(to.bytes(), context.memory(), MemoryRole::other);
  if (joint != nullptr) joint->meet(text("gradient of \"", parameter, "\""));
  if (!values) return copy_to(to.data);
  copy_to(values->data());
  scatter(values->data(), to);
}

}  // namespace st

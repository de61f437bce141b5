// Reads gradients of a trainer's last step.
#include <optional>
#include <span>
#include <vector>

#include "base/combine.h"
#include "base/error.h"
#include "train/trainer.h"

namespace st {

void Trainer::gradient(std::string_view parameter, const HostView& to, ShardedModelCall* collective) const {
  const SlotId slot = model_->parameter_named(parameter);
  require(gradients_.executor != nullptr, Code::wrong_state,
          "gradient: there is no gradient of a whole step; complete a step first, and call this before the next one begins");
  const std::vector<const Executor*> alone = {gradients_.executor};
  const StateTensor from = gradient_of(gradients_.executor == &executor() ? executors() : alone, model_->slot(slot));
  about_tensor(parameter, [&] {
    require(!from.pieces.empty(), Code::not_found, "gradient: \"", parameter,
            "\" has no gradient: it is not trainable, or the loss does not depend on it");
    require(from.type.dtype != DType::f64, Code::unsupported, "gradient: \"", parameter,
            "\" must have a gradient of f32, bf16 or f16, it is ", from.type.dtype);
    check(to.dtype == DType::f32, "gradient: the view must be f32, got ", to.dtype);
    check(to.shape == from.type.shape, "gradient: \"", parameter, "\" has shape ", from.type.shape, ", the view's is ", to.shape);
  });
  Context& context = model_->context();
  const int64_t elements = from.type.shape.elements();
  std::optional<Memory> values, stored;  // allocated before ranks agree
  if (from.type.dtype != DType::f32) stored.emplace(elements * bytes_of(from.type.dtype), context.memory(), MemoryRole::other);
  const auto copy_to = [&](void* room) {
    if (!stored) {
      read_state(from, 0, {static_cast<std::byte*>(room), static_cast<size_t>(to.bytes())});
    } else {
      read_state(from, 0, {stored->data(), static_cast<size_t>(stored->size())});
      widen(from.type.dtype, stored->data(), static_cast<std::byte*>(room), elements);
    }
    // The update has added the uses of a tied weight to its first one.
    for (float& g : std::span(static_cast<float*>(room), static_cast<size_t>(elements)))
      g = static_cast<float>(static_cast<double>(g) / gradients_.unit);
  };
  if (to.is_on_device || !to.is_plain()) values.emplace(to.bytes(), context.memory(), MemoryRole::other);
  if (collective != nullptr) collective->agree(text("gradient of \"", parameter, "\""));
  if (!values) return copy_to(to.data);
  copy_to(values->data());
  if (to.is_on_device) return context.host_order().to_device(place_of(to), values->data(), to.bytes());
  scatter(values->data(), to);
}

}  // namespace st

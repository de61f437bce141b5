#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/float_mode.h"
#include "model/element_conversion.h"
#include "model/model.h"

namespace st {
namespace {

constexpr int64_t kBlended = 4096;  // elements that are converted at a time

}  // namespace

void Model::blend(const Model& from, double t) {
  check(std::isfinite(t), "blend: t must be finite, usually between 0 and 1, got ", t);
  const size_t both = std::min(parameters_.size(), from.parameters_.size());
  for (size_t i = 0; i < both; ++i) {
    const Slot& mine = slot(parameters_[i]);
    const Slot& theirs = from.slot(from.parameters_[i]);
    about_tensor(mine.name, [&] {
      check(mine.name == theirs.name && mine.type.shape == theirs.type.shape && mine.type.dtype == theirs.type.dtype, "blend: parameter ",
            i, " is \"", mine.name, "\" ", mine.type, ", the other model's is \"", theirs.name, "\" ", theirs.type);
    });
  }
  const auto refuse = [&](const std::string& name, const auto&... said) {
    about_tensor(name, [&] { check(false, "blend: the other model ", said...); });
  };
  if (parameters_.size() > both) refuse(slot(parameters_[both]).name, "has no parameter \"", slot(parameters_[both]).name, "\"");
  if (from.parameters_.size() > both)
    refuse(from.slot(from.parameters_[both]).name, "has a parameter \"", from.slot(from.parameters_[both]).name,
           "\", which this model does not have");
  if (&from == this) return;
  require_whole("blend");
  from.require_whole("blend");
  const FloatMode mode;
  const auto rate = static_cast<float>(t);
  const int64_t at_a_time =
      std::max(context_->backend().transfer_bytes(kBlended * 8), from.context_->backend().transfer_bytes(kBlended * 8)) / 8;
  std::vector<std::byte> a(static_cast<size_t>(at_a_time * 8)), b(a.size());
  const WeightsGate::TryReader reader(from.gate_);
  const WeightsGate::Writer writer(gate_);
  if (t == 1) return from.copy_parameters(storage_);  // to + 1 (from - to) rounds, a copy does not
  Backend& backend = context_->backend();
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const Type& type = slot(parameters_[p]).type;
    const int64_t width = bytes_of(type.dtype), elements = type.shape.elements();
    for (int64_t at = 0; at < elements; at += at_a_time) {
      const int64_t count = std::min(at_a_time, elements - at);
      const Address place = data(parameters_[p]) + at * width;
      backend.to_host(a.data(), place, count * width);
      from.context_->backend().to_host(b.data(), from.data(from.parameters_[p]) + at * width, count * width);
      for (int64_t i = 0; i < count; ++i) {
        float to = 0, other = 0;
        convert_element(type.dtype, a.data() + i * width, DType::f32, reinterpret_cast<std::byte*>(&to));
        convert_element(type.dtype, b.data() + i * width, DType::f32, reinterpret_cast<std::byte*>(&other));
        to += rate * (other - to);
        convert_element(DType::f32, reinterpret_cast<const std::byte*>(&to), type.dtype, a.data() + i * width);
      }
      backend.to_device(place, a.data(), count * width);
    }
  }
}

}  // namespace st

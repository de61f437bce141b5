// The inputs of every optimizer of the reference backend, as doubles.
#pragma once

#include <algorithm>
#include <limits>

#include "backend/reference/elements.h"
#include "backend/update_limits.h"

namespace st::reference {

/// The limits of a parameter's type (update_limits.h).
struct UpdateLimits {
  explicit UpdateLimits(const Operand& parameter)
      : UpdateLimits(parameter.dtype == DType::f64 ? UpdateLimits(double{}) : UpdateLimits(float{})) {}

  double most_gradient, least_epsilon, least_square, largest;

 private:
  template <class P>
  explicit UpdateLimits(P)
      : most_gradient(kMostGradient<P>),
        least_epsilon(kLeastEpsilon<P>),
        least_square(std::numeric_limits<P>::min()),
        largest(std::numeric_limits<P>::max()) {}
};

struct UpdateInputs {
  explicit UpdateInputs(const Call& call) : UpdateInputs(call, call.writes[0]) {}
  UpdateInputs(const Call& call, const Operand& of)
      : gradient(call.in[0]),
        parameter(of),
        factor(get(call.in[1], 0)),
        rate(get(call.in[3], 0) * call.attrs->real("lr_scale")),
        number(get(call.in[3], 1)),
        decay(call.attrs->real("weight_decay")),
        limits(parameter),
        attrs(*call.attrs),
        most(attrs.real("clip_value") > 0 ? std::min(attrs.real("clip_value"), limits.largest) : limits.largest) {}

  const Operand &gradient, &parameter;
  double factor, rate, number, decay;  // number: index of this update, from 1
  UpdateLimits limits;
  const Attrs& attrs;
  double most;  // limit of an element, for clip_value

  double epsilon() const { return std::max(attrs.real("epsilon"), limits.least_epsilon); }
  /// Without the range limit, for sgd.
  double any_gradient(int64_t i) const { return std::clamp(get(gradient, i) * factor, -most, most); }
  /// Clamped so that its square is finite.
  double true_gradient(int64_t i) const { return std::clamp(any_gradient(i), -limits.most_gradient, limits.most_gradient); }
  /// With weight decay as a penalty on the loss.
  double penalised_gradient(int64_t i) const {
    return std::clamp(true_gradient(i) + decay * get(parameter, i), -limits.most_gradient, limits.most_gradient);
  }
};

/// Whether the step is skipped: then nothing is written and the slots keep their bits.
inline bool is_skipped(const Call& call) { return get_integer(call.in[2], 0) != 0; }

/// Writes the updated parameter to its 16-bit copy, the last slot, if there is one.
inline void write_copy(const Call& call) {
  const Operand& copy = call.writes.back();
  if (copy.dtype == call.writes[0].dtype || (copy.dtype != DType::bf16 && copy.dtype != DType::f16)) return;
  for (int64_t i = 0; i < copy.elements(); ++i) set(copy, i, get(call.writes[0], i));
}

}  // namespace st::reference

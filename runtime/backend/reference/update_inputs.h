// What every optimizer of the reference backend is given, as doubles.
#pragma once

#include <algorithm>
#include <limits>

#include "backend/reference/elements.h"
#include "backend/update_limits.h"

namespace st::reference {

/// What a parameter's type holds (update_limits.h).
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
  explicit UpdateInputs(const Call& call)
      : gradient(call.in[0]),
        parameter(call.writes[0]),
        factor(get(call.in[1], 0)),
        rate(get(call.in[3], 0) * call.attrs->real("lr_scale")),
        number(get(call.in[3], 1)),
        decay(call.attrs->real("weight_decay")),
        limits(parameter),
        attrs(*call.attrs),
        most(attrs.real("clip_value") > 0 ? std::min(attrs.real("clip_value"), limits.largest) : limits.largest) {}

  const Operand &gradient, &parameter;
  double factor, rate, number, decay;  // number: of this update, from 1
  UpdateLimits limits;
  const Attrs& attrs;
  double most;  // of an element, for clip_value

  double epsilon() const { return std::max(attrs.real("epsilon"), limits.least_epsilon); }
  /// Of any size, as sgd takes it.
  double any_gradient(int64_t i) const { return std::clamp(get(gradient, i) * factor, -most, most); }
  /// Held to where its square is finite.
  double true_gradient(int64_t i) const { return std::clamp(any_gradient(i), -limits.most_gradient, limits.most_gradient); }
  /// With the decay that is a penalty on the loss.
  double penalised_gradient(int64_t i) const {
    return std::clamp(true_gradient(i) + decay * get(parameter, i), -limits.most_gradient, limits.most_gradient);
  }
};

/// When it holds nothing is written: the slots keep their bits.
inline bool is_skipped(const Call& call) { return get_integer(call.in[2], 0) != 0; }

/// The parameter as it is now to the 16-bit copy that an update leaves of it, its last slot, if it was given one.
inline void leave_copy(const Call& call) {
  const Operand& copy = call.writes.back();
  if (copy.dtype == call.writes[0].dtype || (copy.dtype != DType::bf16 && copy.dtype != DType::f16)) return;
  for (int64_t i = 0; i < copy.elements(); ++i) set(copy, i, get(call.writes[0], i));
}

}  // namespace st::reference

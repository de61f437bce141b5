// What every optimizer of the reference backend is given, as doubles.
#pragma once

#include <algorithm>
#include <limits>

#include "backend/reference/elements.h"

namespace st::reference {

struct UpdateInputs {
  explicit UpdateInputs(const Call& call)
      : gradient(call.in[0]),
        parameter(call.writes[0]),
        factor(get(call.in[1], 0)),
        rate(get(call.in[3], 0) * call.attrs->real("lr_scale")),
        number(get(call.in[3], 1)),
        decay(call.attrs->real("weight_decay")),
        clip_value(call.attrs->real("clip_value") > 0 ? call.attrs->real("clip_value") : std::numeric_limits<double>::infinity()) {}

  const Operand &gradient, &parameter;
  double factor, rate, number, decay, clip_value;  // number: of this update, from 1

  double true_gradient(int64_t i) const { return std::clamp(get(gradient, i) * factor, -clip_value, clip_value); }
  /// With the decay that is a penalty on the loss.
  double penalised_gradient(int64_t i) const { return true_gradient(i) + decay * get(parameter, i); }
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

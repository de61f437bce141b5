// sum w (max(x, 0) - x t + log(1 + e^-|x|)); slope sigmoid(x) - t
#include "backend/cpu/paired_loss.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

struct Bce {
  template <class B>
  B operator()(const B& x, const B& target) const {
    const B zero(typename B::value_type(0));
    const B positive = xsimd::select(x < zero, zero, x);  // NaN stays
    return positive - x * target + xsimd::log1p(exp_of(-xsimd::abs(x)));
  }
};

struct BceSlope {
  static constexpr double kFactor = 1;
  template <class B>
  B operator()(const B& x, const B& target) const {
    const B one(typename B::value_type(1));
    return one / (one + exp_of(-x)) - target;
  }
};

}  // namespace

const Kernel kernel_bce_with_logits = {[](const Call& call) { paired_loss("bce_with_logits", call, Bce{}); }};
const Kernel kernel_bce_with_logits_backward = {
    [](const Call& call) { paired_loss_backward("bce_with_logits_backward", call, BceSlope{}); }};

}  // namespace st::cpu::ST_ISA

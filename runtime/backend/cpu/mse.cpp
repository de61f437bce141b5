// sum w (x - t)^2
#include "backend/cpu/paired_loss.h"

namespace st::cpu::ST_ISA {
namespace {

struct Mse {
  template <class B>
  B operator()(const B& x, const B& target) const {
    const B d = x - target;
    return d * d;
  }
};

struct MseSlope {
  static constexpr double kFactor = 2;
  template <class B>
  B operator()(const B& x, const B& target) const {
    return x - target;
  }
};

}  // namespace

const Kernel kernel_mse = {[](const Call& call) { paired_loss("mse", call, Mse{}); }};
const Kernel kernel_mse_backward = {[](const Call& call) { paired_loss_backward("mse_backward", call, MseSlope{}); }};

}  // namespace st::cpu::ST_ISA

// adamw_8bit: adamw's formula with moments stored as 8-bit codes (backend/moment_codes.h) times the largest magnitude of their block of 256
// elements. The parameter is updated with the computed moments, before they are encoded.
#include <algorithm>

#include "backend/moment_codes.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"
#include "ir/optimizer_state.h"

namespace st::reference {
namespace {

/// Moments of one block.
struct Block {
  std::array<double, kMomentBlock> m, v;
};

template <class Encode>
void encode(const std::array<double, kMomentBlock>& x, int64_t from, int64_t n, const Operand& codes, const Operand& scales,
            Encode code_of) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[static_cast<size_t>(i)]));
  set(scales, from / kMomentBlock, largest);
  for (int64_t i = 0; i < n; ++i)
    as<uint8_t>(codes)[from + i] = largest == 0 ? code_of(0) : code_of(static_cast<float>(x[static_cast<size_t>(i)] / largest));
}

void adamw_8bit(const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand& parameter = call.writes[0];
  const double beta1 = call.attrs->real("beta1"), beta2 = call.attrs->real("beta2"), epsilon = in.epsilon();
  const double step = in.rate / (1 - std::pow(beta1, in.number)), root_of_bias2 = std::sqrt(1 - std::pow(beta2, in.number));
  const auto stored = [&](size_t moment, const std::array<float, 256>& values, int64_t i) {
    const size_t at = 2 * moment - 1;
    return static_cast<double>(values[as<const uint8_t>(call.writes[at])[i]]) * get(call.writes[at + 1], i / kMomentBlock);
  };
  for (int64_t from = 0; from < parameter.elements(); from += kMomentBlock) {
    const int64_t n = std::min(kMomentBlock, parameter.elements() - from);
    Block block;
    for (int64_t b = 0; b < n; ++b) {
      const int64_t i = from + b;
      const double g = in.true_gradient(i);
      const double m = beta1 * stored(1, moment_codes::kSigned, i) + (1 - beta1) * g;
      const double v = beta2 * stored(2, moment_codes::kUnsigned, i) + (1 - beta2) * g * g;
      set(parameter, i, get(parameter, i) * (1 - in.rate * in.decay) - step * m / (std::sqrt(v) / root_of_bias2 + epsilon));
      block.m[static_cast<size_t>(b)] = m;
      block.v[static_cast<size_t>(b)] = v;
    }
    encode(block.m, from, n, call.writes[1], call.writes[2], moment_codes::encode_signed);
    encode(block.v, from, n, call.writes[3], call.writes[4], moment_codes::encode_unsigned);
  }
  write_copy(call);
}

}  // namespace

constinit const Kernel kernel_adamw_8bit{adamw_8bit};

}  // namespace st::reference

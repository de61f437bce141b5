// adamw.cpp's formula with 8-bit moments (backend/moment_codes.h), a block of 256 elements at a time: decode, update the parameter with the
// new moments, encode them. 16 bytes per parameter instead of 28.
#include <algorithm>
#include <array>

#include "backend/cpu/moment_vectors.h"
#include "backend/cpu/optimizer_pass.h"
#include "base/whole_power.h"
#include "ir/optimizer_state.h"

namespace st::cpu::ST_ISA {
namespace {

/// An 8-bit moment: codes and one scale per block.
struct CodedMoment {
  CodedMoment(const Operand& codes_of, const Operand& scales) : codes(as<uint8_t>(codes_of)), scale(as<float>(scales)) {}

  void read(int64_t from, int64_t n, const std::array<float, 256>& values, float* to) const {
    decode(codes + from, n, values, scale[from / kMomentBlock], to);
  }

  template <class Encode>
  void write(int64_t from, int64_t n, const float* x, float largest, const Encode& encode) const {
    scale[from / kMomentBlock] = largest;
    // Beyond 2^126, 1 / largest would be a denormal, which is flushed to 0.
    const float down = largest > 0x1p125F ? 0x1p-4F : 1;
    encode(x, n, Share{down, largest > 0 ? 1 / (largest * down) : 0}, codes + from);
  }

  uint8_t* codes;
  float* scale;
};

void adamw_in_8_bits(const Call& call) {
  const Attrs& attrs = *call.attrs;
  const UpdateInputs<float> inputs(call);
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  const F32 epsilon(epsilon_of<float>(call));
  const F32 keep1(static_cast<float>(beta1)), take1(static_cast<float>(1 - beta1));
  const F32 keep2(static_cast<float>(beta2)), take2(static_cast<float>(1 - beta2));
  const double unbias1 = 1 / (1 - whole_power(beta1, static_cast<uint64_t>(inputs.number)));
  const F32 step(static_cast<float>(inputs.rate * unbias1)), shrink(static_cast<float>(attrs.real("weight_decay") / unbias1));
  const F32 unbias2(static_cast<float>(1 / std::sqrt(1 - whole_power(beta2, static_cast<uint64_t>(inputs.number)))));
  float* const parameter = as<float>(call.writes[0]);
  const Operand* const copy = working_copy(call);
  const CodedMoment moment1(call.writes[1], call.writes[2]), moment2(call.writes[3], call.writes[4]);

  call.workers->run_range(call.writes[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) float room[kMomentBlock], m[kMomentBlock], v[kMomentBlock];
    for (int64_t from = begin; from < end; from += kMomentBlock) {
      const int64_t n = std::min(kMomentBlock, end - from);
      const float* const gradient = gradient_of(call.in[0], from, n, room);
      moment1.read(from, n, moment_codes::kSigned, m);
      moment2.read(from, n, moment_codes::kUnsigned, v);
      F32 largest1(0.0F), largest2(0.0F);
      each_vector<float>(n, [&](int64_t i, int64_t count) {
        const F32 g = inputs.true_gradient(load_part(gradient + i, count));
        const F32 new_m = fma(keep1, load_part(m + i, count), take1 * g);
        const F32 new_v = fma(keep2, load_part(v + i, count), take2 * g * g);
        const F32 denominator = fma(xsimd::sqrt(new_v), unbias2, epsilon);
        const F32 p = load_part(parameter + from + i, count);
        store_part(parameter + from + i, decayed(p, shrink, step, new_m / denominator), count);
        store_part(m + i, new_m, count);
        store_part(v + i, new_v, count);
        largest1 = xsimd::max(largest1, xsimd::abs(new_m)), largest2 = xsimd::max(largest2, new_v);
      });
      moment1.write(from, n, m, max_lanes<float>(largest1), encode_signed);
      moment2.write(from, n, v, max_lanes<float>(largest2), encode_unsigned);
      if (copy != nullptr) write_copy(*copy, parameter, from, n);
    }
  });
}

void run_adamw_8bit(const Call& call) {
  if (is_skipped(call)) return;
  with_parameter("adamw_8bit", call, [&](auto p) {
    require(sizeof p == sizeof(float), Code::unsupported, "adamw_8bit: parameters must be f32, got f64; use adamw");
    adamw_in_8_bits(call);
  });
}

}  // namespace

const Kernel kernel_adamw_8bit = {run_adamw_8bit};

}  // namespace st::cpu::ST_ISA

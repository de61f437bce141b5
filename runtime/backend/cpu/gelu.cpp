// y = x Phi(x) and its derivative; the formulas are in activation_vectors.h.
#include "backend/cpu/activation_vectors.h"
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

bool is_exact(const Call& call, std::string_view op) {
  const std::string& word = call.attrs->word("approximate");
  check(word == "tanh" || word == "erf", op, ": approximate must be tanh or erf, got ", word);
  return word == "erf";
}

void run_gelu(const Call& call) {
  if (is_exact(call, "gelu")) return pointwise<1>("gelu", call, GeluErf{});
  pointwise<1>("gelu", call, GeluTanh{});
}

void run_gelu_backward(const Call& call) {
  if (is_exact(call, "gelu_backward")) return pointwise<2>("gelu_backward", call, GeluErfBackward{});
  pointwise<2>("gelu_backward", call, GeluTanhBackward{});
}

}  // namespace

const Kernel kernel_gelu = {run_gelu};
const Kernel kernel_gelu_backward = {run_gelu_backward};

}  // namespace st::cpu::ST_ISA

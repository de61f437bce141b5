// slot = slot + value, in the slot's dtype; a 16-bit value adds to an f32 slot without rounding first
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Accumulate {
  template <class B>
  B operator()(const B& slot, const B& value) const {
    return slot + value;
  }
  template <class T>
  static T whole(T slot, T value) {
    return static_cast<T>(bits_of(slot) + bits_of(value));
  }
};

template <class V>
void accumulate_half(const Call& call) {
  const V* const value = as<const V>(call.in[0]);
  float* const slot = as<float>(call.writes[0]);
  call.workers->run_range(call.in[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    each_vector<float>(end - begin, [&](int64_t i, int64_t count) {
      store_part(slot + begin + i, load_part(slot + begin + i, count) + load_part(value + begin + i, count), count);
    });
  });
}

void run_accumulate(const Call& call) {
  const DType from = call.in[0].dtype, to = call.writes[0].dtype;
  if (from == to) {
    const Operand in[] = {call.writes[0], call.in[0]};
    Call add = call;
    add.in = in;
    add.out = call.writes;
    return pointwise<2>("accumulate", add, Accumulate{});
  }
  if (to == DType::f32 && from == DType::bf16) return accumulate_half<bf16>(call);
  if (to == DType::f32 && from == DType::f16) return accumulate_half<f16>(call);
  fail(Code::unsupported, text("accumulate: the cpu backend cannot add ", from, " to a slot of ", to, "; cast the value first"));
}

}  // namespace

const Kernel kernel_accumulate = {run_accumulate};

}  // namespace st::cpu::ST_ISA

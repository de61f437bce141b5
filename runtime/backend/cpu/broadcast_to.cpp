// y = x with dimensions of size 1 stretched
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/segments.h"

namespace st::cpu::ST_ISA {
namespace {

template <class Bits>
void broadcast_bits(const Call& call) {
  const Segments<1> segments(call.out[0].shape, {&call.in[0].shape});
  const Bits* const x = as<const Bits>(call.in[0]);
  Bits* const y = as<Bits>(call.out[0]);
  const bool moves = segments.inner_stride(0) != 0;
  call.workers->run_range(segments.elements, kGrain, [&](int64_t begin, int64_t end) {
    segments.walk(begin, end, [&](int64_t to, const std::array<int64_t, 1>& from, int64_t length) {
      if (moves) {
        std::copy_n(x + from[0], length, y + to);
      } else {
        std::fill_n(y + to, length, x[from[0]]);
      }
    });
  });
}

void run_broadcast_to(const Call& call) {
  switch (bytes_of(call.out[0].dtype)) {
    case 1:
      return broadcast_bits<uint8_t>(call);
    case 2:
      return broadcast_bits<uint16_t>(call);
    case 4:
      return broadcast_bits<uint32_t>(call);
    default:
      return broadcast_bits<uint64_t>(call);
  }
}

}  // namespace

const Kernel kernel_broadcast_to = {run_broadcast_to};

}  // namespace st::cpu::ST_ISA

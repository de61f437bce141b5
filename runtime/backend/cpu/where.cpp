// c = condition ? a : b; copies bits, so one loop serves all types of a size
#include "backend/cpu/grain.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/segments.h"

namespace st::cpu::ST_ISA {
namespace {

template <class Bits>
void where_of(const Call& call) {
  const Segments<3> segments(call.out[0].shape, {&call.in[0].shape, &call.in[1].shape, &call.in[2].shape});
  const uint8_t* const condition = as<const uint8_t>(call.in[0]);
  const Bits* const a = as<const Bits>(call.in[1]);
  const Bits* const b = as<const Bits>(call.in[2]);
  Bits* const c = as<Bits>(call.out[0]);
  const int64_t sc = segments.inner_stride(0), sa = segments.inner_stride(1), sb = segments.inner_stride(2);
  call.workers->run_range(segments.elements, kGrain, [&](int64_t begin, int64_t end) {
    segments.walk(begin, end, [&](int64_t to, const std::array<int64_t, 3>& from, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        const Bits yes = a[from[1] + i * sa], no = b[from[2] + i * sb];
        c[to + i] = condition[from[0] + i * sc] != 0 ? yes : no;
      }
    });
  });
}

void run_where(const Call& call) {
  switch (bytes_of(call.out[0].dtype)) {
    case 1:
      return where_of<uint8_t>(call);
    case 2:
      return where_of<uint16_t>(call);
    case 4:
      return where_of<uint32_t>(call);
    default:
      return where_of<uint64_t>(call);
  }
}

}  // namespace

const Kernel kernel_where = {run_where};

}  // namespace st::cpu::ST_ISA

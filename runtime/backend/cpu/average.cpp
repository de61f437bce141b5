// a = a + (1 - decay) (w - a), like torch's lerp; at the first update a = w.
// Memory limits it (three operations per element read and written), so every set uses the portable one and the library stays small.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar.h"
#include "backend/cpu/stream_ahead.h"
#include "backend/cpu/table.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P>
void average_of(const Call& call) {
  const Batch<P> take(static_cast<P>(1 - call.attrs->real("decay")));
  const bool is_first = scalar_of(call.in[2], 1) == 1;
  const int64_t ahead = stream_ahead();
  call.workers->run_range(call.writes[0].elements(), kGrain, [=](int64_t begin, int64_t end) {
    const P* const value = as<const P>(call.in[0]) + begin;
    P* const average = as<P>(call.writes[0]) + begin;
    if (is_first) {
      std::copy_n(value, end - begin, average);
      return;
    }
    each_vector<P>(end - begin, [=](int64_t i, int64_t n) {
      __builtin_prefetch(value + i + ahead);
      __builtin_prefetch(average + i + ahead, 1);
      const Batch<P> a = load_part(average + i, n);
      store_part(average + i, fma(take, load_part(value + i, n) - a, a), n);
    });
  });
}

void run_average(const Call& call) {
  if constexpr (kComputesDouble) {
    if (*as<const uint8_t>(call.in[1]) != 0) return;
    const DType type = call.writes[0].dtype;
    if (type == DType::f32) return average_of<float>(call);
    if (type == DType::f64) return average_of<double>(call);
    fail(Code::unsupported, text("average: the cpu backend has no average of ", type, "; keep f32 master weights"));
  } else {
    (*st_cpu_table_portable())[static_cast<size_t>(Op::average)].run(call);
  }
}

}  // namespace

const Kernel kernel_average = {run_average};

}  // namespace st::cpu::ST_ISA

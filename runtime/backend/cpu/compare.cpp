// c = a test b, as bool. All tables use the portable set's: no set has vectors for it, and each copy took 18 kB.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/segments.h"
#include "backend/cpu/table.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T, class Test>
void compare_by(const Call& call, Test test) {
  const Segments<2> segments(call.out[0].shape, {&call.in[0].shape, &call.in[1].shape});
  const T* const a = as<const T>(call.in[0]);
  const T* const b = as<const T>(call.in[1]);
  uint8_t* const c = as<uint8_t>(call.out[0]);
  const int64_t sa = segments.inner_stride(0), sb = segments.inner_stride(1);
  call.workers->run_range(segments.elements, kGrain, [&](int64_t begin, int64_t end) {
    segments.walk(begin, end, [&](int64_t to, const std::array<int64_t, 2>& from, int64_t length) {
      for (int64_t i = 0; i < length; ++i) c[to + i] = test(widen(a[from[0] + i * sa]), widen(b[from[1] + i * sb])) ? 1 : 0;
    });
  });
}

template <class T>
void compare_type(const Call& call) {
  const std::string& test = call.attrs->word("test");
  if (test == "equal") return compare_by<T>(call, [](auto a, auto b) { return a == b; });
  if (test == "not_equal") return compare_by<T>(call, [](auto a, auto b) { return a != b; });
  if (test == "less") return compare_by<T>(call, [](auto a, auto b) { return a < b; });
  if (test == "less_equal") return compare_by<T>(call, [](auto a, auto b) { return a <= b; });
  if (test == "greater") return compare_by<T>(call, [](auto a, auto b) { return a > b; });
  if (test == "greater_equal") return compare_by<T>(call, [](auto a, auto b) { return a >= b; });
  fail(Code::invalid_argument, text("compare: unknown test ", test, "; use equal, not_equal, less, less_equal, greater or greater_equal"));
}

void run_compare(const Call& call) {
  if constexpr (kComputesDouble) {  // this is the portable set
    with_computed_type(call.in[0].dtype, [&](auto t) { compare_type<decltype(t)>(call); });
  } else {
    (*st_cpu_table_portable())[static_cast<size_t>(Op::compare)].run(call);
  }
}

}  // namespace

const Kernel kernel_compare = {run_compare};

}  // namespace st::cpu::ST_ISA

// y = x keep / (1 - rate), keep from Philox (backend/dropout_mask.h)
#include "backend/cpu/pointwise.h"
#include "backend/cpu/scalar.h"
#include "backend/dropout_mask.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T>
void dropout_of(const Call& call) {
  const Attrs& attrs = *call.attrs;
  const double rate = attrs.real("rate");
  const int64_t n = call.out[0].elements(), first = attrs.integer("first");
  const int64_t given = attrs.integer("sample_elements");  // 0: slices of dimension 0 are samples
  const Shape& shape = call.in[0].shape;
  const int64_t per_sample = given > 0 ? given : std::max<int64_t>(1, shape.elements(std::min(1, shape.rank()), shape.rank()));
  const auto attempt = static_cast<uint64_t>(integer_of(call.in[1], 0));
  const auto first_sample = static_cast<uint64_t>(integer_of(call.in[1], 1));
  const DropoutMask mask(static_cast<uint64_t>(attrs.integer("seed")), static_cast<uint64_t>(attrs.integer("site")), attempt, rate);
  const auto factor = static_cast<Compute<T>>(1 / (1 - rate));
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  call.workers->run_range(n, kGrain, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    while (i < end) {
      const uint64_t sample = first_sample + static_cast<uint64_t>((first + i) / per_sample);
      const int64_t element = (first + i) % per_sample;
      const auto words = mask.words(sample, static_cast<uint64_t>(element / 4));
      const int64_t stop = std::min({end, i + 4 - element % 4, i + per_sample - element});
      for (int64_t at = element % 4; i < stop; ++i, ++at) {
        const Compute<T> kept = widen(x[i]) * factor;
        y[i] = narrow<T>(mask.keeps(words[static_cast<size_t>(at)]) ? kept : Compute<T>(0));
      }
    }
  });
}

void run_dropout(const Call& call) {
  with_float("dropout", call.out[0].dtype, [&](auto t) { dropout_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_dropout = {run_dropout};

}  // namespace st::cpu::ST_ISA

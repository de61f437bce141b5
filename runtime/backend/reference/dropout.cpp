#include <algorithm>

#include "backend/dropout_mask.h"
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_dropout{[](const Call& call) {
  const Operand &x = call.in[0], &counters = call.in[1], &y = call.out[0];
  const double rate = call.attrs->real("rate");
  const int64_t n = x.elements(), given = call.attrs->integer("sample_elements"), first = call.attrs->integer("first");
  // 0: slices of dimension 0 are samples
  const int64_t slice = x.shape.elements(std::min(1, x.shape.rank()), x.shape.rank());
  const int64_t sample_elements = given > 0 ? given : std::max<int64_t>(1, slice);
  const DropoutMask mask(static_cast<uint64_t>(call.attrs->integer("seed")), static_cast<uint64_t>(call.attrs->integer("site")),
                         static_cast<uint64_t>(get_integer(counters, 0)), rate);
  const int64_t first_sample = get_integer(counters, 1);
  for (int64_t i = 0; i < n; ++i) {
    const auto sample = static_cast<uint64_t>(first_sample + (first + i) / sample_elements);
    const bool kept = mask.keeps(sample, static_cast<uint64_t>((first + i) % sample_elements));
    set(y, i, kept ? get(x, i) / (1 - rate) : 0);
  }
}};

}  // namespace st::reference

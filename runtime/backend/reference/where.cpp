#include <cstring>

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {

constinit const Kernel kernel_where{[](const Call& call) {
  const Operand &condition = call.in[0], &a = call.in[1], &b = call.in[2], &c = call.out[0];
  const Strides from_condition = stretched(condition.shape, c.shape);
  const Strides from_a = stretched(a.shape, c.shape), from_b = stretched(b.shape, c.shape);
  const int64_t n = c.elements(), width = bytes_of(c.dtype);
  for (int64_t i = 0; i < n; ++i) {
    const bool take_a = get_integer(condition, place(i, c.shape, from_condition)) != 0;
    const Operand& from = take_a ? a : b;
    const int64_t at = place(i, c.shape, take_a ? from_a : from_b);
    std::memmove(as<std::byte>(c) + i * width, as<std::byte>(from) + at * width, static_cast<size_t>(width));  // c may be a or b
  }
}};

}  // namespace st::reference

// gather: y[i][j] = x[i][index[i][j]] along axis (torch.gather); its backward adds dy to the elements that gather read.
// x and index agree in every dimension except the axis.
#include <algorithm>
#include <cstring>

#include "backend/index_check.h"
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {
namespace {

/// Calls body(i, at): element i of index selects element `at` of a tensor of shape `source`.
template <class Body>
void each_choice(const char* op, const Call& call, const Operand& index, const Shape& source, Body body) {
  const auto axis = static_cast<size_t>(normalize_axis(op, call.attrs->integer("axis"), source.rank()));
  const int64_t size = source[static_cast<int32_t>(axis)];
  const Strides whole = strides_of(source);
  Strides others = whole;
  others[axis] = 0;
  for (int64_t i = 0; i < index.elements(); ++i) {
    const int64_t chosen = get_integer(index, i);
    check_index(op, chosen, i, index.shape, size);
    body(i, place(i, index.shape, others) + chosen * whole[axis]);
  }
}

void gather(const Call& call) {
  const Operand &x = call.in[0], &index = call.in[1], &y = call.out[0];
  const int64_t width = bytes_of(x.dtype);
  each_choice("gather", call, index, x.shape, [&](int64_t i, int64_t at) {
    std::memcpy(as<std::byte>(y) + i * width, as<std::byte>(x) + at * width, static_cast<size_t>(width));
  });
}

void gather_backward(const Call& call) {
  const Operand &index = call.in[0], &dy = call.in[1], &dx = call.out[0];
  auto* sum = reinterpret_cast<double*>(pointer_to(call.workspace));
  std::fill_n(sum, dx.elements(), 0.0);
  each_choice("gather_backward", call, index, dx.shape, [&](int64_t i, int64_t at) { sum[at] += get(dy, i); });
  for (int64_t i = 0; i < dx.elements(); ++i) set(dx, i, sum[i]);
}

}  // namespace

constinit const Kernel kernel_gather{gather};
constinit const Kernel kernel_gather_backward{gather_backward};

}  // namespace st::reference

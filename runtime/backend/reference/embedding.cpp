// embedding: y[..., :] = weight[tokens[...], :]. Backward: dweight[v, :] = sum of the dy rows whose token is v, in token order.
#include <algorithm>
#include <cstring>

#include "backend/index_check.h"
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {
namespace {

void embedding(const Call& call) {
  const Operand &weight = call.in[0], &tokens = call.in[1], &y = call.out[0];
  const int64_t row = weight.shape[1] * bytes_of(weight.dtype);
  const int64_t first = call.attrs->integer("first"), classes = call.attrs->integer("classes"), rows = weight.shape[0];
  for (int64_t i = 0; i < tokens.elements(); ++i) {
    const int64_t token = get_integer(tokens, i), own = token - first;
    check_token("embedding", token, i, tokens.shape, classes > 0 ? classes : rows);
    std::byte* const to = as<std::byte>(y) + i * row;
    if (own >= 0 && own < rows)
      std::memcpy(to, as<std::byte>(weight) + own * row, static_cast<size_t>(row));
    else
      std::memset(to, 0, static_cast<size_t>(row));
  }
}

void embedding_backward(const Call& call) {
  const Operand &tokens = call.in[0], &dy = call.in[1], &dweight = call.out[0];
  const int64_t rows = dweight.shape[0], columns = dweight.shape[1];
  const int64_t first = call.attrs->integer("first"), classes = call.attrs->integer("classes");
  auto* sum = reinterpret_cast<double*>(pointer_to(call.workspace));
  std::fill_n(sum, rows * columns, 0.0);
  for (int64_t i = 0; i < tokens.elements(); ++i) {
    const int64_t token = get_integer(tokens, i);
    check_token("embedding_backward", token, i, tokens.shape, classes > 0 ? classes : rows);
    const int64_t own = token - first;
    if (own < 0 || own >= rows) continue;
    for (int64_t c = 0; c < columns; ++c) sum[own * columns + c] += get(dy, i * columns + c);
  }
  for (int64_t i = 0; i < rows * columns; ++i) set(dweight, i, sum[i]);
}

}  // namespace

constinit const Kernel kernel_embedding{embedding};
constinit const Kernel kernel_embedding_backward{embedding_backward};

}  // namespace st::reference

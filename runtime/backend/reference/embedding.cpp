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
  for (int64_t i = 0; i < tokens.elements(); ++i) {
    const int64_t token = get_integer(tokens, i);
    check_token("embedding", token, i, tokens.shape, weight.shape[0]);
    std::memcpy(y.as<std::byte>() + i * row, weight.as<std::byte>() + token * row, static_cast<size_t>(row));
  }
}

void embedding_backward(const Call& call) {
  const Operand &tokens = call.in[0], &dy = call.in[1], &dweight = call.out[0];
  const int64_t rows = dweight.shape[0], columns = dweight.shape[1];
  auto* sum = reinterpret_cast<double*>(call.workspace.data());
  std::fill_n(sum, rows * columns, 0.0);
  for (int64_t i = 0; i < tokens.elements(); ++i) {
    const int64_t token = get_integer(tokens, i);
    check_token("embedding_backward", token, i, tokens.shape, rows);
    for (int64_t c = 0; c < columns; ++c) sum[token * columns + c] += get(dy, i * columns + c);
  }
  for (int64_t i = 0; i < rows * columns; ++i) set(dweight, i, sum[i]);
}

}  // namespace

constinit const Kernel kernel_embedding{embedding};
constinit const Kernel kernel_embedding_backward{embedding_backward};

}  // namespace st::reference

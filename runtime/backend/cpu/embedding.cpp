// y[i] = weight[tokens[i]], by rows. Backward adds dy rows in token order: each task owns a range of the vocabulary, clears it, and scans
// all tokens for its own. So no two tasks write one row, and the order is that of the tokens.
#include "backend/cpu/column_sums.h"
#include "backend/cpu/scalar.h"
#include "backend/index_check.h"

namespace st::cpu::ST_ISA {
namespace {

constexpr int64_t kRanges = 64;  // of the vocabulary: enough tasks for any machine, few scans of the tokens

void check_tokens(std::string_view op, const Operand& tokens, int64_t rows) {
  for (int64_t i = 0; i < tokens.elements(); ++i) check_token(op, integer_of(tokens, i), i, tokens.shape, rows);
}

void run_embedding(const Call& call) {
  const Operand &weight = call.in[0], &tokens = call.in[1];
  const int64_t first = call.attrs->integer("first"), classes = call.attrs->integer("classes"), rows = weight.shape[0];
  check_tokens("embedding", tokens, classes > 0 ? classes : rows);
  const int64_t columns = weight.shape[1], bytes = columns * bytes_of(weight.dtype);
  const auto* const from = as<const std::byte>(weight);
  auto* const to = as<std::byte>(call.out[0]);
  call.workers->run_range(tokens.elements(), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = integer_of(tokens, i) - first;
      if (row >= 0 && row < rows)
        std::memcpy(to + i * bytes, from + row * bytes, static_cast<size_t>(bytes));
      else
        std::memset(to + i * bytes, 0, static_cast<size_t>(bytes));
    }
  });
}

template <class T>
void embedding_backward_of(const Call& call) {
  using C = Compute<T>;
  const Operand& tokens = call.in[0];
  const T* const dy = as<const T>(call.in[1]);
  T* const dweight = as<T>(call.out[0]);
  const int64_t rows = call.out[0].shape[0], columns = call.out[0].shape[1], count = tokens.elements();
  const int64_t first = call.attrs->integer("first"), classes = call.attrs->integer("classes");
  check_tokens("embedding_backward", tokens, classes > 0 ? classes : rows);
  // 16-bit rows are summed in float, in the workspace.
  C* const sums = kIsHalf<T> ? reinterpret_cast<C*>(pointer_to(call.workspace)) : reinterpret_cast<C*>(dweight);
  call.workers->run_range(rows, std::max(rows_per_task(columns), (rows + kRanges - 1) / kRanges), [&](int64_t begin, int64_t end) {
    std::memset(sums + begin * columns, 0, static_cast<size_t>((end - begin) * columns) * sizeof(C));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t own = integer_of(tokens, i) - first;
      if (own < begin || own >= end) continue;
      C* const row = sums + own * columns;
      each_vector<C>(columns,
                     [&](int64_t c, int64_t n) { store_part(row + c, load_part(row + c, n) + load_part(dy + i * columns + c, n), n); });
    }
    if constexpr (kIsHalf<T>) {
      for (int64_t i = begin * columns; i < end * columns; ++i) dweight[i] = narrow<T>(sums[i]);
    }
  });
}

void run_embedding_backward(const Call& call) {
  with_float("embedding_backward", call.out[0].dtype, [&](auto t) { embedding_backward_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_embedding = {run_embedding};
const Kernel kernel_embedding_backward = {run_embedding_backward};

}  // namespace st::cpu::ST_ISA

#include "backend/cuda/fold.cuh"

#include <algorithm>

#include "backend/cuda/enqueue.h"
#include "base/error.h"

namespace st::cuda {
namespace {

/// Vectors of 16 bytes; of bytes shorter ones, whose sums are 32 bytes: more do not fit in the registers of a thread.
template <class T>
constexpr int kTogether = sizeof(T) == 1 ? 4 : static_cast<int>(16 / sizeof(T));

bool is_aligned(const RankFold& fold) {
  return fold.sums.at % 16 == 0 && std::ranges::all_of(fold.terms, [](Address term) { return term.at % 16 == 0; });
}

template <int kEach, class Sum, class T>
void launch_fold(StreamHandle stream, const RankFold& fold) {
  Pointers<const T, kMostTerms> terms{};
  std::ranges::transform(fold.terms, terms.at, [](Address term) { return reinterpret_cast<const T*>(term.at); });
  launch(stream, {blocks_for(fold.elements, kEach), kBlock}, fold_terms<kEach, Sum, T, kMostTerms>, reinterpret_cast<Sum*>(fold.sums.at),
         terms, static_cast<int>(fold.terms.size()), fold.adds, fold.elements);
}

template <class Sum, class T>
void fold_of(StreamHandle stream, const RankFold& fold) {
  is_aligned(fold) ? launch_fold<kTogether<T>, Sum, T>(stream, fold) : launch_fold<1, Sum, T>(stream, fold);
}

}  // namespace

void enqueue_fold(StreamHandle stream, const RankFold& fold) {
  require(fold.terms.size() <= kMostTerms, Code::unsupported, "cuda: a sum of ", fold.terms.size(), " ranks on one device, at most ",
          kMostTerms, " can be added");
  switch (fold.dtype) {
    case DType::f32:
      return fold_of<float, float>(stream, fold);
    case DType::bf16:
      return fold.type == SumType::own ? fold_of<Bf16, Bf16>(stream, fold) : fold_of<float, Bf16>(stream, fold);
    case DType::f16:
      return fold.type == SumType::own ? fold_of<F16, F16>(stream, fold) : fold_of<float, F16>(stream, fold);
    case DType::f64:
      return fold_of<double, double>(stream, fold);
    case DType::i64:
      return fold_of<uint64_t, int64_t>(stream, fold);
    case DType::i32:
      return fold_of<uint64_t, int32_t>(stream, fold);
    case DType::u8:
      return fold_of<uint64_t, uint8_t>(stream, fold);
    case DType::boolean:
      break;
  }
  fail(Code::unsupported, text("cuda: ranks do not add elements of type ", fold.dtype));
}

}  // namespace st::cuda

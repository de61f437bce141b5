#include "backend/cuda/cast.cuh"

#include <type_traits>

#include "backend/cuda/convert.cuh"
#include "backend/cuda/enqueue.h"
#include "base/error.h"

namespace st::cuda {
namespace {

template <class To, class From>
void cast_of(StreamHandle stream, void* y, const void* x, int64_t elements) {
  launch(stream, {blocks_for(elements, kCastVector), kBlock}, cast_elements<To, From>, static_cast<To*>(y), static_cast<const From*>(x),
         elements);
}

using Cast = void (*)(StreamHandle stream, void* y, const void* x, int64_t elements);

template <class To, class From>
constexpr Cast cast_to() {
  if constexpr (std::is_same_v<To, From>) {
    return nullptr;  // a copy
  } else {
    return cast_of<To, From>;
  }
}

template <class To>
Cast cast_from(DType from) {
  if (from == DType::f32) return cast_to<To, float>();
  if (from == DType::bf16) return cast_to<To, Bf16>();
  return from == DType::f16 ? cast_to<To, F16>() : nullptr;
}

}  // namespace

void enqueue_cast(StreamHandle stream, DType to, void* y, DType from, const void* x, int64_t elements) {
  require(to != from, Code::internal, "cuda: a cast of ", from, " to itself is a copy");
  Cast cast = nullptr;
  if (to == DType::f32) cast = cast_from<float>(from);
  if (to == DType::bf16) cast = cast_from<Bf16>(from);
  if (to == DType::f16) cast = cast_from<F16>(from);
  if (cast != nullptr) return cast(stream, y, x, elements);
  launch(stream, {blocks_for(elements, kConvertVector), kBlock}, is_floating(from) ? convert_elements<double> : convert_elements<int64_t>,
         to, y, from, x, elements);
}

}  // namespace st::cuda

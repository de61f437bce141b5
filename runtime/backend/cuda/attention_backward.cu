#include "backend/cuda/attention_backward.cuh"

#include "backend/cuda/attention_launch.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/half_attention_backward.cuh"
#include "backend/kernel_side.h"

namespace st::cuda {

void enqueue_attention_backward(const KernelQueue& queue, Op op, const Call& call) {
  const AttentionShape shape = attention_shape(op, call);
  if (by_tensor_cores(shape))
    return with_half_types(shape, [&](auto types) {
      using Types = decltype(types);
      const auto *const q = as<const uint16_t>(call.in[0]), *const k = as<const uint16_t>(call.in[1]);
      const auto *const v = as<const uint16_t>(call.in[2]), *const d_o = as<const uint16_t>(call.in[5]);
      const auto* const lse = as<const float>(call.in[4]);
      auto* const delta = pointer_to<float>(call.workspace);
      launch(queue.stream, {query_blocks(shape, kHeadRows, Types::kMost), kHeadThreads},
             attend_backward_queries_halves<typename Types::Element, Types::kMost>, shape, q, k, v, as<const uint16_t>(call.in[3]), lse,
             d_o, delta, as<uint16_t>(call.out[0]));
      launch(queue.stream, {key_blocks(shape, kHeadRows, Types::kMost), kHeadThreads},
             attend_backward_keys_halves<typename Types::Element, Types::kMost>, shape, q, k, v, lse, d_o, delta, as<uint16_t>(call.out[1]),
             as<uint16_t>(call.out[2]));
    });
  with_attention_types(shape, [&](auto types) {
    using Types = decltype(types);
    using C = typename Types::Compute;
    using Tile = BackwardTile<C, Types::kMost>;
    const auto *const q = as<const void>(call.in[0]), *const k = as<const void>(call.in[1]), *const v = as<const void>(call.in[2]);
    const auto* const d_o = as<const void>(call.in[5]);
    const auto* const lse = as<const C>(call.in[4]);
    auto* const delta = pointer_to<C>(call.workspace);
    launch(queue.stream, {query_blocks(shape, Tile::kRows, Types::kMost), Tile::kThreads}, attend_backward_queries<C, Types::kMost>, shape,
           q, k, v, as<const void>(call.in[3]), lse, d_o, delta, as<void>(call.out[0]));
    launch(queue.stream, {key_blocks(shape, Tile::kRows, Types::kMost), Tile::kThreads}, attend_backward_keys<C, Types::kMost>, shape, q, k,
           v, lse, d_o, delta, as<void>(call.out[1]), as<void>(call.out[2]));
  });
}

}  // namespace st::cuda

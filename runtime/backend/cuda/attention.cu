#include "backend/cuda/attention.cuh"

#include "backend/cuda/attention_launch.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/half_attention.cuh"
#include "backend/kernel_side.h"

namespace st::cuda {

void enqueue_attention(const KernelQueue& queue, Op op, const Call& call) {
  const AttentionShape shape = attention_shape(op, call);
  if (by_tensor_cores(shape))
    return with_half_types(shape, [&](auto types) {
      using Types = decltype(types);
      launch(queue.stream, {query_blocks(shape, kHeadRows, Types::kMost), kHeadThreads},
             attend_halves<typename Types::Element, Types::kMost>, shape, as<const uint16_t>(call.in[0]), as<const uint16_t>(call.in[1]),
             as<const uint16_t>(call.in[2]), as<uint16_t>(call.out[0]), as<float>(call.out[1]));
    });
  with_attention_types(shape, [&](auto types) {
    using Types = decltype(types);
    using C = typename Types::Compute;
    using Tile = ForwardTile<C, Types::kMost>;
    launch(queue.stream, {query_blocks(shape, Tile::kRows, Types::kMost), Tile::kThreads}, attend<C, Types::kMost>, shape,
           as<const void>(call.in[0]), as<const void>(call.in[1]), as<const void>(call.in[2]), as<void>(call.out[0]), as<C>(call.out[1]));
  });
}

}  // namespace st::cuda

#include "backend/cuda/rearrange.cuh"

#include <array>

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "backend/permutation.h"
#include "base/error.h"

namespace st::cuda {
namespace {

template <class Bits>
void launch_same(StreamHandle stream, const Operand& x, const Operand& y, const Walk<1>& walk) {
  void (*const kernel)(Same, Bits*, Walk<1>, int64_t, const Bits*) = pointwise<Same, Bits, Bits>;
  launch(stream, {blocks_for(y.elements(), kWidth<Bits, Bits>), kBlock}, kernel, Same{}, as<Bits>(y), walk, y.elements(),
         as<const Bits>(x));
}

// --- broadcast_to and transpose

template <class Bits>
void launch_tiles(StreamHandle stream, const Operand& x, const Operand& y, const Permutation& p, size_t crossed) {
  const auto last = static_cast<size_t>(p.rank - 1);
  Walk<2> others;
  int64_t matrices = 1;
  for (size_t d = 0; d < last; ++d) {
    if (d == crossed) continue;
    others.size[others.rank] = p.size[d];
    others.stride[0][others.rank] = p.x_stride[d];
    others.stride[1][others.rank++] = p.y_stride[d];
    matrices *= p.size[d];
  }
  if (others.rank == 0) others.size[others.rank++] = 1;
  const auto tiles = [](int64_t n) { return (n + kTile - 1) / kTile; };
  const Crossing crossing = {.rows = p.size[crossed],
                             .columns = p.size[last],
                             .x_step = p.x_stride[last],
                             .y_step = p.y_stride[crossed],
                             .row_tiles = tiles(p.size[crossed]),
                             .column_tiles = tiles(p.size[last])};
  launch(stream, {matrices * crossing.row_tiles * crossing.column_tiles, kBlock}, transpose_tiles<Bits>, as<const Bits>(x), as<Bits>(y),
         crossing, others, matrices);
}

void enqueue_transpose(StreamHandle stream, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const Permutation p(x.shape, call.attrs->ints("order"));
  if (p.elements == 0) return;
  const auto last = static_cast<size_t>(p.rank - 1);
  size_t crossed = 0;
  while (p.x_stride[crossed] != 1) ++crossed;
  with_bits_of(y.dtype, [&](auto bits) {
    using Bits = decltype(bits);
    if (crossed != last) return launch_tiles<Bits>(stream, x, y, p, crossed);
    Walk<1> walk;
    walk.rank = p.rank;
    for (int d = 0; d < p.rank; ++d) {
      walk.size[d] = p.size[static_cast<size_t>(d)];
      walk.stride[0][d] = p.x_stride[static_cast<size_t>(d)];
    }
    launch_same<Bits>(stream, x, y, walk);
  });
}

void enqueue_broadcast_to(StreamHandle stream, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  with_bits_of(y.dtype, [&](auto bits) { launch_same<decltype(bits)>(stream, x, y, walk_of<1>(y.shape, {&x.shape})); });
}

// --- blocks of bytes

struct Blocks {
  uintptr_t from = 0, to = 0;  // addresses; from 0: zeros
  int64_t from_step = 0, to_step = 0, bytes = 0, count = 0;
};

template <class Word>
void launch_move(StreamHandle stream, const Blocks& blocks) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Word));
  const BlockSteps steps = {blocks.bytes / kBytes, blocks.from_step / kBytes, blocks.to_step / kBytes};
  const int64_t words = steps.block * blocks.count;
  launch(stream, {blocks_for(words, 1), kBlock}, move_blocks<Word>, reinterpret_cast<const Word*>(blocks.from),
         reinterpret_cast<Word*>(blocks.to), steps, words);
}

/// In the largest words to which everything is aligned.
void move(StreamHandle stream, const Blocks& blocks) {
  if (blocks.bytes == 0 || blocks.count == 0) return;
  const auto all = static_cast<uint64_t>(blocks.from | blocks.to) | static_cast<uint64_t>(blocks.from_step | blocks.to_step | blocks.bytes);
  if (all % 16 == 0) return launch_move<SixteenBytes>(stream, blocks);
  if (all % 8 == 0) return launch_move<uint64_t>(stream, blocks);
  if (all % 4 == 0) return launch_move<uint32_t>(stream, blocks);
  if (all % 2 == 0) return launch_move<uint16_t>(stream, blocks);
  launch_move<uint8_t>(stream, blocks);
}

/// A tensor cut along an axis: `outer` blocks of `line` bytes; one index of the axis takes `step` bytes.
struct AlongAxis {
  int64_t outer, step, line;
  AlongAxis(const Operand& x, int32_t axis)
      : outer(x.shape.elements(0, axis)),
        step(x.shape.elements(axis + 1, x.shape.rank()) * bytes_of(x.dtype)),
        line(step * x.shape[axis]) {}
};

uintptr_t place_of(const Operand& x, int64_t bytes = 0) { return x.data.at + static_cast<uintptr_t>(bytes); }

int32_t axis_of(Op op, const Call& call, const Operand& x) {
  return normalize_axis(name_of(op), call.attrs->integer("axis"), x.shape.rank());
}

void enqueue_slice(StreamHandle stream, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const int32_t axis = axis_of(Op::slice, call, x);
  const AlongAxis of_x(x, axis), of_y(y, axis);
  move(stream, {place_of(x, call.attrs->integer("start") * of_x.step), place_of(y), of_x.line, of_y.line, of_y.line, of_x.outer});
}

void enqueue_split(StreamHandle stream, const Call& call) {
  const Operand& x = call.in[0];
  const int32_t axis = axis_of(Op::split, call, x);
  const AlongAxis of_x(x, axis);
  int64_t begin = 0;
  for (const Operand& part : call.out) {
    const AlongAxis of_part(part, axis);
    move(stream, {place_of(x, begin), place_of(part), of_x.line, of_part.line, of_part.line, of_x.outer});
    begin += of_part.line;
  }
}

void enqueue_concat(StreamHandle stream, const Call& call) {
  const Operand& y = call.out[0];
  const int32_t axis = axis_of(Op::concat, call, y);
  const AlongAxis of_y(y, axis);
  int64_t begin = 0;
  for (const Operand& part : call.in) {
    const AlongAxis of_part(part, axis);
    move(stream, {place_of(part), place_of(y, begin), of_part.line, of_y.line, of_part.line, of_y.outer});
    begin += of_part.line;
  }
}

void enqueue_pad(StreamHandle stream, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const int32_t axis = axis_of(Op::pad, call, x);
  const AlongAxis of_x(x, axis), of_y(y, axis);
  const int64_t before = call.attrs->integer("before") * of_x.step, after = call.attrs->integer("after") * of_x.step;
  move(stream, {0, place_of(y), 0, of_y.line, before, of_x.outer});
  move(stream, {place_of(x), place_of(y, before), of_x.line, of_y.line, of_x.line, of_x.outer});
  move(stream, {0, place_of(y, before + of_x.line), 0, of_y.line, after, of_x.outer});
}

void enqueue_whole(StreamHandle stream, const Operand& x, int64_t begin, const Operand& y) {
  move(stream, {place_of(x, begin), place_of(y), 0, 0, y.elements() * bytes_of(y.dtype), 1});
}

}  // namespace

void enqueue_rearranged(const KernelQueue& queue, Op op, const Call& call) {
  const StreamHandle stream = queue.stream;
  switch (op) {
    case Op::broadcast_to:
      return enqueue_broadcast_to(stream, call);
    case Op::transpose:
      return enqueue_transpose(stream, call);
    case Op::slice:
      return enqueue_slice(stream, call);
    case Op::split:
      return enqueue_split(stream, call);
    case Op::concat:
      return enqueue_concat(stream, call);
    case Op::pad:
      return enqueue_pad(stream, call);
    case Op::store:
      return enqueue_whole(stream, call.in[0], 0, call.writes[0]);
    case Op::tensor_part:
      return enqueue_whole(stream, call.in[0], call.attrs->integer("rank") * call.out[0].elements() * bytes_of(call.out[0].dtype),
                           call.out[0]);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " moves no elements"));
  }
}

}  // namespace st::cuda

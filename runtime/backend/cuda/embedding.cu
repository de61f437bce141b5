#include "backend/cuda/embedding.cuh"

#include <algorithm>
#include <utility>

#include "backend/cuda/element_types.h"
#include "backend/cuda/embedding_work.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/rearrange.cuh"
#include "backend/kernel_side.h"

namespace st::cuda {
namespace {

WeightRows weight_rows(const Attrs& attrs, int64_t rows) {
  const int64_t classes = attrs.integer("classes");
  return {attrs.integer("first"), rows, classes > 0 ? classes : rows};
}

template <class Word>
void launch_copy(const KernelQueue& queue, const Call& call) {
  const Operand &weight = call.in[0], &tokens = call.in[1];
  const int64_t words = weight.shape[1] * bytes_of(weight.dtype) / static_cast<int64_t>(sizeof(Word));
  launch(queue.stream, {blocks_for(tokens.elements() * std::max<int64_t>(words, 1), 1), kBlock}, copy_rows<Word>, queue.faults,
         weight_rows(*call.attrs, weight.shape[0]), as<const Word>(weight), indices(tokens), as<Word>(call.out[0]), words,
         tokens.elements());
}

/// The keys of all tokens in order, in one of the two arrays.
const uint64_t* enqueue_sort(const KernelQueue& queue, const WeightRows& rows, const Operand& tokens, uint64_t* keys) {
  const int64_t count = tokens.elements();
  uint64_t* other = keys + count;
  launch(queue.stream, {blocks_for(count, 1), kBlock}, sort_tiles, queue.faults, rows, indices(tokens), count, keys);
  for (int64_t width = kBlock; width < count; width *= 2) {
    launch(queue.stream, {blocks_for(count, 1), kBlock}, merge_runs, keys, other, width, count);
    std::swap(keys, other);
  }
  return keys;
}

template <int kEach, class T>
void launch_sums(StreamHandle stream, const uint64_t* keys, const uint32_t* first_keys, const Operand& dy, const Operand& dweight) {
  launch(stream, {blocks_for(dweight.elements(), kEach), kBlock}, sum_rows<kEach, T>, keys, first_keys, as<const T>(dy), as<T>(dweight),
         dweight.shape[0], dweight.shape[1]);
}

}  // namespace

void enqueue_embedding(const KernelQueue& queue, Op /*op*/, const Call& call) {
  const Operand& weight = call.in[0];
  if (weight.shape[1] * bytes_of(weight.dtype) % static_cast<int64_t>(sizeof(SixteenBytes)) == 0)
    return launch_copy<SixteenBytes>(queue, call);
  with_bits_of(weight.dtype, [&](auto bits) { launch_copy<decltype(bits)>(queue, call); });
}

void enqueue_embedding_backward(const KernelQueue& queue, Op op, const Call& call) {
  const Operand &tokens = call.in[0], &dweight = call.out[0];
  const int64_t rows = dweight.shape[0], columns = dweight.shape[1];
  const EmbeddingWork work = {tokens.elements(), rows};
  with_floating(op, dweight.dtype, [&](auto t) {
    using T = decltype(t);
    const uint64_t* const keys = enqueue_sort(queue, weight_rows(*call.attrs, rows), tokens, pointer_to<uint64_t>(call.workspace));
    auto* const first_keys = pointer_to<uint32_t>(call.workspace + work.first_keys());
    launch(queue.stream, {blocks_for(rows + 1, 1), kBlock}, find_rows, keys, tokens.elements(), first_keys, rows);
    constexpr int kEach = static_cast<int>(16 / sizeof(T));
    columns % kEach == 0 ? launch_sums<kEach, T>(queue.stream, keys, first_keys, call.in[1], dweight)
                         : launch_sums<1, T>(queue.stream, keys, first_keys, call.in[1], dweight);
  });
}

}  // namespace st::cuda

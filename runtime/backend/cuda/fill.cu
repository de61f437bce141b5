#include "backend/cuda/fill.cuh"

#include "backend/cuda/enqueue.h"

namespace st::cuda {
namespace {

template <class Word>
void fill_of(StreamHandle stream, void* y, uint64_t bits, int64_t elements) {
  constexpr int64_t kPerThread = 16 / sizeof(Word);
  launch(stream, {blocks_for(elements, kPerThread), kBlock}, fill_elements<Word>, static_cast<Word*>(y), static_cast<Word>(bits), elements);
}

}  // namespace

void enqueue_fill(StreamHandle stream, DType dtype, void* y, uint64_t bits, int64_t elements) {
  switch (bytes_of(dtype)) {
    case 1:
      return fill_of<uint8_t>(stream, y, bits, elements);
    case 2:
      return fill_of<uint16_t>(stream, y, bits, elements);
    case 4:
      return fill_of<uint32_t>(stream, y, bits, elements);
    default:
      return fill_of<uint64_t>(stream, y, bits, elements);
  }
}

}  // namespace st::cuda

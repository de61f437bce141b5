// Runs a kernel with a fault: planted_faults FAULT SEED ORDER. Prints the sum, or what the simulated grid says of it. Under ThreadSanitizer
// a missing barrier, fence or wait is a report.
//   none no_barrier no_second_barrier no_fence barrier_for_some lone_shuffle same_place    of the kernel
//   no_copy_wait no_copy_barrier early_copy    of a kernel with copies on their way; right_copies: none of them
//   no_full_wait early_release wrong_bytes    of products of tiles that are copied into a ring; right_ring: none of them
//   no_proxy_fence no_tile_barrier early_sums    of products of tiles that threads store; right_stores: none of them
//   no_wait    a second stream reads the sum without waiting for the first one
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <device/launch.h>
#include "base/float16.h"
#include "block_sums.cuh"
#include "staged_copies.cuh"
#include "tile_ring.cuh"

namespace {

using namespace st;
using namespace st::cuda;

constexpr int kBlocks = 3;

KERNEL(1) copy_one(const float* from, float* to) { *to = *from; }

struct Memory {
  std::vector<float> x = std::vector<float>(kBlocks * kSumThreads, 0.5F), sums = std::vector<float>(kBlocks);
  unsigned arrived = 0;
  float sum = 0, copy = 0;
};

template <Fault kFault>
void give(StreamHandle stream, Memory& memory) {
  launch(stream, {kBlocks, kSumThreads}, sum_twice<kFault>, memory.x.data(), memory.sums.data(), &memory.arrived, &memory.sum);
}

void give(std::string_view fault, StreamHandle stream, Memory& memory) {
  if (fault == "no_barrier") return give<Fault::no_barrier>(stream, memory);
  if (fault == "no_second_barrier") return give<Fault::no_second_barrier>(stream, memory);
  if (fault == "no_fence") return give<Fault::no_fence>(stream, memory);
  if (fault == "barrier_for_some") return give<Fault::barrier_for_some>(stream, memory);
  if (fault == "lone_shuffle") return give<Fault::lone_shuffle>(stream, memory);
  if (fault == "same_place") return give<Fault::same_place>(stream, memory);
  give<Fault::none>(stream, memory);
}

template <CopyFault kFault>
void print_copies(StreamHandle stream) {
  std::vector<FourNumbers> x(kCopySteps * kCopyThreads, {{2, 0, 0, 0}});
  std::vector<float> sums(kCopyThreads);
  launch(stream, {1, kCopyThreads}, sum_copies<kFault>, x.data()->at, sums.data());
  stream->engine->finish(*stream->queue);
  float all = 0;
  for (const float sum : sums) all += sum;
  std::printf("copied %g\n", static_cast<double>(all));
}

bool prints_copies(std::string_view fault, StreamHandle stream) {
  if (fault == "right_copies") return print_copies<CopyFault::none>(stream), true;
  if (fault == "no_copy_wait") return print_copies<CopyFault::no_copy_wait>(stream), true;
  if (fault == "no_copy_barrier") return print_copies<CopyFault::no_copy_barrier>(stream), true;
  if (fault == "early_copy") return print_copies<CopyFault::early_copy>(stream), true;
  return false;
}

/// Prints how many elements of a product of whole numbers are right.
template <class Launch>
void print_product(StreamHandle stream, int depth, const Launch& launch_product) {
  struct alignas(16) EightNumbers {
    uint16_t at[8];
  };
  const auto number = [](int row, int k, int factor) { return (row * 5 + k * factor) % 7 - 3; };
  const auto elements = static_cast<size_t>(kRingRows * depth);
  std::vector<EightNumbers> a(elements / 8), b(elements / 8);
  std::vector<float> c(size_t{kRingRows} * kRingRows);
  for (int i = 0; i < kRingRows * depth; ++i) {
    a.data()[i / 8].at[i % 8] = bf16_of(static_cast<float>(number(i / depth, i % depth, 3)));
    b.data()[i / 8].at[i % 8] = bf16_of(static_cast<float>(number(i / depth, i % depth, 4)));
  }
  launch_product(a.data()->at, b.data()->at, c.data());
  stream->engine->finish(*stream->queue);
  int right = 0;
  for (int i = 0; i < kRingRows; ++i)
    for (int j = 0; j < kRingRows; ++j) {
      int wanted = 0;
      for (int k = 0; k < depth; ++k) wanted += number(i, k, 3) * number(j, k, 4);
      right += c[static_cast<size_t>(i * kRingRows + j)] == static_cast<float>(wanted) ? 1 : 0;
    }
  std::printf("multiplied %d\n", right);
}

template <TileFault kFault>
void print_ring(StreamHandle stream) {
  constexpr int kSteps = 5, kDepth = kSteps * kTileColumns;
  print_product(stream, kDepth, [&](const uint16_t* a, const uint16_t* b, float* c) {
    launch(stream, {1, kRingThreads}, multiply_by_ring<kFault>, make_tensor_map(a, kRingRows, kDepth, kRingRows),
           make_tensor_map(b, kRingRows, kDepth, kRingRows), c, kSteps);
  });
}

template <TileFault kFault>
void print_stores(StreamHandle stream) {
  print_product(stream, kTileColumns, [&](const uint16_t* a, const uint16_t* b, float* c) {
    launch(stream, {1, kGroupThreads}, multiply_stored<kFault>, a, b, c);
  });
}

bool prints_product(std::string_view fault, StreamHandle stream) {
  if (fault == "right_ring") return print_ring<TileFault::none>(stream), true;
  if (fault == "no_full_wait") return print_ring<TileFault::no_full_wait>(stream), true;
  if (fault == "early_release") return print_ring<TileFault::early_release>(stream), true;
  if (fault == "wrong_bytes") return print_ring<TileFault::wrong_bytes>(stream), true;
  if (fault == "right_stores") return print_stores<TileFault::none>(stream), true;
  if (fault == "no_proxy_fence") return print_stores<TileFault::no_proxy_fence>(stream), true;
  if (fault == "early_sums") return print_stores<TileFault::early_sums>(stream), true;
  if (fault == "no_tile_barrier") return print_stores<TileFault::no_tile_barrier>(stream), true;
  return false;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string_view fault = words[1], order = words[3];
  const auto seed = static_cast<uint64_t>(std::atoi(words[2]));
  simulated::set_seed(seed);
  const auto engine = std::make_shared<StreamEngine>(order == "late"     ? Order::late
                                                     : order == "random" ? Order::random
                                                                         : Order::eager,
                                                     seed);
  Memory memory;
  const auto made = std::make_shared<StreamEngine::Point>();
  CUstream_st sums{.engine = engine}, copies{.engine = engine};
  try {
    if (prints_copies(fault, &sums) || prints_product(fault, &sums)) return 0;
    give(fault, &sums, memory);
    engine->record(*sums.queue, made);
    if (fault != "no_wait") engine->wait(*copies.queue, made);
    launch(&copies, {1, 1}, copy_one, &memory.sum, &memory.copy);
    engine->finish(*copies.queue);
    engine->finish(*sums.queue);
  } catch (const std::runtime_error& why) {
    std::printf("refused: %s\n", why.what());
    return 0;
  }
  std::printf("sum %g, copy %g\n", static_cast<double>(memory.sum), static_cast<double>(memory.copy));
}

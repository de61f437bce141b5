// A stream as kernels get it, and the word in which they report what only the data shows.
#pragma once

#include <cstdint>

#include <device/launch.h>

namespace st::cuda {

/// Index out of range in the data of a call. Two words, in the device's memory: kNoFault or (call << 40 | element) of the smallest that was
/// reported (index_faults.cuh), and the index itself, or that of another one; a stream's finish() throws it. Updates write nothing once
/// there is one, or kHalted (Stream::halt_updates).
struct IndexFaults {
  static constexpr uint64_t kNoFault = ~uint64_t{0};
  static constexpr uint64_t kHalted = kNoFault - 1;  // no call has this number
  static constexpr int kElementBits = 40;

  uint64_t* at[1] = {nullptr};  // null: nothing is reported
  uint64_t call = 0;            // number of the call, below 2^24 - 1
};

class ProductChoices;  // product_choice.h

struct KernelQueue {
  KernelQueue(StreamHandle own_stream, const IndexFaults& own_faults = {}, ProductChoices* own_products = nullptr)
      : stream(own_stream), faults(own_faults), products(own_products) {}

  StreamHandle stream;
  IndexFaults faults;
  ProductChoices* products;  // null: our kernels alone
};

}  // namespace st::cuda

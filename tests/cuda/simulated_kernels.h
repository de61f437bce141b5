// What tests of kernels on the simulated grid share: memory with a guard, a stream, and the cpu's kernels, whose bits are wanted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/float_mode.h"
#include "base/workers.h"

namespace st::cuda {

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};
constexpr int64_t kGuard = 64;  // bytes behind a result, which no kernel writes

/// Memory with the alignment of a device's and a guard; the bytes are 0xA5 until written.
class Bytes {
 public:
  explicit Bytes(int64_t bytes) : bytes_(bytes), words_(static_cast<size_t>((bytes + kGuard) / 16 + 2), Word{}) {
    std::memset(data(), 0xA5, words_.size() * sizeof(Word));
  }
  explicit Bytes(const std::vector<uint8_t>& values) : Bytes(static_cast<int64_t>(values.size())) { std::ranges::copy(values, data()); }

  uint8_t* data() { return words_.data()->at; }
  std::vector<uint8_t> taken() {
    for (int64_t i = 0; i < kGuard; ++i) EXPECT_EQ(data()[bytes_ + i], 0xA5) << "behind the end";
    return {data(), data() + bytes_};
  }

 private:
  struct alignas(16) Word {
    uint8_t at[16];
  };
  int64_t bytes_;
  std::vector<Word> words_;
};

class KernelTest : public testing::Test {
 protected:
  explicit KernelTest(Order order) : stream_{.engine = std::make_shared<StreamEngine>(order, 5)} {}

  void finish() { stream_.engine->finish(*stream_.queue); }
  void run_on_cpu(Op op, Call call) {
    const FloatMode mode;
    call.workers = &workers_;
    cpu_->kernels()[static_cast<size_t>(op)].run(call);
  }

  CUstream_st stream_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend();
  Workers workers_{1};
};

}  // namespace st::cuda

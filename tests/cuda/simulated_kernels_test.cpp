// The CUDA plug-in's kernels, compiled as C++ and run by grid_engine.h: their bits are the cpu's.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/workers.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};
constexpr int64_t kGuard = 64;  // bytes behind a result, which no kernel writes

/// Memory with the alignment of a device's and a guard; the bytes are 0xA5 until written.
class Bytes {
 public:
  explicit Bytes(int64_t bytes) : bytes_(bytes), words_(static_cast<size_t>((bytes + kGuard) / 16 + 2), Word{}) {
    std::memset(data(), 0xA5, words_.size() * sizeof(Word));
  }
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

class Kernels : public testing::TestWithParam<Order> {
 protected:
  void finish() { stream_.engine->finish(*stream_.queue); }

  CUstream_st stream_{.engine = std::make_shared<StreamEngine>(GetParam(), 5)};
  std::unique_ptr<Backend> cpu_ = make_cpu_backend();
  Workers workers_{1};

  std::vector<uint8_t> by_cpu(Op op, DType to, const Operand* x, int64_t elements, const Attrs& attrs) {
    Bytes y(elements * bytes_of(to));
    const Operand out = {address_of(y.data()), to, Shape({elements})};
    Call call;
    if (x != nullptr) call.in = {x, 1};
    call.out = {&out, 1};
    call.attrs = &attrs;
    call.workers = &workers_;
    cpu_->kernels()[static_cast<size_t>(op)].run(call);
    return y.taken();
  }
};
INSTANTIATE_TEST_SUITE_P(, Kernels, testing::ValuesIn(kOrders), [](const auto& given) {
  return std::string(given.param == Order::eager ? "Eager" : given.param == Order::late ? "Late" : "Random");
});

/// All 16-bit patterns; of fp32 those with each upper half, and lower halves around the ties of both roundings.
std::vector<uint8_t> patterns(DType dtype) {
  std::vector<uint8_t> bytes;
  const auto add = [&](auto bits) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&bits);
    bytes.insert(bytes.end(), from, from + sizeof bits);
  };
  std::mt19937 random(3);
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    if (dtype != DType::f32) {
      add(static_cast<uint16_t>(upper));
      continue;
    }
    add(upper << 16 | (random() & 0xFFFF));
    if (upper % 8 == 0)
      for (const uint32_t lower : {0x0000U, 0x0FFFU, 0x1000U, 0x1001U, 0x3000U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
        add(upper << 16 | lower);
  }
  return bytes;
}

TEST_P(Kernels, CastsHaveTheBitsOfTheCpu) {
  for (const DType from : kFloats)
    for (const DType to : kFloats) {
      if (from == to) continue;
      const std::vector<uint8_t> given = patterns(from);
      const int64_t elements = static_cast<int64_t>(given.size()) / bytes_of(from);
      Bytes x(static_cast<int64_t>(given.size())), y(elements * bytes_of(to));
      std::memcpy(x.data(), given.data(), given.size());
      cuda::enqueue_cast(&stream_, to, y.data(), from, x.data(), elements);
      finish();
      const Operand in = {address_of(x.data()), from, Shape({elements})};
      EXPECT_TRUE(y.taken() == by_cpu(Op::cast, to, &in, elements, {})) << text(from, " to ", to);
    }
}

TEST_P(Kernels, OfAnyLengthWriteNothingBehindTheirEnd) {
  for (const int64_t elements : {0, 1, 2, 7, 8, 9, 15, 16, 17, 255, 2047, 2048, 2049}) {
    Bytes x(elements * 4), y(elements * 2), z(elements * 4);
    cuda::enqueue_fill(&stream_, DType::f32, x.data(), std::bit_cast<uint32_t>(1.5F), elements);
    cuda::enqueue_cast(&stream_, DType::bf16, y.data(), DType::f32, x.data(), elements);
    cuda::enqueue_cast(&stream_, DType::f32, z.data(), DType::bf16, y.data(), elements);
    finish();
    EXPECT_TRUE(z.taken() == x.taken()) << elements;
    EXPECT_EQ(y.taken().size(), static_cast<size_t>(elements) * 2);
  }
}

TEST_P(Kernels, FillHasTheBitsOfTheCpu) {
  const struct {
    DType dtype;
    double value;
    uint64_t bits;
  } kFills[] = {{DType::f32, 1.5, 0x3FC00000}, {DType::f64, -2, 0xC000000000000000}, {DType::bf16, 1.5, 0x3FC0}, {DType::f16, -2, 0xC000},
                {DType::i32, -7, 0xFFFFFFF9},  {DType::i64, -7, 0xFFFFFFFFFFFFFFF9}, {DType::u8, 200, 200},      {DType::boolean, 1, 1}};
  for (const auto& [dtype, value, bits] : kFills)
    for (const int64_t elements : {1, 15, 16, 17, 5000}) {
      Bytes y(elements * bytes_of(dtype));
      cuda::enqueue_fill(&stream_, dtype, y.data(), bits, elements);
      finish();
      Attrs attrs;
      attrs.set("value", value);
      EXPECT_TRUE(y.taken() == by_cpu(Op::fill, dtype, nullptr, elements, attrs)) << text(dtype);
    }
}

TEST_P(Kernels, CastsThatThereAreNotAreRefused) {
  Bytes x(64);
  for (const auto& [from, to] :
       {std::pair(DType::f32, DType::f32), std::pair(DType::i32, DType::f32), std::pair(DType::bf16, DType::f64)}) {
    const Error error = error_of([&, from = from, to = to] { cuda::enqueue_cast(&stream_, to, x.data(), from, x.data(), 4); });
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_EQ(error.message(), text("cast: device cuda casts one of f32, bf16 and f16 to another, got ", from, " to ", to));
  }
}

}  // namespace
}  // namespace st

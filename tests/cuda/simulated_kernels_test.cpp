// The CUDA plug-in's kernels, compiled as C++ and run by grid_engine.h: their bits are the cpu's.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "backend/reference/elements.h"
#include "base/combine.h"
#include "base/float_mode.h"
#include "simulated_kernels.h"
#include "thrown_error.h"

namespace st {
namespace {

using cuda::Bytes;
using cuda::KernelTest;
using cuda::kFloats;

class Kernels : public KernelTest, public testing::WithParamInterface<Order> {
 protected:
  Kernels() : KernelTest(GetParam()) {}

  std::vector<uint8_t> by_cpu(Op op, DType to, const Operand* x, int64_t elements, const Attrs& attrs) {
    Bytes y(elements * bytes_of(to));
    const Operand out = {address_of(y.data()), to, Shape({elements})};
    Call call;
    if (x != nullptr) call.in = {x, 1};
    call.out = {&out, 1};
    call.attrs = &attrs;
    run_on_cpu(op, call);
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

/// Random bits, of which every fourth element of a float is small enough to be below the normal range after an addition; no NaN and
/// infinity.
std::vector<uint8_t> finite(DType dtype, int64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < elements; ++i) {
    uint64_t bits = random();
    if (dtype == DType::f64) bits = (bits & 0x800FFFFFFFFFFFFF) | (i % 4 == 0 ? uint64_t{i % 8 == 0} : 1000 + random() % 40) << 52;
    if (dtype == DType::f32) bits = (bits & 0x807FFFFF) | (i % 4 == 0 ? uint64_t{i % 8 == 0} : 120 + random() % 20) << 23;
    if (dtype == DType::bf16) bits = (bits & 0x807F) | (i % 4 == 0 ? uint64_t{i % 8 == 0} : 120 + random() % 20) << 7;
    if (dtype == DType::f16) bits = (bits & 0x83FF) | (random() % 20) << 10;
    for (int64_t byte = 0; byte < bytes_of(dtype); ++byte) bytes.push_back(static_cast<uint8_t>(bits >> 8 * byte));
  }
  return bytes;
}

constexpr DType kAdded[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8};

/// `move`: elements by which the terms lie behind an address of 16 bytes.
void expect_fold_of_the_cpu(CUstream_st& stream, DType dtype, size_t terms, int64_t elements, bool adds, int64_t move,
                            SumType type = SumType::wide) {
  const int64_t width = bytes_of(dtype), wide = sum_bytes_of(dtype, type);
  std::vector<Bytes> given;
  std::vector<Address> places;
  for (size_t i = 0; i < terms; ++i) {
    const std::vector<uint8_t> values = finite(dtype, elements + move, i);
    given.emplace_back(static_cast<int64_t>(values.size()));
    std::ranges::copy(values, given.back().data());
    places.push_back(address_of(given.back().data()) + move * width);
  }
  const DType sum_type = type == SumType::own ? dtype : dtype == DType::f64 ? DType::f64 : is_integer(dtype) ? DType::i64 : DType::f32;
  Bytes made(elements * wide), wanted(elements * wide);
  for (Bytes* const sums : {&made, &wanted}) {
    std::ranges::copy(finite(sum_type, elements, 77), sums->data());
    RankFold fold{.terms = places, .sums = address_of(sums->data()), .dtype = dtype, .elements = elements, .adds = adds, .type = type};
    if (sums == &made) {
      cuda::enqueue_fold(&stream, fold);
      stream.engine->finish(*stream.queue);
    } else {
      const FloatMode mode;
      run_fold(fold);
    }
  }
  EXPECT_TRUE(made.taken() == wanted.taken()) << text(dtype, ", ", terms, " terms of ", elements, adds ? ", adds" : "", ", moved by ",
                                                      move);
}

TEST_P(Kernels, FoldsHaveTheBitsOfTheCpuInTheOrderOfRanks) {
  for (const DType dtype : kAdded)
    for (const size_t terms : {1, 2, 3, 5, 8})
      for (const bool adds : {false, true}) {
        expect_fold_of_the_cpu(stream_, dtype, terms, 1000 + static_cast<int64_t>(terms), adds, 0);
        expect_fold_of_the_cpu(stream_, dtype, terms, 37, adds, 1);
        if (bytes_of(dtype) != 2) continue;
        expect_fold_of_the_cpu(stream_, dtype, terms, 300 + static_cast<int64_t>(terms), adds, 0, SumType::own);
        expect_fold_of_the_cpu(stream_, dtype, terms, 37, adds, 1, SumType::own);
      }
  for (const int64_t elements : {0, 1, 2, 3, 4, 7, 8, 9}) expect_fold_of_the_cpu(stream_, DType::bf16, 2, elements, false, 0);
  expect_fold_of_the_cpu(stream_, DType::f32, cuda::kMostTerms, 20, true, 0);
}

TEST_P(Kernels, AVectorThatIsNotAlignedStopsAKernel) {
  Bytes x(64), y(64);
  cuda::enqueue_cast(&stream_, DType::bf16, y.data(), DType::f32, x.data() + 4, 8);
  try {
    finish();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& why) {
    EXPECT_STREQ(why.what(), "block 0: misaligned address: a vector of 16 bytes");
  }
}

TEST_P(Kernels, SumsMayLieWhereOneOfTheTermsDoes) {
  constexpr int64_t kElements = 1001;
  std::vector<Bytes> terms;
  std::vector<Address> places;
  for (const uint64_t seed : {1, 2, 3}) {
    terms.emplace_back(kElements * 4);
    std::ranges::copy(finite(DType::f32, kElements, seed), terms.back().data());
    places.push_back(address_of(terms.back().data()));
  }
  Bytes wanted(kElements * 4);
  RankFold fold{.terms = places, .sums = address_of(wanted.data()), .dtype = DType::f32, .elements = kElements};
  {
    const FloatMode mode;
    run_fold(fold);
  }
  fold.sums = places[1];
  cuda::enqueue_fold(&stream_, fold);
  finish();
  EXPECT_TRUE(terms[1].taken() == wanted.taken());
}

TEST_P(Kernels, SumsThatThereAreNotAreRefused) {
  const std::vector<Address> many(cuda::kMostTerms + 1);
  EXPECT_EQ(error_of([&] { cuda::enqueue_fold(&stream_, {.terms = many, .sums = {}}); }).message(),
            "cuda: a sum of 129 ranks on one device, at most 128 can be added");
  EXPECT_EQ(error_of([&] { cuda::enqueue_fold(&stream_, {.terms = {}, .sums = {}, .dtype = DType::boolean}); }).message(),
            "cuda: ranks do not add elements of type bool");
}

/// numbers(), and those around the ends of the other types' ranges and their ties.
std::vector<uint8_t> numbers_near_ends(DType dtype) {
  std::vector<uint8_t> bytes = cuda::numbers(dtype, 4001, 9);
  if (dtype == DType::boolean) return bytes;
  uint64_t bits = 0;
  const Operand one = {address_of(&bits), dtype, Shape{}};
  for (const double end : {0x1p7, 0x1p8, 0x1p15, 0x1p31, 0x1p63, 0x1p24, 0x1p53, 65520.0, 65504.0, 0x1p-126, 0x1p-126 - 0x1p-150,
                           0x1p-126 - 0x1p-151, 0x1p-126 - 0x1p-152, 0x1p-133, 0x1p-14, 0x1p-25, 1.00390625, 1.01171875, 1.00048828125})
    for (const double factor : {1.0, 1 + 0x1p-52, 1 - 0x1p-53, 1 + 0x1p-23, 1 - 0x1p-24, 1.5})
      for (const double sign : {1.0, -1.0}) {
        reference::set(one, 0, sign * end * factor);
        cuda::append(bytes, dtype, bits);
      }
  return bytes;
}

TEST_P(Kernels, CastsOfAllTypesHaveTheBitsOfTheCpu) {
  const DType all[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean};
  for (const DType from : all) {
    Bytes x(numbers_near_ends(from));
    const int64_t elements = static_cast<int64_t>(x.taken().size()) / bytes_of(from);
    for (const DType to : all) {
      Bytes y(elements * bytes_of(to));
      const Operand in = {address_of(x.data()), from, Shape({elements})}, out = {address_of(y.data()), to, Shape({elements})};
      Call call;
      call.in = {&in, 1};
      call.out = {&out, 1};
      cuda::kernels_of(Op::cast)(&stream_, Op::cast, call);
      finish();
      EXPECT_TRUE(y.taken() == by_cpu(Op::cast, to, &in, elements, {})) << text(from, " to ", to);
    }
  }
}

}  // namespace
}  // namespace st

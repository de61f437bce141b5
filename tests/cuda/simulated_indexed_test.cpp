// The CUDA plug-in's kernels that follow indices on the simulated grid: the cpu's bits, and its words for an index out of range.
#include <gtest/gtest.h>

#include <array>

#include <random>

#include "backend/cuda/index_faults.h"
#include "simulated_operands.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

class IndexedKernels : public FilledKernelTest {
 protected:
  IndexedKernels() : FilledKernelTest(Order::late) {}

  /// The words after the kernels of call 3 have run: kNoFault and 0 if nothing was reported.
  std::array<uint64_t, 2> reported(Op op, OperandsInMemory& operands) {
    std::array<uint64_t, 2> words = {IndexFaults::kNoFault, 0};
    Call call = operands.call();
    Bytes workspace(need({.device = "cuda"}, op, call));
    call.workspace = address_of(workspace.data());
    kernels_of(op)({&stream_, {{words.data()}, 3}}, op, call);
    finish();
    return words;
  }
};

std::vector<int64_t> random_indices(int64_t count, int64_t high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(high)));
  return all;
}

// Tokens over several tiles of the sort, ragged ones, and one token throughout.
TEST_F(IndexedKernels, EmbedAndAddRowsLikeTheCpu) {
  for (const DType dtype : kStoredFloats)
    for (const DType index : {DType::i32, DType::i64})
      for (const int64_t tokens : {0, 1, 255, 256, 257, 700, 1400})
        for (const int64_t columns : {0, 1, 7, 8}) {
          const int64_t rows = tokens == 257 ? 1 : 29;
          const Filled indices = indices_of_values(index, {tokens}, random_indices(tokens, rows, 5));
          expect_bits_of_the_cpu(Op::embedding, {random_filled(dtype, {rows, columns}, 1), indices}, {});
          expect_bits_of_the_cpu(Op::embedding_backward, {indices, random_filled(dtype, {tokens, columns}, 2)}, {{"rows", rows}});
        }
}

TEST_F(IndexedKernels, EmbedARanksPartOfTheVocabulary) {
  const Attrs part = {{"first", int64_t{10}}, {"classes", int64_t{40}}};
  Attrs part_of_rows = part;
  part_of_rows.set("rows", int64_t{13});
  const Filled tokens = indices_of_values(DType::i64, {5, 60}, random_indices(300, 40, 6));
  for (const DType dtype : kStoredFloats) {
    expect_bits_of_the_cpu(Op::embedding, {random_filled(dtype, {13, 16}, 1), tokens}, part);
    expect_bits_of_the_cpu(Op::embedding_backward, {tokens, random_filled(dtype, {5, 60, 16}, 2)}, part_of_rows);
  }
}

TEST_F(IndexedKernels, GatherAndAddLikeTheCpu) {
  const std::pair<Shape, int64_t> kCases[] = {{{37}, 0}, {{5, 3}, 0}, {{5, 3}, 1}, {{4, 9, 6}, 1}, {{4, 0, 6}, 1}, {{300, 2}, -1}};
  for (const DType dtype : kStoredFloats)
    for (const DType index : {DType::i32, DType::i64})
      for (const auto& [chosen, axis] : kCases) {
        const int32_t along = normalize_axis("gather", axis, chosen.rank());
        Shape x = chosen;
        x[along] = 11;
        const Filled indices = indices_of_values(index, chosen, random_indices(chosen.elements(), 11, 7));
        expect_bits_of_the_cpu(Op::gather, {random_filled(dtype, x, 1), indices}, {{"axis", axis}});
        expect_bits_of_the_cpu(Op::gather_backward, {indices, random_filled(dtype, chosen, 2)}, {{"axis", axis}, {"size", int64_t{11}}});
      }
}

/// Calls with two indices out of range, of which the first is at element 4.
std::vector<OpCall> calls_out_of_range(DType index) {
  const Shape shape = {2, 3};
  const Filled bad = indices_of_values(index, shape, {0, 1, 2, 0, -7, 11});
  return {{Op::embedding, {random_filled(DType::f32, {11, 5}, 1), bad}},
          {Op::embedding_backward, {bad, random_filled(DType::f32, {2, 3, 5}, 1)}},
          {Op::gather, {random_filled(DType::f32, {2, 11}, 1), bad}},
          {Op::gather_backward, {bad, random_filled(DType::f32, shape, 1)}}};
}

TEST_F(IndexedKernels, ReportTheFirstIndexOutOfRangeInTheWordsOfTheCpu) {
  for (const DType index : {DType::i32, DType::i64})
    for (const OpCall& bad : calls_out_of_range(index)) {
      const Attrs attrs = bad.op == Op::embedding_backward ? Attrs{{"rows", int64_t{11}}}
                          : bad.op == Op::gather_backward  ? Attrs{{"size", int64_t{11}}}
                                                           : Attrs{};
      OperandsInMemory operands(bad.op, bad.in, attrs), on_cpu(bad.op, bad.in, attrs);
      const auto [place, value] = reported(bad.op, operands);
      EXPECT_EQ(place, uint64_t{3} << IndexFaults::kElementBits | 4) << name_of(bad.op);
      EXPECT_EQ(static_cast<int64_t>(value), -7) << name_of(bad.op);
      const Error wanted = error_of([&] { run_on_cpu(bad.op, on_cpu.call()); });
      const Call call = operands.call();
      EXPECT_EQ(indices_of(bad.op, call).dtype, index);
      const Error error = error_of([&] { fail_at_index(bad.op, call, {-7}, 4); });
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_EQ(error.message(), wanted.message());
      EXPECT_NE(error.message().find("[1, 1]"), std::string::npos) << error.message();
    }
}

TEST_F(IndexedKernels, ReportNothingOfIndicesInRange) {
  OperandsInMemory operands(Op::embedding, {random_filled(DType::f32, {11, 5}, 1), indices_of_values(DType::i32, {3}, {0, 10, 5})}, {});
  EXPECT_EQ(reported(Op::embedding, operands)[0], IndexFaults::kNoFault);
}

TEST_F(IndexedKernels, OpsWithoutIndicesHaveNoFault) {
  EXPECT_EQ(error_of([] { indices_of(Op::add, Call{}); }).message(), "cuda: add reads no indices");
}

}  // namespace
}  // namespace st::cuda

// Pieces of one tensor on tensor and data ranks: read by all, and exchanged into ranges for a save.
#include "model/rank_pieces.h"

#include <gtest/gtest.h>

#include <numeric>

#include "../../equivalence/rank_group.h"
#include "backend/backend.h"
#include "backend/kernel_side.h"
#include "train/save_ranges.h"

namespace st {
namespace {

/// A tensor whose i-th element is i, in pieces: each data rank has a range of the piece of its tensor rank.
struct Scattered {
  Shape whole;
  int32_t dimension;
  std::vector<int64_t> segments;
  int32_t tensor, data;

  int32_t ranks() const { return tensor * data; }
  std::string text() const { return st::text(whole, ", dimension ", dimension, ", ", tensor, " tensor x ", data, " data ranks"); }
  PieceRange range_of(int32_t rank) const {
    const int64_t size = whole.elements() / tensor, at = rank / tensor;
    const int64_t first = size * at / data, end = size * (at + 1) / data;
    return {first, end - first, {whole, dimension, segments, rank % tensor, tensor}};
  }
  std::vector<int32_t> values_of(int32_t rank) const {
    const PieceRange range = range_of(rank);
    std::vector<int32_t> values(static_cast<size_t>(range.elements));
    range.each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
      std::iota(values.begin() + in_range, values.begin() + in_range + elements, static_cast<int32_t>(in_whole));
    });
    return values;
  }
  std::vector<int32_t> all() const {
    std::vector<int32_t> values(static_cast<size_t>(whole.elements()));
    std::iota(values.begin(), values.end(), 0);
    return values;
  }
};

const std::vector<Scattered> kScattered = {{{6, 24}, 1, {24}, 2, 1},      {{6, 24}, 1, {24}, 2, 3}, {{5, 36}, 1, {12, 12, 12}, 3, 2},
                                           {{24, 7}, 0, {24}, 4, 1},      {{24, 7}, 0, {24}, 2, 2}, {{2, 4, 3}, 1, {4}, 4, 2},
                                           {{48}, 0, {12, 24, 12}, 2, 1}, {{1, 2}, 1, {2}, 2, 3}};

TEST(RankPieces, AreReadOnAllRanks) {
  for (const Scattered& tensor : kScattered)
    each_of_group(tensor.ranks(), [&](int own, Communicator& ranks) {
      const std::vector<int32_t> expected = tensor.all(), values = tensor.values_of(own);
      for (const size_t part : {expected.size(), size_t{5}, size_t{1}})
        for (size_t begin = 0; begin < expected.size(); begin += part) {
          std::vector<int32_t> read(std::min(part, expected.size() - begin), -1);
          const auto first = static_cast<int64_t>(begin);
          tensor.range_of(own).each_run_between(first, first + std::ssize(read), [&](int64_t in_whole, int64_t in_range, int64_t elements) {
            std::copy_n(values.begin() + in_range, elements, read.begin() + (in_whole - first));
          });
          for (int32_t rank = 0; rank < tensor.ranks(); ++rank)
            broadcast_range(ranks, rank, tensor.range_of(rank), first, sizeof(int32_t), std::as_writable_bytes(std::span(read)), "t");
          ASSERT_TRUE(std::ranges::equal(read, std::span(expected).subspan(begin, read.size()))) << tensor.text() << " from " << begin;
        }
    });
}

TEST(SaveRanges, AreContiguousAndWhole) {
  for (const Scattered& tensor : kScattered)
    each_of_group(tensor.ranks(), [&](int own, Communicator& ranks) {
      std::vector<int32_t> values = tensor.values_of(own);
      StateTensor state{.name = "moment1.t", .role = Role::optimizer, .type = {DType::i32, tensor.whole, {}}, .is_sharded = true};
      for (int32_t rank = 0; rank < tensor.ranks(); ++rank)
        state.pieces.push_back({tensor.range_of(rank), rank == own ? address_of(values.data()) : Address(), rank});
      const SaveRanges save(state, {});
      int64_t elements = 0;
      for (const SharedSave::Range& range : save.all()) {
        elements += range.end - range.begin;
        ASSERT_LT(range.begin, range.end);
      }
      EXPECT_EQ(elements, tensor.whole.elements()) << tensor.text();
      const auto mine = std::ranges::find(save.all(), own, &SharedSave::Range::rank);
      std::vector<int32_t> written(mine == save.all().end() ? 0 : static_cast<size_t>(mine->end - mine->begin), -1);
      const auto backend = make_reference_backend();
      if (save.are_exchanged())
        save.exchange(ranks, *backend, std::as_writable_bytes(std::span(written)));
      else
        written = values;
      for (size_t i = 0; i < written.size(); ++i)
        ASSERT_EQ(written[i], mine->begin + static_cast<int64_t>(i)) << tensor.text() << ", rank " << own;
      bool has_runs = false;
      for (int32_t rank = 0; rank < tensor.ranks(); ++rank) {
        int runs = 0;
        tensor.range_of(rank).each_run([&](int64_t, int64_t, int64_t) { ++runs; });
        has_runs = has_runs || runs > 1;
      }
      EXPECT_EQ(save.are_exchanged(), has_runs) << tensor.text();
    });
}

}  // namespace
}  // namespace st

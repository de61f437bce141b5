#include "ir/parameter_piece.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace st {
namespace {

/// The element of the whole at each element of the piece, one by one.
std::vector<int64_t> elements_of(const ParameterPiece& piece) {
  const Shape& whole = piece.whole;
  std::vector<int64_t> found;
  const int64_t inner = whole.elements(piece.dimension + 1, whole.rank());
  for (int64_t outer = 0; outer < whole.elements(0, piece.dimension); ++outer) {
    int64_t begin = 0;
    for (const int64_t segment : piece.segments) {
      const int64_t own = segment / piece.ranks;
      for (int64_t index = begin + piece.rank * own; index < begin + (piece.rank + 1) * own; ++index)
        for (int64_t i = 0; i < inner; ++i) found.push_back((outer * whole[piece.dimension] + index) * inner + i);
      begin += segment;
    }
  }
  return found;
}

/// Cuts of vectors, rows and columns, of one or several segments.
std::vector<ParameterPiece> pieces() {
  struct Cut {
    Shape whole;
    int32_t dimension;
    std::vector<int64_t> segments;
  };
  std::vector<ParameterPiece> all;
  for (const Cut& cut : {Cut{{24}, 0, {24}}, Cut{{48}, 0, {12, 24, 12}}, Cut{{24, 5}, 0, {24}}, Cut{{3, 24}, 1, {24}},
                         Cut{{3, 48}, 1, {24, 12, 12}}, Cut{{36, 2}, 0, {12, 24}}, Cut{{2, 24, 3}, 1, {12, 12}}})
    for (int32_t ranks = 1; ranks <= 4; ++ranks)
      for (int32_t rank = 0; rank < ranks; ++rank) all.push_back({cut.whole, cut.dimension, cut.segments, rank, ranks});
  return all;
}

std::string text_of(const ParameterPiece& piece) {
  return text(piece.whole, ", dimension ", piece.dimension, ", ", piece.segments.size(), " segments, rank ", piece.rank, " of ",
              piece.ranks);
}

TEST(ParameterPiece, ReachesEachElementOfARangeOnceAndInOrder) {
  for (const ParameterPiece& piece : pieces()) {
    const std::vector<int64_t> expected = elements_of(piece);
    const int64_t size = std::ssize(expected);
    for (int64_t first = 0; first <= size; first += 1 + size / 13)
      for (int64_t count = 0; first + count <= size; count += 1 + size / 11) {
        std::vector<int64_t> reached;
        piece.each_run(first, count, [&](int64_t in_whole, int64_t in_piece, int64_t elements) {
          EXPECT_EQ(in_piece, first + std::ssize(reached));
          for (int64_t i = 0; i < elements; ++i) reached.push_back(in_whole + i);
        });
        ASSERT_EQ(reached, std::vector<int64_t>(expected.begin() + first, expected.begin() + first + count))
            << text_of(piece) << ", [" << first << ", " << first + count << ")";
      }
  }
}

TEST(ParameterPiece, ReachesWhatItHasOfARangeOfTheWhole) {
  for (const ParameterPiece& piece : pieces()) {
    const std::vector<int64_t> all = elements_of(piece);
    const int64_t size = piece.whole.elements();
    for (int64_t from = 0; from <= size; from += 1 + size / 13)
      for (int64_t to = from; to <= size; to += 1 + size / 11) {
        std::vector<int64_t> expected, reached;
        for (const int64_t element : all)
          if (from <= element && element < to) expected.push_back(element);
        piece.each_run_between(from, to, [&](int64_t in_whole, int64_t in_piece, int64_t elements) {
          for (int64_t i = 0; i < elements; ++i) {
            ASSERT_EQ(all[static_cast<size_t>(in_piece + i)], in_whole + i) << text_of(piece);
            if (from <= in_whole + i && in_whole + i < to) reached.push_back(in_whole + i);
          }
        });
        ASSERT_EQ(reached, expected) << text_of(piece) << ", [" << from << ", " << to << ")";
      }
  }
}

TEST(PieceRange, ReachesItsElementsAlone) {
  for (const ParameterPiece& piece : pieces()) {
    const std::vector<int64_t> all = elements_of(piece);
    const int64_t size = std::ssize(all);
    for (const PieceRange& range : {PieceRange{0, size, piece}, PieceRange{size / 3, size / 2, piece}, PieceRange{size, 0, piece}}) {
      std::vector<int64_t> reached, between;
      const auto into = [&](std::vector<int64_t>& to) {
        return [&](int64_t in_whole, int64_t in_range, int64_t elements) {
          for (int64_t i = 0; i < elements; ++i) {
            ASSERT_EQ(all[static_cast<size_t>(range.first + in_range + i)], in_whole + i) << text_of(piece);
            to.push_back(in_whole + i);
          }
        };
      };
      range.each_run(into(reached));
      EXPECT_EQ(reached, std::vector<int64_t>(all.begin() + range.first, all.begin() + range.first + range.elements)) << text_of(piece);
      const int64_t from = piece.whole.elements() / 5, to = piece.whole.elements() - 1;
      range.each_run_between(from, to, into(between));
      std::erase_if(reached, [&](int64_t element) { return element < from || element >= to; });
      EXPECT_EQ(between, reached) << text_of(piece);
    }
  }
}

TEST(ParameterPiece, OfAllRanksAreTheWhole) {
  for (const ParameterPiece& first : pieces()) {
    if (first.rank > 0) continue;
    std::vector<int64_t> times(static_cast<size_t>(first.whole.elements()));
    ParameterPiece piece = first;
    for (; piece.rank < piece.ranks; ++piece.rank)
      piece.each_run(0, first.whole.elements() / first.ranks, [&](int64_t in_whole, int64_t, int64_t elements) {
        for (int64_t i = 0; i < elements; ++i) ++times[static_cast<size_t>(in_whole + i)];
      });
    EXPECT_EQ(std::ranges::count(times, 1), std::ssize(times)) << text_of(first);
  }
}

TEST(ParameterPiece, ThatIsNotCutIsTheWhole) {
  const ParameterPiece whole;
  std::vector<int64_t> runs;
  const auto keep = [&](int64_t in_whole, int64_t in_piece, int64_t elements) {
    for (const int64_t number : {in_whole, in_piece, elements}) runs.push_back(number);
  };
  whole.each_run(3, 5, keep);
  whole.each_run_between(2, 9, keep);
  EXPECT_EQ(runs, (std::vector<int64_t>{3, 3, 5, 2, 2, 7}));
}

}  // namespace
}  // namespace st

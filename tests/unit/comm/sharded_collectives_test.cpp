#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "base/text.h"
#include "comm/communicator.h"
#include "every_group.h"
#include "plain_reduction.h"

namespace st {
namespace {

using Shard = Communicator::Shard;
using Shards = Communicator::Shards;

/// Random pieces, some of them empty.
std::vector<Shard> cut(std::byte* data, int64_t elements, int64_t width, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Shard> pieces;
  for (int64_t done = 0; done < elements;) {
    const int64_t count = std::min(elements - done, static_cast<int64_t>(random() % 3000));
    pieces.push_back({data + done * width, count});
    done += count;
  }
  return pieces;
}

/// A bucket with uneven shards: rank q owns lengths[q] elements; the shards are in rank order.
struct Bucket {
  Bucket(int size, int64_t elements, uint32_t seed) : lengths(static_cast<size_t>(size)) {
    std::mt19937 random(seed);
    for (int64_t left = elements; left > 0; --left) ++lengths[random() % lengths.size()];
    if (size > 2) lengths[1] += std::exchange(lengths[2], 0);  // a rank may own nothing
  }
  int64_t begin(int rank) const { return std::accumulate(lengths.begin(), lengths.begin() + rank, int64_t{0}); }
  int64_t length(int rank) const { return lengths[static_cast<size_t>(rank)]; }

  std::vector<int64_t> lengths;
};

struct Parts {
  Parts(const Bucket& bucket, std::byte* data, int64_t width, uint32_t seed) {
    for (int q = 0; q < std::ssize(bucket.lengths); ++q)
      pieces.push_back(cut(data + bucket.begin(q) * width, bucket.length(q), width, seed + static_cast<uint32_t>(q)));
    views.assign(pieces.begin(), pieces.end());
  }
  std::vector<std::vector<Shard>> pieces;
  std::vector<Shards> views;
};

/// fp32 sums over the ranks, rank 0's elements first.
std::vector<float> plain_sums(DType dtype, const std::vector<Bytes>& ranks, int contributors, const std::vector<float>* onto) {
  const FloatMode mode;
  std::vector<float> sums(ranks[0].size() / static_cast<size_t>(bytes_of(dtype)));
  with_elements(dtype, [&](auto, const auto& load, const auto&) {
    for (size_t i = 0; i < sums.size(); ++i) {
      if (onto != nullptr) sums[i] = (*onto)[i];
      for (int r = 0; r < contributors; ++r) {
        const auto piece = static_cast<float>(load(ranks[static_cast<size_t>(r)], static_cast<int64_t>(i)));
        sums[i] = r == 0 && onto == nullptr ? piece : sums[i] + piece;
      }
    }
  });
  return sums;
}

/// The same in the type of the elements, to which each addition is rounded.
Bytes plain_sums_of_own_type(DType dtype, const std::vector<Bytes>& ranks, int contributors, const Bytes* onto) {
  const FloatMode mode;
  Bytes sums(ranks[0].size());
  with_elements(dtype, [&](auto, const auto& load, const auto& store) {
    for (int64_t i = 0; i < std::ssize(sums) / bytes_of(dtype); ++i) {
      auto sum = load(onto != nullptr ? *onto : ranks[0], i);
      for (int r = onto != nullptr ? 0 : 1; r < contributors; ++r) {
        store(sums, i, sum + load(ranks[static_cast<size_t>(r)], i));
        sum = load(sums, i);
      }
      store(sums, i, sum);
    }
  });
  return sums;
}

std::vector<float> part_of(const std::vector<float>& whole, const Bucket& bucket, int rank) {
  return {whole.begin() + bucket.begin(rank), whole.begin() + bucket.begin(rank) + bucket.length(rank)};
}

TEST_P(EveryGroup, PiecesAreReducedWhereTheyLie) {
  constexpr int64_t kElements = 20011;
  struct Case {
    DType dtype;
    std::vector<Bytes> ranks;
    std::vector<float> first, second;
  };
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    if (size > GetParam().most) continue;
    const Bucket bucket(size, kElements, 1);
    // Includes a last round in which not every rank has a micro-batch, and a round that adds onto earlier ones.
    const int few = (size + 1) / 2;
    std::vector<Case> cases;
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      std::vector<Bytes> ranks;
      for (int r = 0; r < size; ++r) ranks.push_back(drawn(dtype, kElements, static_cast<uint32_t>(r)));
      auto first = plain_sums(dtype, ranks, size, nullptr), second = plain_sums(dtype, ranks, few, &first);
      cases.push_back({dtype, std::move(ranks), std::move(first), std::move(second)});
    }
    run(size, [&](Communicator& group) {
      const int rank = group.rank();
      for (const auto& [dtype, ranks, first, second] : cases) {
        Bytes data = ranks[static_cast<size_t>(rank)];
        std::vector<float> sums(static_cast<size_t>(bucket.length(rank)));
        const Parts parts(bucket, data.data(), bytes_of(dtype), 5);
        const auto into = cut(reinterpret_cast<std::byte*>(sums.data()), bucket.length(rank), 4, static_cast<uint32_t>(rank));
        const auto what = text(size, " ranks, ", dtype);
        group.reduce_shards(parts.views, into, dtype, SumType::wide, size, false, "round 0");
        EXPECT_EQ(sums, part_of(first, bucket, rank)) << what;
        group.reduce_shards(parts.views, into, dtype, SumType::wide, few, true, "round 1");
        EXPECT_EQ(sums, part_of(second, bucket, rank)) << what << ", added by " << few;
        EXPECT_EQ(data, ranks[static_cast<size_t>(rank)]) << "what is exchanged stays as it was";
        if (dtype != DType::f32) continue;
        group.reduce_shards(parts.views, parts.views[static_cast<size_t>(rank)], dtype, SumType::wide, size, false, "in place");
        const auto* const own = reinterpret_cast<const float*>(data.data()) + bucket.begin(rank);
        EXPECT_EQ(std::vector<float>(own, own + bucket.length(rank)), part_of(first, bucket, rank)) << what << ", in place";
      }
    });
  }
}

TEST_P(EveryGroup, SumsOfTheTypeOfTheirTermsAreRoundedAfterEachAddition) {
  constexpr int64_t kElements = 4003;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const int size : {1, 2, 3, 5}) {
      const Bucket bucket(size, kElements, 1);
      const int few = (size + 1) / 2;
      std::vector<Bytes> ranks;
      for (int r = 0; r < size; ++r) ranks.push_back(drawn(dtype, kElements, static_cast<uint32_t>(r)));
      const Bytes first = plain_sums_of_own_type(dtype, ranks, size, nullptr);
      const Bytes second = plain_sums_of_own_type(dtype, ranks, few, &first);
      run(size, [&](Communicator& group) {
        const int rank = group.rank();
        const int64_t width = bytes_of(dtype), begin = bucket.begin(rank) * width, end = begin + bucket.length(rank) * width;
        Bytes data = ranks[static_cast<size_t>(rank)], sums(static_cast<size_t>(end - begin));
        const Parts parts(bucket, data.data(), width, 5);
        const auto into = cut(sums.data(), bucket.length(rank), width, static_cast<uint32_t>(rank));
        const auto is_part_of = [&](const Bytes& whole) { return std::equal(sums.begin(), sums.end(), whole.begin() + begin); };
        const auto what = text(size, " ranks, ", dtype);
        group.reduce_shards(parts.views, into, dtype, SumType::own, size, false, "round 0");
        EXPECT_TRUE(is_part_of(first)) << what;
        group.reduce_shards(parts.views, into, dtype, SumType::own, few, true, "round 1");
        EXPECT_TRUE(is_part_of(second)) << what << ", added by " << few;
        group.reduce_shards(parts.views, parts.views[static_cast<size_t>(rank)], dtype, SumType::own, size, false, "in place");
        EXPECT_TRUE(std::equal(data.begin() + begin, data.begin() + end, first.begin() + begin)) << what << ", in place";
      });
    }
}

TEST_P(EveryGroup, PiecesAreGatheredWhereTheyLie) {
  for (const int size : {1, 2, 3, 5}) {
    const Bucket bucket(size, 30011, 2);
    const Bytes expected = drawn(DType::bf16, 30011, 3);
    run(size, [&](Communicator& group) {
      Bytes data(expected.size());
      const int64_t begin = bucket.begin(group.rank()) * 2, end = begin + bucket.length(group.rank()) * 2;
      std::copy(expected.begin() + begin, expected.begin() + end, data.begin() + begin);
      // Each rank may split its memory differently.
      const Parts parts(bucket, data.data(), 2, static_cast<uint32_t>(group.rank() * 100));
      const int64_t before = group.sent_bytes();
      group.gather_shards(parts.views, DType::bf16, "weights");
      EXPECT_EQ(data, expected);
      EXPECT_EQ(group.sent_bytes() - before, (end - begin) * (size - 1));
    });
  }
}

}  // namespace
}  // namespace st

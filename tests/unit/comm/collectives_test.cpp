#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "../base/allocations.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/local/thread_group.h"
#include "every_group.h"
#include "plain_reduction.h"
#include "thrown_error.h"

namespace st {
namespace {

INSTANTIATE_TEST_SUITE_P(Threads, EveryGroup, testing::Values(GroupKind{"threads", make_thread_group}),
                         [](const auto& instance) { return instance.param.name; });

constexpr std::array kSizes = {1, 2, 3, 4, 5, 8};  // two ranks hide order: a + b = b + a
constexpr std::array kDTypes = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

std::vector<Bytes> drawn_by_ranks(int size, DType dtype, int64_t elements, uint32_t seed) {
  std::vector<Bytes> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(drawn(dtype, elements, seed * 64 + static_cast<uint32_t>(r)));
  return ranks;
}

Bytes part_of(const Bytes& whole, int64_t begin, int64_t end) { return {whole.begin() + begin, whole.begin() + end}; }

std::vector<ReduceOp> ops_of(DType dtype) {
  if (is_floating(dtype)) return {ReduceOp::sum, ReduceOp::mean, ReduceOp::max, ReduceOp::min};
  return {ReduceOp::sum, ReduceOp::max, ReduceOp::min};
}

TEST_P(EveryGroup, ReducesInTheOrderOfRanksEveryTypeAndOp) {
  struct Case {
    int64_t elements;
    DType dtype;
    ReduceOp op;
    std::vector<Bytes> ranks;
    Bytes expected;
  };
  for (const int size : kSizes) {
    if (size > GetParam().most) continue;
    // Small tensors sent whole, and large ones in shards of several chunks, the last one short.
    std::vector<Case> cases;
    for (const int64_t elements : {0, 1, 7, 257, 4507}) {
      for (const DType dtype : kDTypes) {
        const auto ranks = drawn_by_ranks(size, dtype, elements, 9);
        for (const ReduceOp op : ops_of(dtype)) cases.push_back({elements, dtype, op, ranks, plainly_reduced(dtype, op, ranks)});
      }
    }
    run(size,
        [&](Communicator& group) {
          for (const auto& [elements, dtype, op, ranks, expected] : cases) {
            const Bytes& mine = ranks[static_cast<size_t>(group.rank())];
            const auto what = text(size, " ranks, ", elements, ' ', dtype, ' ', name_of(op));
            Bytes data = mine;
            group.all_reduce(data.data(), elements, dtype, op);
            EXPECT_EQ(data, expected) << "all_reduce, " << what;

            const int64_t begin = group.share(elements, group.rank()) * bytes_of(dtype);
            const int64_t end = group.share(elements, group.rank() + 1) * bytes_of(dtype);
            Bytes own(static_cast<size_t>(end - begin));
            group.reduce_scatter(mine.data(), own.data(), elements, dtype, op);
            EXPECT_EQ(own, part_of(expected, begin, end)) << "reduce_scatter, " << what;
            data = mine;
            group.reduce_scatter(data.data(), data.data() + begin, elements, dtype, op);
            EXPECT_EQ(part_of(data, begin, end), own) << "reduce_scatter in place, " << what;
          }
        },
        {.deadline = 60, .is_cancelled = {}, .warn = {}, .chunk = 500});
  }
}

TEST_P(EveryGroup, BitsDependOnNoChunk) {
  constexpr int64_t kElements = 36007;
  for (const int size : {2, 3, 5}) {
    const auto floats = drawn_by_ranks(size, DType::f32, kElements, 5), halves = drawn_by_ranks(size, DType::bf16, kElements, 5);
    const Bytes float_sum = plainly_reduced(DType::f32, ReduceOp::sum, floats),
                half_sum = plainly_reduced(DType::bf16, ReduceOp::sum, halves);
    for (const int64_t chunk : {97, 1024, 30000, 1 << 20})
      run(size,
          [&](Communicator& group) {
            Bytes data = floats[static_cast<size_t>(group.rank())];
            group.all_reduce(data.data(), kElements, DType::f32, ReduceOp::sum);
            EXPECT_EQ(data, float_sum) << size << " ranks, chunk " << chunk;
            data = halves[static_cast<size_t>(group.rank())];
            group.all_reduce(data.data(), kElements, DType::bf16, ReduceOp::sum);
            EXPECT_EQ(data, half_sum) << size << " ranks, chunk " << chunk << ", bf16";
          },
          {.deadline = 60, .is_cancelled = {}, .warn = {}, .chunk = chunk});
  }
}

TEST_P(EveryGroup, MaxAndMinPassANaNOn) {
  run(3, [](Communicator& group) {
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
      std::vector<float> data = {1, 2, 3, 4};
      data[static_cast<size_t>(group.rank())] = std::numeric_limits<float>::quiet_NaN();
      group.all_reduce(data.data(), 4, DType::f32, op);
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(data[i])) << "put in by rank " << i;
      EXPECT_EQ(data[3], 4);
    }
  });
}

TEST_P(EveryGroup, MemoryMayStandAnywhere) {
  run(3, [](Communicator& group) {
    const auto ranks = drawn_by_ranks(3, DType::f32, 9001, 1);
    Bytes data(9001 * 4 + 1);
    std::copy(ranks[static_cast<size_t>(group.rank())].begin(), ranks[static_cast<size_t>(group.rank())].end(), data.begin() + 1);
    // An odd number of bytes first, so that an element is split at the end of a ring.
    std::vector<uint8_t> odd(20001);
    group.all_reduce(odd.data(), 20001, DType::u8, ReduceOp::max);
    group.all_reduce(data.data() + 1, 9001, DType::f32, ReduceOp::sum);
    EXPECT_EQ(part_of(data, 1, 9001 * 4 + 1), plainly_reduced(DType::f32, ReduceOp::sum, ranks));
  });
}

TEST_P(EveryGroup, GathersSharesInTheirOrder) {
  std::vector<Bytes> all;
  for (const int64_t elements : {0, 1, 5, 8, 70003}) all.push_back(drawn(DType::i32, elements, 3));
  for (const int size : kSizes) {
    run(size, [&](Communicator& group) {
      for (const Bytes& expected : all) {
        const auto elements = static_cast<int64_t>(expected.size() / 4);
        const int64_t begin = group.share(elements, group.rank()) * 4, end = group.share(elements, group.rank() + 1) * 4;
        const Bytes own = part_of(expected, begin, end);
        Bytes data(expected.size());
        group.all_gather(own.data(), data.data(), elements, DType::i32);
        EXPECT_EQ(data, expected);
        Bytes in_place(expected.size());
        std::copy(own.begin(), own.end(), in_place.begin() + begin);
        group.all_gather(in_place.data() + begin, in_place.data(), elements, DType::i32);
        EXPECT_EQ(in_place, expected);
      }
    });
  }
}

TEST_P(EveryGroup, ExchangesEqualParts) {
  for (const int size : kSizes) {
    run(size, [&](Communicator& group) {
      for (const int64_t part : {0, 1, 9001}) {  // the last takes more bytes than a ring or a pipe has
        std::vector<int64_t> from(static_cast<size_t>(size * part)), to(from.size());
        for (int r = 0; r < size; ++r)
          for (int64_t i = 0; i < part; ++i) from[static_cast<size_t>(r * part + i)] = group.rank() * 1000000 + r * 100000 + i;
        group.all_to_all(from.data(), to.data(), size * part, DType::i64);
        for (int r = 0; r < size; ++r)
          for (int64_t i = 0; i < part; ++i)
            ASSERT_EQ(to[static_cast<size_t>(r * part + i)], r * 1000000 + group.rank() * 100000 + i) << "from rank " << r;
      }
    });
  }
}

TEST_P(EveryGroup, BroadcastsFromEveryRoot) {
  std::vector<Bytes> all;  // eager, posted in place, and in shards
  for (const int64_t elements : {0, 1, 20001, 140007}) all.push_back(drawn(DType::u8, elements, 4));
  for (const int size : kSizes) {
    run(size, [&](Communicator& group) {
      for (const Bytes& expected : all) {
        const auto elements = static_cast<int64_t>(expected.size());
        for (int root = 0; root < size; ++root) {
          Bytes data = group.rank() == root ? expected : Bytes(expected.size());
          group.broadcast(data.data(), elements, DType::u8, root);
          ASSERT_EQ(data, expected) << "root " << root << " of " << size << ", " << elements;
        }
      }
    });
  }
}

TEST_P(EveryGroup, SendsMessagesInTheirOrder) {
  run(3, [](Communicator& group) {
    const int next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    for (int64_t round = 0; round < 50; ++round) {
      // Small messages, which all ranks send first; then a large one around the ring.
      std::vector<int64_t> small = {group.rank() * 1000 + round}, got(1);
      group.send(small.data(), 1, DType::i64, next);
      group.receive(got.data(), 1, DType::i64, before);
      ASSERT_EQ(got[0], before * 1000 + round);
      std::vector<int64_t> large(10007, round), there(10007);
      if (group.rank() == 0) group.send(large.data(), 10007, DType::i64, next);
      group.receive(there.data(), 10007, DType::i64, before);
      if (group.rank() != 0) group.send(large.data(), 10007, DType::i64, next);
      ASSERT_EQ(there, large);
    }
  });
}

TEST_P(EveryGroup, ABarrierHoldsUntilAllHaveCome) {
  std::atomic<int> come{0};
  run(4, [&](Communicator& group) {
    for (int round = 1; round <= 20; ++round) {
      if (group.rank() == round % 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++come;
      group.barrier();
      EXPECT_GE(come.load(), 4 * round);
      group.barrier();
    }
  });
}

TEST_P(EveryGroup, TwoHundredCollectivesInAnyRhythm) {
  for (const int size : {2, 3, 5}) {
    const auto ranks = drawn_by_ranks(size, DType::f32, 20000, 2);
    const Bytes reduced = plainly_reduced(DType::f32, ReduceOp::sum, ranks);
    run(size, [&](Communicator& group) {
      std::mt19937 same(7), own(static_cast<uint32_t>(group.rank()));  // the calls, equal on all ranks; each rank's own delays
      for (int call = 0; call < 200; ++call) {
        if (own() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
        const auto what = same() % 5;
        const auto elements = static_cast<int64_t>(same() % (call % 20 == 0 ? 20000 : 600));
        const int root = static_cast<int>(same() % static_cast<uint32_t>(size));
        const auto begin = [&](const Bytes& whole) { return part_of(whole, 0, elements * 4); };
        Bytes data = begin(ranks[static_cast<size_t>(group.rank())]);
        if (what == 0) {
          group.broadcast(data.data(), elements, DType::f32, root);
          ASSERT_EQ(data, begin(ranks[static_cast<size_t>(root)]));
        } else if (what == 1) {
          group.barrier();
        } else if (what == 2 && root != 0) {
          if (group.rank() == 0) group.send(data.data(), elements, DType::f32, root);
          if (group.rank() != root) continue;
          group.receive(data.data(), elements, DType::f32, 0);
          ASSERT_EQ(data, begin(ranks[0]));
        } else {
          group.all_reduce(data.data(), elements, DType::f32, ReduceOp::sum);
          ASSERT_EQ(data, begin(reduced)) << "call " << call;
        }
      }
    });
  }
}

TEST_P(EveryGroup, CountsTheBytesOfItsElements) {
  run(3, [](Communicator& group) {
    std::vector<float> data(3 * 10000 + 1), own(10001);
    const auto sent = [&](const auto& call) {
      const int64_t before = group.sent_bytes();
      call();
      return group.sent_bytes() - before;
    };
    const int64_t owned = group.rank() == 0 ? 10001 : 10000;
    // reduce_scatter sends what the others own; all_gather sends what this rank owns to each of them.
    EXPECT_EQ(sent([&] { group.reduce_scatter(data.data(), own.data(), 30001, DType::f32, ReduceOp::sum); }), (30001 - owned) * 4);
    EXPECT_EQ(sent([&] { group.all_gather(own.data(), data.data(), 30001, DType::f32); }), owned * 2 * 4);
    EXPECT_EQ(sent([&] { group.all_reduce(data.data(), 30001, DType::f32, ReduceOp::sum); }), (30001 - owned + owned * 2) * 4);
    EXPECT_EQ(sent([&] { group.all_reduce(data.data(), 10, DType::f32, ReduceOp::sum); }), 10 * 2 * 4);
    EXPECT_EQ(sent([&] { group.all_to_all(data.data(), std::vector<float>(300).data(), 300, DType::f32); }), 200 * 4);
    EXPECT_EQ(sent([&] { group.barrier(); }), 0);
  });
}

TEST_P(EveryGroup, AllocatesNothingInACollectiveAfterTheFirst) {
  if (GetParam().name == "gloo") GTEST_SKIP() << "Gloo allocates for bytes that its socket does not take at once";
  run(2, [](Communicator& group) {
    std::vector<float> data(100000), whole(200000);
    const auto all = [&] {
      for (const int64_t elements : {10, 100000}) {
        group.all_reduce(data.data(), elements, DType::f32, ReduceOp::sum, "a label that is too long for a small string");
        group.broadcast(data.data(), elements, DType::f32, 0);
        group.all_gather(data.data(), whole.data(), 2 * elements, DType::f32);
        group.all_to_all(whole.data(), data.data(), elements, DType::f32);
        if (group.rank() == 0) group.send(data.data(), elements, DType::f32, 1);
        if (group.rank() == 1) group.receive(data.data(), elements, DType::f32, 0);
      }
      group.barrier();
    };
    all();
    group.barrier();
    const int64_t before = allocations();
    for (int round = 0; round < 10; ++round) all();
    EXPECT_EQ(allocations() - before, 0);
    group.barrier();  // keeps the other rank's thread from ending before this one has counted
  });
}

TEST_P(EveryGroup, MeetsTwiceAroundAnExchangeOfItsOwn) {
  for (const int size : {1, 2, 3, 5, 8}) {
    std::atomic<int> exchanged = 0;
    run(size, [&](DirectExchange& group) {
      const CollectiveCall call{Collective::all_gather, ReduceOp::sum, DType::f32, 100, -1, "a value"};
      for (int round = 1; round <= 3; ++round) {
        const int64_t before = group.sent_bytes();
        group.meet(call, 7, static_cast<uint64_t>(round * 100 + group.rank()), [&](std::span<const uint64_t> numbers) {
          EXPECT_EQ(std::ssize(numbers), size);
          for (size_t rank = 0; rank < numbers.size(); ++rank) EXPECT_EQ(numbers[rank], static_cast<size_t>(round) * 100 + rank);
          ++exchanged;
          return int64_t{12};
        });
        EXPECT_GE(exchanged, size * round);  // on all ranks
        EXPECT_EQ(group.sent_bytes() - before, 12);
      }
    });
  }
}

TEST_P(EveryGroup, AnExchangeThatThrowsInAMeetingEndsTheGroup) {
  const Outcomes outcomes = this->outcomes(3, [](DirectExchange& group) {
    const CollectiveCall call{Collective::all_gather, ReduceOp::sum, DType::f32, 100, -1, "a value"};
    for (int round = 0; round < 2; ++round)
      group.meet(call, 7, 1, [&](std::span<const uint64_t>) {
        if (group.rank() == 1 && round == 1) fail(Code::io, "no");
        return int64_t{0};
      });
  });
  if (outcomes.empty()) return;
  EXPECT_TRUE(is_error(error_of(outcomes[1]), Code::io, {"no"}));
  for (const size_t rank : {0, 2}) EXPECT_TRUE(is_error(error_of(outcomes[rank]), Code::rank_failed, {"rank 1"}));
}

}  // namespace
}  // namespace st

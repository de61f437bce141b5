// A bucket of gradients as an item of a work queue: who gets which sums, in which type. Wanted values are sums in rank order.
#include "parts/gradient_bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "allocations.h"
#include "base/float16.h"
#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "sanitized.h"

namespace {

using namespace st;

constexpr int kRanks = 3;
constexpr int64_t kElements = 5;
constexpr std::array<int64_t, kRanks + 1> kCuts = {0, 2, 2, kElements};  // the second rank owns nothing

int64_t cut(int rank) { return kCuts[static_cast<size_t>(rank)]; }

void each_rank(const std::function<void(Communicator&)>& body) {
  std::deque<DirectExchange> ranks;
  for (auto& end : make_thread_group(kRanks)) ranks.emplace_back(std::move(end));
  std::vector<std::thread> threads;
  for (DirectExchange& rank : ranks) threads.emplace_back([&] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

/// Element k of a rank's gradient: exact in bf16, as are the sums over three ranks and, but for a third, not the means.
float made_by(int rank, int64_t k) { return static_cast<float>((rank + 1) * (k + 1)); }
float sum_of(int64_t k) { return static_cast<float>(6 * (k + 1)); }

bool owns(int rank, int64_t k) { return k >= cut(rank) && k < cut(rank + 1); }

void run(GradientBucket& bucket) {
  bucket.post();
  bucket.wait();
}

TEST(GradientBucket, GivesEachRankTheSumsOfItsElementsAndAddsLaterMicroBatches) {
  each_rank([](Communicator& own) {
    WorkQueue queue;
    Workers workers(1);
    GradientReduction how{.ranks = own, .queue = queue, .workers = workers, .op = ReduceOp::sum};
    GradientBucket bucket(how);
    const auto count = static_cast<size_t>(cut(own.rank() + 1) - cut(own.rank()));
    std::vector<float> gradient(kElements), sums(count + 1, -1);
    for (int64_t k = 0; k < kElements; ++k) gradient[static_cast<size_t>(k)] = made_by(own.rank(), k);
    for (const bool adds : {false, true}) {
      EXPECT_TRUE(bucket.fits(DType::f32, adds, kElements * 4, 0)) << "an empty bucket takes any gradient";
      bucket.add(DType::f32, adds, gradient.data(), kElements, cut, sums.data(), "w");
      EXPECT_FALSE(bucket.fits(DType::f32, !adds, 4, 1 << 20));
      EXPECT_FALSE(bucket.fits(DType::bf16, adds, 4, 1 << 20));
      EXPECT_FALSE(bucket.fits(DType::f32, adds, 4, kElements * 4 + 3));
      EXPECT_TRUE(bucket.fits(DType::f32, adds, 4, kElements * 4 + 4));
      run(bucket);
      bucket.clear();
      for (size_t i = 0; i < count; ++i)
        EXPECT_EQ(sums[i], (adds ? 2 : 1) * sum_of(cut(own.rank()) + static_cast<int64_t>(i))) << "rank " << own.rank();
    }
    EXPECT_EQ(sums.back(), -1);
    for (int64_t k = 0; k < kElements; ++k) EXPECT_EQ(gradient[static_cast<size_t>(k)], made_by(own.rank(), k));
  });
}

TEST(GradientBucket, InPlaceReplacesAllElementsOrOnlyThoseOfTheRank) {
  for (const bool gathers : {false, true})
    each_rank([&](Communicator& own) {
      WorkQueue queue;
      Workers workers(1);
      GradientReduction how{.ranks = own, .queue = queue, .workers = workers, .in_place = true, .gathers = gathers};
      GradientBucket bucket(how);
      std::array<std::vector<float>, 2> gradients;
      for (int repeat = 0; repeat < 2; ++repeat) {  // filled once, run in each step
        for (size_t i = 0; i < gradients.size(); ++i) {
          gradients[i].resize(kElements);
          for (int64_t k = 0; k < kElements; ++k) gradients[i][static_cast<size_t>(k)] = made_by(own.rank(), k + static_cast<int64_t>(i));
          if (repeat == 0) bucket.add(DType::f32, false, gradients[i].data(), kElements, cut, nullptr, "w");
        }
        run(bucket);
        for (size_t i = 0; i < gradients.size(); ++i)
          for (int64_t k = 0; k < kElements; ++k) {
            const int64_t value = k + static_cast<int64_t>(i);
            const bool is_mean = gathers || owns(own.rank(), k);
            EXPECT_EQ(gradients[i][static_cast<size_t>(k)], is_mean ? sum_of(value) / kRanks : made_by(own.rank(), value));
          }
      }
    });
}

/// A bucket whose gradients each become the sum of all ranks'.
struct GatheredSums {
  explicit GatheredSums(Communicator& own)
      : how{.ranks = own, .queue = queue, .workers = workers, .op = ReduceOp::sum, .in_place = true, .gathers = true} {}

  WorkQueue queue;
  Workers workers{1};
  GradientReduction how;
  GradientBucket bucket{how};
};

TEST(GradientBucket, HoldsManyGradientsThatHaveOneOwnerEach) {
  each_rank([](Communicator& own) {
    GatheredSums made(own);
    GradientBucket& bucket = made.bucket;
    std::vector<float> gradients(100);
    for (size_t i = 0; i < gradients.size(); ++i) {
      const int owner = i < 10 ? 1 : static_cast<int>(i) % kRanks;
      gradients[i] = made_by(own.rank(), static_cast<int64_t>(i));
      bucket.add(
          DType::f32, false, &gradients[i], 1, [&](int rank) -> int64_t { return rank <= owner ? 0 : 1; }, nullptr, "w");
    }
    run(bucket);
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_EQ(gradients[i], sum_of(static_cast<int64_t>(i)));
  });
}

/// bf16 has every second number from 256 on: 256 + 1.5 + 1 rounds to 258, but to 260 if it is rounded after each term.
TEST(GradientBucket, SumsOf16BitsAreRoundedOnce) {
  each_rank([](Communicator& own) {
    GatheredSums made(own);
    GradientBucket& bucket = made.bucket;
    std::array<std::array<uint16_t, kElements>, 2> gradients{};
    for (auto& gradient : gradients) {
      gradient.fill(bf16_of(own.rank() == 0 ? 256.F : own.rank() == 1 ? 1.5F : 1.F));
      bucket.add(DType::bf16, false, gradient.data(), kElements, cut, nullptr, "w");
    }
    run(bucket);
    for (const auto& gradient : gradients)
      for (const uint16_t sum : gradient) EXPECT_EQ(sum, bf16_of(258));
  });
}

TEST(GradientBucket, TakesAGradientOrThrowsAndThenHasNot) {
  each_rank([](Communicator& own) {
    GatheredSums made(own);
    GradientBucket& bucket = made.bucket;
    std::vector<std::vector<float>> gradients(9, std::vector<float>(kElements, 1));
    int64_t refused = 0;
    const auto add = [&](std::vector<float>& gradient) { bucket.add(DType::f32, false, gradient.data(), kElements, cut, nullptr, "w"); };
    for (auto& gradient : gradients) {
      const int64_t bytes = bucket.bytes();
      for (int64_t n = 1; bucket.bytes() == bytes; ++n) {
        fail_allocation(n);  // until it needs fewer than n
        try {
          add(gradient);
        } catch (const std::bad_alloc&) {
          ++refused;
        }
      }
    }
    fail_allocation(0);
    EXPECT_TRUE(refused > 0 || kSanitized);  // sanitizers have their own malloc
    run(bucket);
    bucket.clear();
    fail_allocation(1);  // there is room by now
    std::ranges::for_each(gradients, add);
    fail_allocation(0);
    run(bucket);
    for (const auto& gradient : gradients) EXPECT_EQ(gradient, std::vector<float>(kElements, kRanks * kRanks));
  });
}

TEST(GradientBucket, EndsAfterWhatWasPosted) {
  each_rank([](Communicator& own) {
    WorkQueue queue;
    Workers workers(1);
    std::vector<float> gradient(kElements, static_cast<float>(own.rank()));
    {
      GradientReduction how{.ranks = own, .queue = queue, .workers = workers, .op = ReduceOp::sum, .in_place = true, .gathers = true};
      GradientBucket bucket(how);
      bucket.add(DType::f32, false, gradient.data(), kElements, cut, nullptr, "w");
      bucket.post();
    }
    EXPECT_EQ(gradient, std::vector<float>(kElements, 3));
  });
}

TEST(GradientBucket, KeepsTheErrorOfItsCollective) {
  each_rank([](Communicator& own) {
    if (own.rank() == 2) return own.abort("out of rows");
    WorkQueue queue;
    Workers workers(1);
    GradientReduction how{.ranks = own, .queue = queue, .workers = workers, .in_place = true, .gathers = true};
    GradientBucket bucket(how);
    std::vector<float> gradient(kElements);
    bucket.add(DType::f32, false, gradient.data(), kElements, cut, nullptr, "w");
    bucket.post();
    EXPECT_THROW(bucket.wait(), Error);
  });
}

}  // namespace

// Posted collectives run on a second thread, in order; errors, and collectives that are abandoned.
#include "exec/exchange_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backend/kernel_side.h"
#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "thrown_error.h"

namespace st {
namespace {

/// Accumulates the sum of one number over the ranks.
struct Sum {
  Sum(Communicator& ranks, double own) : term(own), exchange(plan, program, call, ranks, *backend) {}
  Sum(const Sum&) = delete;

  double term, total = 0;
  const Operand in{address_of(&term), DType::f64, {}}, out{address_of(&total), DType::f64, {}};
  const Call call{.in = {&in, 1}, .out = {}, .reads = {}, .writes = {&out, 1}, .workspace = {}};
  const ExchangePlan plan{.op = Op::rank_sums, .dtype = DType::f64, .adds = true, .label = "sum", .terms = 1};
  const Program program;
  const std::unique_ptr<Backend> backend = make_reference_backend();
  PlannedExchange exchange;
};

constexpr int kBoth = 2;  // contributors

/// Two ranks; the second has its own thread.
class TwoRanks {
 public:
  TwoRanks() {
    for (auto& end : make_thread_group(2)) ranks.emplace_back(std::move(end));
  }
  void run(const std::function<void(Communicator&)>& first, const std::function<void(Communicator&)>& second) {
    std::thread other([&] { second(ranks[1]); });
    first(ranks[0]);
    other.join();
  }
  std::vector<DirectExchange> ranks;
};

TEST(PlannedExchange, AddsTheFirstRanks) {
  const auto rank = [](Communicator& own) {
    for (const int contributors : {1, 2}) {
      Sum sum(own, own.rank() + 1);
      sum.exchange.run(contributors);
      EXPECT_EQ(sum.total, contributors == 1 ? 1 : 3);
    }
  };
  TwoRanks().run(rank, rank);
}

TEST(ExchangeQueue, MakesAllInTheirOrder) {
  for (const bool beside : {true, false}) {
    const auto rank = [&](Communicator& own) {
      ExchangeQueue queue(own);
      if (beside) queue.start();
      Sum sum(own, own.rank() + 1);
      const int many = 200;  // more than the queue's capacity
      for (int i = 0; i < many; ++i) queue.post(sum.exchange, kBoth);
      queue.wait(sum.exchange);
      EXPECT_EQ(sum.total, 3.0 * many);
      queue.run(sum.exchange, kBoth);
      EXPECT_EQ(sum.total, 3.0 * (many + 1));
      EXPECT_GT(queue.exposed_seconds(), 0);
    };
    TwoRanks().run(rank, rank);
  }
}

TEST(ExchangeQueue, WaitsForNoneBehindTheOneAskedFor) {
  std::atomic<bool> is_over{false};
  const auto first = [&](Communicator& own) {
    ExchangeQueue queue(own);
    queue.start();
    Sum sum(own, 1), behind(own, 10);
    queue.post(sum.exchange, kBoth);
    queue.post(behind.exchange, kBoth);
    queue.wait(sum.exchange);
    EXPECT_EQ(sum.total, 3);
    is_over = true;
    queue.wait(behind.exchange);
    EXPECT_EQ(behind.total, 30);
  };
  const auto second = [&](Communicator& own) {
    ExchangeQueue queue(own);
    Sum sum(own, 2), behind(own, 20);
    queue.run(sum.exchange, kBoth);
    while (!is_over) std::this_thread::yield();
    queue.run(behind.exchange, kBoth);
  };
  TwoRanks().run(first, second);
}

TEST(ExchangeQueue, HidesWhatIsMadeBesideComputing) {
  constexpr int kLate = 400;
  TwoRanks group;
  const auto first = [&](Communicator& own) {
    ExchangeQueue queue(own);
    queue.start();
    Sum sum(own, 1);
    queue.post(sum.exchange, kBoth);
    while (own.recorder().seconds() == 0) std::this_thread::yield();  // this rank computes
    queue.wait(sum.exchange);
    EXPECT_EQ(sum.total, 3);
    EXPECT_GE(own.recorder().seconds(), kLate / 2e3);
    EXPECT_LT(queue.exposed_seconds(), kLate / 2e3);
  };
  const auto second = [&](Communicator& own) {
    ExchangeQueue queue(own);
    queue.start();
    Sum sum(own, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(kLate));
    queue.run(sum.exchange, kBoth);
  };
  group.run(first, second);
}

TEST(ExchangeQueue, ThrowsWhatFailedAndMakesNothingBehindIt) {
  TwoRanks group;
  const auto first = [&](Communicator& own) {
    ExchangeQueue queue(own);
    queue.start();
    Sum sum(own, 1), behind(own, 1);
    queue.post(sum.exchange, kBoth);
    queue.post(behind.exchange, kBoth);
    while (!queue.has_failed()) std::this_thread::yield();
    const Error error = error_of([&] { queue.wait_for_all(); });
    EXPECT_TRUE(is_error(error, Code::rank_failed, {"out of rows"}));
    EXPECT_EQ(error.place.op, "rank_sums");
    EXPECT_EQ(error.place.rank, 1);
    EXPECT_EQ(behind.total, 0);
    EXPECT_FALSE(queue.has_failed()) << "it was told";
    EXPECT_NO_THROW(queue.wait_for_all());
    EXPECT_THROW(queue.run(sum.exchange, kBoth), Error) << "the group is over";
  };
  group.run(first, [](Communicator& own) { own.abort("out of rows"); });
}

TEST(ExchangeQueue, EndsTheGroupWhereWhatIsUnderWayIsGivenUp) {
  TwoRanks group;
  const auto first = [&](Communicator& own) {
    ExchangeQueue queue(own);
    queue.start();
    Sum sum(own, 1), behind(own, 1);
    queue.give_up("nothing is under way");
    EXPECT_FALSE(own.has_ended());
    queue.post(sum.exchange, kBoth);
    queue.post(behind.exchange, kBoth);
    queue.give_up("computing has failed");
    EXPECT_EQ(behind.total, 0);
    EXPECT_NO_THROW(queue.wait_for_all());
  };
  const auto second = [&](Communicator& own) {
    while (!own.has_ended()) std::this_thread::yield();
    ExchangeQueue queue(own);
    Sum sum(own, 2);
    EXPECT_TRUE(is_error(error_of([&] { queue.run(sum.exchange, kBoth); }), Code::rank_failed, {"computing has failed"}));
  };
  group.run(first, second);
}

}  // namespace
}  // namespace st

#include "planner/rank_clock.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/mesh.h"

namespace st {
namespace {

/// Two data ranks of two stages; the first stage sends three messages, in turn over links 0 and 1.
constexpr Mesh kMesh{.data = 2, .tensor = 1, .stage = 2};

Plan plan_of(int32_t rank) {
  Plan plan;
  plan.program.mesh = kMesh;
  plan.program.rank = rank % kMesh.data;
  const int32_t other = position_of(kMesh, rank).stage == 0 ? 1 : 0;
  for (const int32_t link : {0, 1}) {
    ExchangePlan message;
    message.link = link;
    message.other = other;
    plan.exchanges.push_back(message);
  }
  return plan;
}

Instruction instruction(Instruction::Kind kind, int32_t exchange = -1) {
  return {.section = 0, .node = 0, .micro_batch = 0, .exchange = exchange, .kind = kind};
}

RankClock clock_of(Instruction::Kind kind, std::vector<double> ended) {
  return {.began = 0,
          .order = {instruction(Instruction::Kind::kernel), instruction(kind, 0), instruction(kind, 1),
                    instruction(Instruction::Kind::kernel), instruction(kind, 0)},
          .ended = std::move(ended)};
}

TEST(RankClock, CountsAMessageFromItsSendAndOnlyIfItsReceiverWaited) {
  std::vector<Plan> plans;
  for (int32_t rank = 0; rank < kMesh.ranks(); ++rank) plans.push_back(plan_of(rank));
  std::vector<const Plan*> of_ranks;
  for (const Plan& plan : plans) of_ranks.push_back(&plan);
  // The second lane is a hundred times as slow: a message taken for one of the other lane shows.
  const std::vector<RankClock> clocks = {
      clock_of(Instruction::Kind::send, {4, 4.5, 5, 6, 7}), clock_of(Instruction::Kind::send, {400, 450, 500, 600, 700}),
      clock_of(Instruction::Kind::receive, {1, 4.75, 5.125, 9, 9.5}),  // the last receive begins when its message has come
      clock_of(Instruction::Kind::receive, {100, 475, 512, 600, 712})};
  const auto of = [&](size_t rank) {
    std::vector<std::pair<size_t, double>> found;
    for (const MessageTime& time : messages_waited_for(of_ranks, clocks, rank)) found.emplace_back(time.receive, time.seconds);
    return found;
  };
  using Found = std::vector<std::pair<size_t, double>>;
  EXPECT_EQ(of(0), Found());
  EXPECT_EQ(of(2), (Found{{1, 0.25}, {2, 0.125}}));
  EXPECT_EQ(of(3), (Found{{1, 25}, {4, 12}, {2, 12}}));
}

}  // namespace
}  // namespace st

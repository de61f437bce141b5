// The bytes of a plan's collectives by link, against closed forms: 8 ranks on two nodes of 4.
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "planned_runs.h"
#include "planner/blueprint.h"
#include "refusal.h"

namespace st {
namespace {

PlannedRun run_on(int32_t ranks_per_node, std::string_view json) {
  PlannedRun run = run_of(kSmall, json);
  run.machine.ranks_per_node = ranks_per_node;
  return run;
}

/// The exchanges of one op that a rank sends for in a step.
SentByLink sent_for(const Plan& plan, Op op, int64_t micro_batches, int64_t ranks_per_node) {
  SentByLink sum;
  for (const Instruction& at : plan.instructions) {
    if (!at.sends() || at.makes == Copy::gathered || plan.exchanges[static_cast<size_t>(at.exchange)].op != op) continue;
    const SentByLink sent = sent_by_link(plan, at, micro_batches, ranks_per_node);
    sum.direct += sent.direct;
    sum.native += sent.native;
  }
  return sum;
}

int64_t elements_of_parameters(const Plan& plan) {
  int64_t elements = 0;
  for (const Slot& slot : plan.program.slots) elements += slot.role == Role::parameter ? slot.type.shape.elements() : 0;
  return elements;
}

/// Summed over all ranks, a tensor of N bytes: 7 N are sent either way. Direct, each rank sends to 3 ranks in its node and to 4 others: 3 N
/// and 4 N. A ring has 6 connections in nodes and 2 between them, each with 7/8 N.
TEST(LinkBytes, OfCollectivesOnTwoNodesAreTheClosedForms) {
  const PlannedRun run = run_on(4, R"({"ranks":8,"zero":1,"batch":1})");
  for (const Op op : {Op::reduce_scatter, Op::all_gather}) {
    SentByLink sum;
    int64_t bytes = 0;
    for (int32_t rank = 0; rank < 8; ++rank) {
      const RankPlan of = plan_of_rank(run, rank);
      const SentByLink own = sent_for(of.plan, op, 8, 4);
      sum.direct += own.direct;
      sum.native += own.native;
      bytes = 4 * elements_of_parameters(of.plan);
      if (op == Op::reduce_scatter) bytes += 4 * kSmall.vocabulary * kSmall.width;  // a tied weight has two gradients
      // The rest of the division by the members of a node is less than one byte for each collective.
      EXPECT_NEAR(static_cast<double>(own.native.between_nodes), static_cast<double>(own.native.all()) / 4, 64) << "rank " << rank;
    }
    EXPECT_EQ(sum.direct, (LinkBytes{3 * bytes, 4 * bytes})) << name_of(op);
    EXPECT_EQ(sum.native.all(), 7 * bytes) << name_of(op);
    EXPECT_NEAR(static_cast<double>(sum.native.between_nodes), 2 * 7.0 / 8 * static_cast<double>(bytes), 8 * 64) << name_of(op);
  }
}

/// Values of tensor ranks: a gather and a scatter are of N bytes, and a sum is both. All shards are equal, so each rank has its closed
/// form.
TEST(LinkBytes, OfTensorRanksOnTwoNodesAreTheClosedFormsOnEachRank) {
  const PlannedRun run = run_on(2, R"({"ranks":4,"tensor":4,"batch":2})");
  const Plan plan = plan_of_rank(run, 3).plan;
  int64_t seen = 0;
  for (const Instruction& at : plan.instructions) {
    if (!at.sends()) continue;
    const ExchangePlan& exchange = plan.exchanges[static_cast<size_t>(at.exchange)];
    const int64_t bytes = exchange.elements * bytes_of(exchange.dtype), share = bytes / 4;
    if (!is_of_values(exchange.op) || bytes % 16 != 0) continue;
    const SentByLink sent = sent_by_link(plan, at, 1, 2);
    const bool is_sum = exchange.op == Op::tensor_sum;
    const int64_t times = is_sum ? 2 : 1;  // an all-reduce scatters and gathers
    if (is_sum && bytes <= kSummedAtOnce)
      EXPECT_EQ(sent.direct, (LinkBytes{bytes, 2 * bytes})) << exchange.label;
    else
      EXPECT_EQ(sent.direct, (LinkBytes{times * share, times * 2 * share})) << exchange.label;
    EXPECT_EQ(sent.native.all(), times * 3 * share) << exchange.label;
    EXPECT_EQ(sent.native.between_nodes, times * (3 * share / 2)) << exchange.label;
    EXPECT_EQ(sent_by_link(plan, at, 1, 4).direct, (LinkBytes{sent.direct.all(), 0})) << "one node";
    ++seen;
  }
  EXPECT_GT(seen, 8);
}

TEST(LinkBytes, OfMessagesDependOnTheNodeOfTheOtherStage) {
  for (const int32_t ranks_per_node : {1, 2, 3, 4, 8}) {
    const PlannedRun run = run_on(ranks_per_node, R"({"ranks":8,"stages":4,"accumulate":4})");
    for (int32_t rank = 0; rank < 8; ++rank) {
      const Plan plan = plan_of_rank(run, rank).plan;
      LinkBytes sent, expected;
      for (const Instruction& at : plan.instructions) {
        if (at.kind != Instruction::Kind::send) continue;
        const ExchangePlan& message = plan.exchanges[static_cast<size_t>(at.exchange)];
        const bool is_here = rank / ranks_per_node == (message.other * 2 + rank % 2) / ranks_per_node;
        (is_here ? expected.in_node : expected.between_nodes) += message.elements * bytes_of(message.dtype);
        const SentByLink own = sent_by_link(plan, at, 8, ranks_per_node);
        sent += own.direct;
        EXPECT_EQ(own.direct, own.native);
      }
      EXPECT_EQ(sent, expected) << "rank " << rank << ", " << ranks_per_node << " a node";
      EXPECT_GT(sent.all(), 0);
    }
  }
}

/// Data ranks that are not neighbours, nodes that a group fills in part, short rounds, and collectives of a few numbers.
TEST(LinkBytes, AddUpToWhatThePlanSends) {
  for (const char* json : {R"({"ranks":8,"tensor":2,"stages":2,"zero":2,"accumulate":3,"batch":1})", R"({"ranks":6,"zero":3,"batch":1})",
                           R"({"ranks":5,"zero":1,"micro_batches":7,"clip":1,"batch":1})", R"({"ranks":2,"batch":1})"})
    for (const int32_t ranks_per_node : {1, 2, 3, 4}) {
      SCOPED_TRACE(text(json, ", ", ranks_per_node, " a node"));
      PlannedRun run = run_on(ranks_per_node, json);
      for (int32_t rank = 0; rank < run.recipe.ranks; rank += 3) {
        const RankPlan of = plan_of_rank(run, rank);
        for (int32_t axis = 0; axis < kMeshAxes; ++axis) {
          const AxisTraffic& traffic = of.numbers.traffic[static_cast<size_t>(axis)];
          EXPECT_EQ(traffic.direct.all(), traffic.bytes) << "rank " << rank << ", axis " << axis;
          std::set<int64_t> nodes;
          MeshPosition at = of.at;
          for (int32_t i = 0; i < run.mesh().size(static_cast<MeshAxis>(axis)); ++i) {
            (axis == 0 ? at.data : axis == 1 ? at.tensor : at.stage) = i;
            nodes.insert(rank_at(run.mesh(), at) / ranks_per_node);
          }
          EXPECT_EQ(traffic.nodes, std::ssize(nodes)) << "rank " << rank << ", axis " << axis;
          EXPECT_EQ(traffic.native.between_nodes == 0, traffic.bytes == 0 || nodes.size() == 1) << "rank " << rank << ", axis " << axis;
        }
      }
      run.by_threads = true;
      if (run.recipe.ranks % 2 == 0) {
        EXPECT_EQ(plan_of_rank(run, 0).numbers.traffic[0].direct.between_nodes, 0) << "threads of one process";
      }
    }
}

TEST(LinkBytes, AreInTheTextTheJsonAndTheReport) {
  Workers workers(1);
  const PlannedRun run = run_on(4, R"({"ranks":8,"zero":1,"batch":1})");
  const Blueprint plan(run, {}, workers);
  const AxisTraffic& data = plan.of_rank().numbers.traffic[0];
  EXPECT_TRUE(says(plan.text(), {"collectives, over 2 nodes\n    direct ", " in the node, ", " between nodes\n    native "}));
  EXPECT_TRUE(says(plan.json(), {text(R"("nodes":2,"direct":{"in_node":)", data.direct.in_node, R"(,"between_nodes":)",
                                      data.direct.between_nodes, R"(},"native":{"in_node":)", data.native.in_node)}));
  EXPECT_TRUE(says(plan.page(), {"What this rank sends in a step", text_of_bytes(data.native.between_nodes)}));
}

}  // namespace
}  // namespace st

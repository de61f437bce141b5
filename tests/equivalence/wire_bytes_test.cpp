// Ranks send exactly the bytes of their plans in a step, as counted by the transport (traps.md, T6), and the plans' sum is the table's.
#include "plan/wire_bytes.h"

#include <gtest/gtest.h>

#include "rank_training.h"
#include "sanitized.h"

namespace st {
namespace {

std::vector<int64_t> sent_in_a_step(Trainer& trainer) {
  const std::vector<int64_t> before = trainer.sent_bytes();
  trainer.step();
  std::vector<int64_t> sent = trainer.sent_bytes();
  for (size_t rank = 0; rank < sent.size(); ++rank) sent[rank] -= before[rank];
  return sent;
}

std::vector<int64_t> planned(const Trainer& trainer) {
  std::vector<int64_t> bytes;
  for (const Plan* plan : trainer.plans()) bytes.push_back(wire_bytes(*plan, trainer.recipe().step_micro_batches()).all());
  return bytes;
}

Training on_ranks(int64_t ranks, int64_t zero, const char* reduce, const char* precision, int64_t micro_batches) {
  Training made = training_of(
      {.name = "", .keys = {{"reduce", reduce}, {"precision", precision}, {"bucket", "20000"}}, .micro_batches = micro_batches}, ranks);
  made.recipe.zero = zero;
  return made;
}

class PlannedWire : public testing::TestWithParam<int64_t> {};

TEST_P(PlannedWire, AreThePlansExactly) {
  const int64_t zero = GetParam();
  for (const int64_t ranks : {2, 3, 4})
    for (const char* reduce : {"\"micro\"", "\"step\""})
      for (const char* precision : {"\"fp32\"", "\"bf16\""})
        for (const int64_t micro_batches : {ranks, 3 * ranks, 3 * ranks - 1, ranks - 1}) {
          if (micro_batches % ranks != 0 && precision[1] == 'b') continue;  // the same ranks have no rows in each
          if (kSanitized && (ranks == 4 || (reduce[1] == 'm') != (micro_batches % 2 == 0))) continue;
          const auto trainer = on_ranks(ranks, zero, reduce, precision, micro_batches).trainer();
          const std::vector<int64_t> plans = planned(*trainer);
          EXPECT_EQ(sent_in_a_step(*trainer), plans)
              << ranks << " ranks, " << reduce << ", " << precision << ", " << micro_batches << " micro-batches";
          EXPECT_GT(plans[0], 0);
        }
}

INSTANTIATE_TEST_SUITE_P(Stages, PlannedWire, testing::Values(0, 1, 2, 3),
                         [](const testing::TestParamInfo<int64_t>& its) { return "Zero" + std::to_string(its.param); });

/// Elements of all parameters, and of all gradients; a tied weight has one gradient per use (order of sums 3).
struct Elements {
  int64_t parameters, gradients;
};

Elements elements_of(const Trainer& trainer) {
  const Model& model = trainer.model();
  return {model.elements(), model.elements() + model.slot(model.parameter_named("token_embedding.weight")).type.shape.elements()};
}

/// Summed over all ranks.
WireBytes planned_sums(const Trainer& trainer, int64_t micro_batches) {
  WireBytes sum;
  for (const Plan* plan : trainer.plans()) {
    const WireBytes wire = wire_bytes(*plan, micro_batches);
    sum.reduce_scatter += wire.reduce_scatter;
    sum.all_gather += wire.all_gather;
    sum.rank_sums += wire.rank_sums;
    sum.gather_squares += wire.gather_squares;
  }
  return sum;
}

// The table gives elements x (N - 1) / N per rank, as the mean over all ranks.
TEST(PlannedWireOfAllRanks, AreTheTables) {
  for (const int64_t ranks : {2, 4})
    for (const int64_t zero : {0, 1, 2})
      for (const int64_t rounds : {1, 3})
        for (const char* reduce : {"\"micro\"", "\"step\""}) {
          const auto trainer = on_ranks(ranks, zero, reduce, "\"fp32\"", rounds * ranks).trainer();
          const Elements all = elements_of(*trainer);
          const WireBytes sums = planned_sums(*trainer, rounds * ranks);
          const int64_t exchanges = rounds > 1 && trainer->recipe().reduce == "micro" ? rounds : 1;
          const std::string what = text(ranks, " ranks, zero ", zero, ", ", rounds, " rounds, ", reduce);
          EXPECT_EQ(sums.reduce_scatter, exchanges * all.gradients * 4 * (ranks - 1)) << what;
          EXPECT_EQ(sums.all_gather, all.parameters * 4 * (ranks - 1)) << what;
          EXPECT_LT(sums.rank_sums + sums.gather_squares, sums.reduce_scatter / 50)
              << what;  // losses, and squares: one number per 1024 elements
        }
}

// The table's 3 G P, or (2 G + 1) P with reduce step: each micro-batch gathers everything for forward (a tied weight once per use) and, for
// backward, what its arithmetic reads, which excludes biases, the norms' beta and the embeddings.
TEST(PlannedWireOfZero3, IsTheTablesButForWhatBackwardDoesNotRead) {
  for (const int64_t ranks : {2, 4})
    for (const int64_t rounds : {1, 3})
      for (const char* reduce : {"\"micro\"", "\"step\""}) {
        const auto trainer = on_ranks(ranks, 3, reduce, "\"fp32\"", rounds * ranks).trainer();
        const Elements all = elements_of(*trainer);
        int64_t backward = 0;
        for (const SlotId id : trainer->model().parameters()) {
          const Slot& slot = trainer->model().slot(id);
          const bool is_read = slot.name.ends_with(".gamma") || (slot.type.shape.rank() == 2 && slot.name != "position_embedding.weight");
          if (is_read) backward += slot.type.shape.elements();
        }
        const WireBytes sums = planned_sums(*trainer, rounds * ranks);
        const int64_t exchanges = trainer->recipe().reduce == "micro" ? rounds : 1;
        const std::string what = text(ranks, " ranks, ", rounds, " rounds, ", reduce);
        EXPECT_EQ(sums.reduce_scatter, exchanges * all.gradients * 4 * (ranks - 1)) << what;
        EXPECT_EQ(sums.all_gather, rounds * (all.gradients + backward) * 4 * (ranks - 1)) << what;
        const double table = static_cast<double>(all.gradients * (2 * rounds + exchanges) * 4 * (ranks - 1));
        EXPECT_NEAR(static_cast<double>(sums.reduce_scatter + sums.all_gather) / table, 0.98, 0.02) << what;
      }
}

}  // namespace
}  // namespace st

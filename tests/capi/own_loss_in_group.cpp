// A host's own loss on ranks: each has its own rows, outputs and gradients, and a failure on any rank ends the step of all.
#include <string>

#include "group_rank.h"

namespace {

using namespace st::test;

constexpr const char* kHostsRecipe = R"({"batch": 4, "micro_batches": 2, "warmup": 0, "threads": 1})";

/// A rank of the sine's run, which owns micro-batch `rank` of two.
struct SineRank {
  explicit SineRank(st_communicator* own, const char* recipe = kHostsRecipe, const char* stages = "1") : run(recipe) {
    run.trainer.reset();  // with stages the model gives up other stages' parameters
    EXPECT_TRUE(works(st_recipe_set(run.recipe, "stages", stages)));
    EXPECT_TRUE(works(st_trainer_create_in_group(run.model, run.recipe, nullptr, own, trainer.out())));
  }
  st_status forward(int64_t k) {
    const int64_t dims[2] = {4, 1};
    const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, run.x.data() + 4 * k, 16}}};
    int64_t m = 0;
    return st_trainer_forward(trainer, 1, batch, &m, &outputs);
  }
  /// The output goes to `room`, which the backward then reads.
  st_status forward_into(int64_t k, int64_t m) {
    const int64_t dims[2] = {4, 1};
    const st_named_view batch = {"x", {ST_F32, 2, dims, nullptr, run.x.data() + 4 * k, 16}};
    room = {"prediction", {ST_F32, 2, dims, nullptr, written, sizeof written}};
    if (m > 0) outputs = &room;
    return st_trainer_forward_into(trainer, 1, &batch, m, &room);
  }
  st_status backward(int64_t k) {
    const int64_t dims[2] = {4, 1};
    const auto* prediction = static_cast<const float*>(outputs[0].view.data);
    float gradient[4];
    for (size_t i = 0; i < 4; ++i)
      gradient[i] = static_cast<float>(0.125 * 2 * (static_cast<double>(prediction[i]) - run.y[4 * static_cast<size_t>(k) + i]));
    const st_named_view by[] = {{"prediction", {ST_F32, 2, dims, nullptr, gradient, sizeof gradient}}};
    return st_trainer_backward(trainer, 1, by);
  }
  std::string digest() const { return text_of(st_trainer_digest_collective, trainer); }

  SineRun run;
  HeldTrainer trainer;
  const st_named_view* outputs = nullptr;
  st_named_view room{};
  float written[4] = {};
};

/// Each of two ranks has one of two rows.
void train_without_a_loss(const char* zero) {
  const ThreadRanks ranks(2);
  ranks.each([&](int k, st_communicator* communicator) {
    HeldRecipe recipe;
    const auto context = hold<HeldContext>(st_context_create, nullptr);
    const auto graph = hold<HeldGraph>(st_graph_create, context);
    const int64_t rows[] = {ST_BATCH, 2}, weights[] = {2, 1}, dims[] = {1, 2}, out[] = {1, 1};
    st_value x = 0, w = 0, y = 0;
    ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, rows, &x)));
    ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, weights, ST_INIT_ZEROS, 0, &w)));
    const st_value in[] = {x, w};
    ASSERT_TRUE(works(st_graph_op(graph, "matmul", 2, in, nullptr, 1, &y)));
    ASSERT_TRUE(works(st_graph_output(graph, "y", y)));
    const auto model = hold<HeldModel>(st_model_create, graph, 1);
    ASSERT_TRUE(works(
        st_recipe_create(R"({"batch": 1, "warmup": 0, "lr": 0.05, "weight_decay": 0, "optimizer": "sgd", "clip": 0})", recipe.out())));
    ASSERT_TRUE(works(st_recipe_set(recipe, "zero", zero)));
    const auto trainer = hold<HeldTrainer>(st_trainer_create_in_group, model, recipe, nullptr, communicator);
    // Rank 0 has the row (1, 0) with target 1, rank 1 has (0, 1) with target -1: each learns both.
    float row[2] = {k == 0 ? 1.0F : 0.0F, k == 0 ? 0.0F : 1.0F}, gradient = 0;
    const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, row, sizeof row}}};
    const st_named_view by[] = {{"y", {ST_F32, 2, out, nullptr, &gradient, sizeof gradient}}};
    for (int step = 0; step < 200; ++step) {
      const st_named_view* outputs = nullptr;
      ASSERT_TRUE(works(forward(trainer, 1, batch, &outputs)));
      gradient = *static_cast<const float*>(outputs[0].view.data) - (k == 0 ? 1.0F : -1.0F);
      ASSERT_TRUE(works(st_trainer_backward(trainer, 1, by)));
      ASSERT_TRUE(works(st_trainer_apply(trainer, nullptr)));
    }
    float learned[2];
    const st_view to = {ST_F32, 2, weights, nullptr, learned, sizeof learned};
    ASSERT_TRUE(works(st_model_get_collective(model, "w", &to)));
    EXPECT_NEAR(learned[0], 1, 1e-2);
    EXPECT_NEAR(learned[1], -1, 1e-2);
  });
}

TEST(OwnLossInGroup, OfAGraphWithoutALossTrains) { train_without_a_loss("0"); }
TEST(OwnLossInGroup, OfAGraphWithoutALossTrainsInPieces) { train_without_a_loss("3"); }

TEST(OwnLossInGroup, AnErrorOnOneRankEndsTheStepOfAllWithItsReason) {
  const ThreadRanks ranks(3);
  ranks.each([&](int k, st_communicator* communicator) {
    SineRank rank(communicator, R"({"batch": 4, "threads": 1})");
    const std::string before = rank.digest();
    if (k == 1) {
      int64_t m = 0;
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_forward(rank.trainer, 0, nullptr, &m, &rank.outputs), {"\"x\"", "missing"}));
    } else {
      ASSERT_TRUE(works(rank.forward(0)));
      EXPECT_TRUE(fails(ST_RANK_FAILED, rank.backward(0), {"rank 1", "missing"}));
    }
    EXPECT_EQ(rank.digest(), before);
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_communicator_barrier(communicator, "after it", nullptr)));
  });
}

/// The last part's rank gets the outputs; the other one gets none, and gives no gradients.
TEST(OwnLossInGroup, OfStagesHasTheBitsOfOneRank) {
  const char* const recipe = R"({"batch": 4, "warmup": 0, "threads": 1})";
  const auto train = [](SineRank& rank, bool has_outputs) {
    for (int64_t k = 0; k < 4; ++k) {
      ASSERT_TRUE(works(rank.forward(k % 2)));
      ASSERT_EQ(rank.outputs != nullptr, has_outputs);
      if (k == 2) {
        ASSERT_TRUE(works(rank.forward_into(k % 2, has_outputs ? 1 : 0)));  // it replaces the previous one
      }
      ASSERT_TRUE(works(has_outputs ? rank.backward(k % 2) : st_trainer_backward(rank.trainer, 0, nullptr)));
      ASSERT_TRUE(k % 2 == 0 || works(st_trainer_apply(rank.trainer, nullptr)));
    }
  };
  std::string alone;
  ThreadRanks(1).each([&](int, st_communicator* communicator) {
    SineRank rank(communicator, recipe);
    train(rank, true);
    alone = rank.digest();
  });
  ThreadRanks(2).each([&](int k, st_communicator* communicator) {
    SineRank rank(communicator, recipe, "2");
    train(rank, k == 1);
    EXPECT_EQ(rank.digest(), alone);
    if (k == 0) {
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, rank.forward_into(0, 1), {"last part's stage", "not on this one", "give no views"}));
    } else {
      EXPECT_TRUE(fails(ST_RANK_FAILED, rank.forward_into(0, 1), {"rank 0", "last part's stage"}));
    }
  });
}

}  // namespace

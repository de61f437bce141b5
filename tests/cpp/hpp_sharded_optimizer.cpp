// scaletrain.hpp: a sharded optimizer, and its state on another number of ranks.
#include <gtest/gtest.h>

#include "each_rank.h"

namespace {

using namespace scaletrain;
using test::on_ranks;

TEST(HppShardedOptimizer, UpdatesByTheMeanOfAllRanksAtBothStages) {
  const Context context;
  for (const int32_t stage : {1, 2})
    on_ranks(context, 2, [&](const Communicator& own) {
      std::vector<float> w(3, 1), g(3, own.rank() == 0 ? 3.0F : -1.0F);
      std::vector<uint16_t> half(3);
      ShardedOptimizerOptions options;
      options.stage = stage;
      const ShardedOptimizer sharded(own, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(w)}}, options);
      EXPECT_EQ(sharded.step({view(g)}).step, 1);
      EXPECT_EQ(w, std::vector<float>(3, 0.5F)) << "less half of the mean";
      sharded.keep_copies({View(DType::bf16, half.data(), {3}, 6)});
      sharded.set("lr", "1");
      const LossScaler scaler(context);
      g.assign(3, static_cast<float>(scaler.scale()));
      if (stage == 2) {
        sharded.gradient_ready(0, view(g));
      } else {
        EXPECT_THROW(sharded.gradient_ready(0, view(g)), Error);
      }
      EXPECT_FALSE(sharded.step(scaler, stage == 2 ? std::vector<View>() : std::vector<View>{view(g)}).skipped);
      scaler.update();
      EXPECT_EQ(w, std::vector<float>(3, -0.5F));
      EXPECT_EQ(half, std::vector<uint16_t>(3, 0xBF00));
    });
}

TEST(HppShardedOptimizer, MastersInPiecesAreWholeWhereTheStateIsGathered) {
  const Context context;
  on_ranks(context, 2, [&](const Communicator& own) {
    std::vector<float> w(2048, 1), g(2048, 1);
    std::vector<uint16_t> half(2048);
    ShardedOptimizerOptions options;
    options.shard_masters = true;
    const ShardedOptimizer sharded(own, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(w)}}, options);
    sharded.keep_copies({View(DType::bf16, half.data(), {2048}, 4096)});
    sharded.step({view(g)});
    EXPECT_NE(w, std::vector<float>(2048, 0.5F));
    static_cast<void>(sharded.gather_state(-1));
    EXPECT_EQ(w, std::vector<float>(2048, 0.5F));
  });
}

TEST(HppShardedOptimizer, GivesItsStateToOneRankAndTakesThatOfAnOptimizer) {
  constexpr const char* kLion = R"({"optimizer": "lion", "lr": 0.25})";
  const Context context;
  std::vector<float> weight(4, 1), gradient(4, 1);
  const Optimizer whole(context, kLion, {{"w", view(weight)}});
  whole.step({view(gradient)});
  const Views state = whole.state();
  on_ranks(context, 2, [&](const Communicator& own) {
    std::vector<float> w(4, 1), g(4, 1);
    const ShardedOptimizer sharded(own, kLion, {{"w", view(w)}});
    sharded.load_state(state);
    EXPECT_EQ(sharded.step({view(g)}).step, 2);
    const Views gathered = sharded.gather_state(0);
    EXPECT_EQ(gathered.size(), own.rank() == 0 ? 2 : 0);
    if (own.rank() == 0) {
      EXPECT_EQ(gathered[1].name, "moment1.w");
    }
  });
}

}  // namespace

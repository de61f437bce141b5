// scaletrain.hpp: an optimizer in shards, and its state on another number of ranks.
#include <gtest/gtest.h>

#include <scaletrain.hpp>
#include <thread>
#include <vector>

namespace {

using namespace scaletrain;

/// act(rank) on each of two thread-ranks.
template <class Act>
void on_two_ranks(const Context& context, const Act& act) {
  const std::vector<Communicator> ranks = Communicator::local(context, 2);
  std::thread other([&] { act(ranks[1]); });
  act(ranks[0]);
  other.join();
}

constexpr const char* kLion = R"({"optimizer": "lion", "lr": 0.25})";

TEST(HppShardedOptimizer, UpdatesByTheMeanOfAllRanksAtBothStages) {
  const Context context;
  for (const int32_t stage : {1, 2})
    on_two_ranks(context, [&](const Communicator& own) {
      std::vector<float> w(3, 1), g(3, own.rank() == 0 ? 3.0F : -1.0F);
      std::vector<uint16_t> half(3);
      ShardedOptimizerOptions options;
      options.stage = stage;
      const ShardedOptimizer sharded(own, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(w)}}, options);
      EXPECT_EQ(sharded.step({view(g)}).step, 1);
      EXPECT_EQ(w, std::vector<float>(3, 0.5F)) << "less half of the mean";
      sharded.keep_copies({View(DType::bf16, half.data(), {3}, 6)});
      EXPECT_EQ(half, std::vector<uint16_t>(3, 0x3F00));
      sharded.set("lr", "1");
      g.assign(3, 1);
      const LossScaler scaler(context);
      const double scale = scaler.scale();
      for (float& x : g) x *= static_cast<float>(scale);
      if (stage == 2) {
        sharded.gradient_ready(0, view(g));
        EXPECT_FALSE(sharded.step(scaler, {}).skipped);
      } else {
        EXPECT_THROW(sharded.gradient_ready(0, view(g)), Error);
        EXPECT_FALSE(sharded.step(scaler, {view(g)}).skipped);
      }
      scaler.update();
      EXPECT_EQ(w, std::vector<float>(3, -0.5F));
      EXPECT_EQ(half, std::vector<uint16_t>(3, 0xBF00));
    });
}

TEST(HppShardedOptimizer, MastersInPiecesAreWholeWhereTheStateIsGathered) {
  const Context context;
  on_two_ranks(context, [&](const Communicator& own) {
    std::vector<float> w(2048, 1), g(2048, 1);
    std::vector<uint16_t> half(2048);
    ShardedOptimizerOptions options;
    options.masters_in_pieces = true;
    const ShardedOptimizer sharded(own, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(w)}}, options);
    sharded.keep_copies({View(DType::bf16, half.data(), {2048}, 4096)});
    sharded.step({view(g)});
    EXPECT_EQ(half, std::vector<uint16_t>(2048, 0x3F00));
    EXPECT_NE(w, std::vector<float>(2048, 0.5F));
    static_cast<void>(sharded.gather_state(-1));
    EXPECT_EQ(w, std::vector<float>(2048, 0.5F));
  });
}

TEST(HppShardedOptimizer, AnOptimizerGoesOnFromItsStateAndItFromTheOptimizers) {
  const Context context;
  std::vector<float> of_one(4, 1);
  on_two_ranks(context, [&](const Communicator& own) {
    std::vector<float> w(4, 1), g(4, 1);
    const ShardedOptimizer sharded(own, kLion, {{"w", view(w)}});
    sharded.step({view(g)});
    const Views state = sharded.gather_state(0);
    EXPECT_EQ(state.size(), own.rank() == 0 ? 2 : 0);
    if (own.rank() > 0) return;
    EXPECT_EQ(state[0].view.as<int64_t>()[0], 1);
    EXPECT_EQ(state[1].name, "moment1.w");
  });
  const Optimizer one(context, kLion, {{"w", view(of_one)}});
  std::vector<float> g(4, 1);
  one.step({view(g)});
  const Views state = one.state();
  on_two_ranks(context, [&](const Communicator& own) {
    std::vector<float> w = of_one;
    const ShardedOptimizer sharded(own, kLion, {{"w", view(w)}});
    sharded.load_state(state);
    EXPECT_EQ(sharded.step({view(g)}).step, 2);
  });
}

}  // namespace

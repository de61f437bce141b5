// Measured tiles change a step's speed but none of its bits, for any content of the tuning cache.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backend/needs.h"
#include "gemm/tile_sizes.h"
#include "training.h"

namespace st {
namespace {

namespace fs = std::filesystem;

const GptOptions kOptions = {.layers = 2, .width = 39, .heads = 3, .context = 37, .vocabulary = 129};

class Tune : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() / text("tune-", getpid())).string();
    TearDown();
  }
  void TearDown() override {
    fs::remove_all(path_);
    fs::remove_all(path_ + ".lock");
  }

  std::unique_ptr<Trainer> trainer(bool tune, const PlanOptions& options = {}) const {
    auto context = std::make_shared<Context>(
        ContextOptions{.device = "cpu", .threads = 2, .log = {}, .parallel = {}, .memory = {}, .tuning_cache = path_});
    const auto model = std::make_shared<Model>(std::move(context), build_gpt(kOptions), 1);
    const Recipe recipe = {.batch = 5, .accumulate = 2, .tune = tune};
    return std::make_unique<Trainer>(model, recipe, std::make_shared<Sequences>(50, kOptions.context, kOptions.vocabulary, true), options);
  }

  struct State {
    std::vector<double> losses;
    std::string digest;
    bool operator==(const State&) const = default;
  };
  static State after_steps(Trainer& trainer) {
    State state{losses_of(trainer, 3), ""};
    state.digest = trainer.state_digest();
    return state;
  }

  std::string path_;
};

TEST_F(Tune, LeavesEveryBitMeasuredOrFromTheCacheAlsoWhenItIsDamaged) {
  const State plain = after_steps(*trainer(false));
  EXPECT_FALSE(fs::exists(path_)) << "nobody asked for measuring";
  EXPECT_EQ(after_steps(*trainer(true)), plain);
  ASSERT_TRUE(fs::exists(path_));
  EXPECT_EQ(after_steps(*trainer(true)), plain);
  fs::resize_file(path_, fs::file_size(path_) / 2);
  EXPECT_EQ(after_steps(*trainer(true)), plain);
  fs::remove_all(path_);
  fs::create_directories(path_);
  EXPECT_EQ(after_steps(*trainer(true)), plain);
}

/// Chooses other tiles for every product by hand, so that the test does not depend on measurements.
TEST_F(Tune, GivesEveryProductTheTilesThatWereChosenAndShowsThem) {
  const State plain = after_steps(*trainer(false));
  int products = 0;
  PlanOptions options;
  options.tiles = [&](const Program&, const Section& section, const Node& node) -> ProductTiles {
    std::vector<Type> in;
    for (const Value v : node.in) in.push_back(section.graph.type(v));
    const auto backend = make_cpu_backend();
    const GemmProblem p = tiled_product(profile_of(*backend, 1), node.op, in, node.out, node.attrs).value();
    TileSchedule wish = backend->gemm().schedule(p, {});
    wish.mc = wish.mr, wish.nc = wish.b == Packing::in_place ? wish.nc : wish.nr, wish.block_m = wish.mc * 2, wish.block_n = wish.nc * 2;
    const TileSizes sizes = sizes_of(backend->gemm().schedule(p, wish));
    ++products;
    return {.tiles = {sizes.begin(), sizes.end()}, .library = {}};
  };
  const auto tiled = trainer(false, options);
  EXPECT_EQ(after_steps(*tiled), plain);
  EXPECT_GE(products, 15);
  const std::string shown = explain(tiled->plan());
  EXPECT_NE(shown.find("tiles=["), std::string::npos);
  EXPECT_NE(shown.find("  tune "), std::string::npos) << "among the passes";
  EXPECT_EQ(explain(trainer(false)->plan()).find("tiles"), std::string::npos);
}

}  // namespace
}  // namespace st

// Training with an external library's products: other bits, but the same for any number of threads, and the losses of our own kernels up to
// rounding. The library is made for tests.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "gemm/gemm_library.h"
#include "training.h"

namespace st {
namespace {

constexpr const char* kIdentity = "openblas-0.0.1-Three_Loops_1";
const GptOptions kOptions = {.layers = 2, .width = 39, .heads = 3, .context = 37, .vocabulary = 129};

struct State {
  std::vector<double> losses;
  std::string digest, shown;
};

State trained(int threads, const PlanOptions& options, const std::string& library = "own") {
  auto context = std::make_shared<Context>(
      ContextOptions{.device = "cpu", .threads = threads, .log = {}, .parallel = {}, .memory = {}, .tuning_cache = ""});
  const auto model = std::make_shared<Model>(std::move(context), build_gpt(kOptions), 1);
  const Recipe recipe = {.batch = 5, .accumulate = 2, .gemm_library = library};
  Trainer trainer(model, recipe, std::make_shared<Sequences>(50, kOptions.context, kOptions.vocabulary, true), options);
  State state{losses_of(trainer, 3), "", explain(trainer.plan())};
  state.digest = trainer.state_digest();
  return state;
}

class GemmLibrarySteps : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("SCALETRAIN_OPENBLAS", ST_LIBRARIES "/libable_blas.so", 1);
    for (const char* other : {"SCALETRAIN_MKL", "SCALETRAIN_ONEDNN_OPENMP"}) setenv(other, "/nowhere/at-all.so", 1);
    gemm_libraries();
  }
};

void expect_all_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * b[i]) << "fp32, summed in another order, over " << i << " updates";
}

TEST_F(GemmLibrarySteps, HaveTheLibrarysBitsForAnyNumberOfThreadsAndOurLosses) {
  const State own = trained(2, {});
  EXPECT_EQ(own.shown.find("library"), std::string::npos);
  PlanOptions options;
  options.tiles = [](const Program&, const Section&, const Node&) { return ProductTiles{.tiles = {}, .library = kIdentity}; };
  const State one = trained(1, options);
  EXPECT_NE(one.digest, own.digest) << "it adds in another order";
  expect_all_near(one.losses, own.losses);
  EXPECT_NE(one.shown.find(text("library=", kIdentity)), std::string::npos);
  EXPECT_NE(one.shown.find(text("products by ", kIdentity, ": ")), std::string::npos);
  EXPECT_EQ(one.shown.find("packed."), std::string::npos) << "a library reads the weights as they lie";
  for (const int threads : {2, 3}) {
    const State more = trained(threads, options);
    EXPECT_EQ(more.digest, one.digest) << threads;
    EXPECT_EQ(more.losses, one.losses) << threads;
  }
}

TEST_F(GemmLibrarySteps, OfSomeProductsMixWithOurOwn) {
  int products = 0;
  PlanOptions options;
  options.tiles = [&](const Program&, const Section&, const Node&) {
    return ProductTiles{.tiles = {}, .library = products++ % 2 == 0 ? kIdentity : ""};
  };
  expect_all_near(trained(2, options).losses, trained(2, {}).losses);
  EXPECT_GT(products, 15);
}

TEST_F(GemmLibrarySteps, AreMeasuredWhereTheRecipeAsksForThem) {
  const State automatic = trained(2, {}, "auto");
  EXPECT_NE(automatic.shown.find("  tune "), std::string::npos) << "among the passes";
  expect_all_near(automatic.losses, trained(2, {}).losses);
}

}  // namespace
}  // namespace st

#include "train/trainer.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "dataset_rows.h"
#include "ir/build.h"
#include "models/mlp.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

constexpr auto kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Trainer, LossFallsOnBothBackends) {
  for (const char* device : {"reference", "cpu"}) {
    const auto trainer = Training{.device = device, .recipe = {.batch = 5, .lr = 1e-2}}.trainer();
    const auto losses = losses_of(*trainer, 40);
    EXPECT_NEAR(losses[0], std::log(17.0), 0.1) << "an untrained model knows nothing";
    EXPECT_LT(losses[39], 0.6 * losses[0]) << device;
  }
}

// 1e-5: fp32 against double-accumulating arithmetic over 20 updates.
TEST(Trainer, CpuFollowsReference) {
  const auto reference = losses_of(*Training{.device = "reference", .recipe = {.batch = 3, .accumulate = 2}}.trainer(), 20);
  const auto cpu = losses_of(*Training{.device = "cpu", .threads = 2, .recipe = {.batch = 3, .accumulate = 2}}.trainer(), 20);
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(cpu[i], reference[i], 1e-5 * reference[i]) << i;
}

TEST(Trainer, RefusesMoreRanksThanRunAsThreads) {
  const std::string why = refusal(Code::invalid_argument, [] { Training{.recipe = {.ranks = 257}}.trainer(); });
  EXPECT_THAT(why, testing::HasSubstr("recipe ranks is 257; at most 256 ranks run as threads of one process; start more as processes"));
}

TEST(Trainer, DataDrivenStepEqualsTheSameRowsGivenByHand) {
  const Training training{.recipe = {.batch = 3, .accumulate = 2, .seed = 5}};
  const auto driven = training.trainer(), given = training.trainer(false);
  const auto data = training.data();
  const DataStream stream(data->rows(), 5);
  for (int64_t step = 0; step < 4; ++step) {
    std::vector<int64_t> rows(6);
    stream.fill(step * 6, rows);
    const Rows batch(*data, rows);
    EXPECT_EQ(driven->step().loss, given->step(batch.views).loss);
  }
  EXPECT_EQ(driven->state_digest(), given->state_digest());
}

TEST(Trainer, TheSameSeedGivesTheSameStateAndAnotherAnother) {
  const auto digest = [](int64_t seed) {
    const auto trainer = Training{.recipe = {.batch = 3, .seed = seed}}.trainer();
    losses_of(*trainer, 3);
    return trainer->state_digest();
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

TEST(Trainer, EvaluatingRaggedRowsEqualsTheWholeAndChangesNothing) {
  for (const char* device : {"reference", "cpu"}) {
    const Training three{.device = device, .recipe = {.batch = 3}, .ignored = true},
        all{.device = device, .recipe = {.batch = 11}, .ignored = true};
    const auto a = three.trainer(), b = all.trainer();
    const auto rows = std::make_shared<Sequences>(11, 7, 17, true);
    const std::string before = a->state_digest();
    const Evaluation ragged = a->evaluate(rows), whole = b->evaluate(rows);
    EXPECT_EQ(ragged.count, whole.count);
    EXPECT_EQ(ragged.count, 11 * 7 - (0 + 1 + 2 + 3) * 2 - (0 + 1 + 2));
    // A row's values do not depend on its neighbours; only the f64 sum of 11 rows has another order.
    EXPECT_NEAR(ragged.loss, whole.loss, 1e-6 * whole.loss) << device;
    EXPECT_EQ(a->state_digest(), before);
  }
}

TEST(Trainer, EvaluatingBetweenStepsDoesNotChangeTheTraining) {
  Training training{.recipe = {.batch = 3}};
  training.recipe.dropout = 0.1;
  const auto plain = training.trainer(), interrupted = training.trainer();
  for (int i = 0; i < 3; ++i) {
    plain->step();
    interrupted->evaluate(std::make_shared<Sequences>(5, 7, 17));
    interrupted->step();
  }
  EXPECT_EQ(plain->state_digest(), interrupted->state_digest());
}

TEST(Trainer, EvaluatesManyShapesWithinItsCache) {
  const auto trainer = Training{.recipe = {.batch = 20}}.trainer();
  for (int64_t rows = 1; rows <= 20; ++rows) EXPECT_EQ(trainer->evaluate(std::make_shared<Sequences>(rows, 7, 17)).count, rows * 7);
}

TEST(Trainer, DropoutIsNewInEveryStepAndOffInEvaluation) {
  Training training{.recipe = {.batch = 3, .lr = 0}};
  training.recipe.dropout = 0.3;
  const auto trainer = training.trainer(false);
  const Rows batch(*training.data(), {1, 2, 3});
  std::set<double> losses;
  for (int i = 0; i < 5; ++i) losses.insert(trainer->step(batch.views).loss);
  EXPECT_EQ(losses.size(), 5U) << "the learning rate is 0: only the masks differ";
  training.recipe.dropout = 0;
  const auto rows = std::make_shared<Sequences>(5, 7, 17);
  EXPECT_EQ(trainer->evaluate(rows).loss, training.trainer()->evaluate(rows).loss);
}

TEST(Trainer, ASkippedStepChangesNothingButTheAttempts) {
  const auto trainer = Training{.recipe = {.batch = 3}}.trainer();
  trainer->step();
  const std::string before = trainer->state_digest();
  const StepReport skipped = skipped_step(*trainer);
  EXPECT_TRUE(skipped.skipped);
  EXPECT_EQ(skipped.step, 2);
  EXPECT_EQ(trainer->state_digest(), before);
  const StepReport next = trainer->step();
  EXPECT_FALSE(next.skipped);
  EXPECT_EQ(next.step, 3);
  EXPECT_EQ(next.lr, 2 * 1e-3 / 20) << "the second successful step";
  EXPECT_NE(trainer->state_digest(), before);
}

TEST(Trainer, TwoTrainersOfOneModelDoNotShareMoments) {
  const Training training{.recipe = {.batch = 3}};
  const auto model = training.model();
  const auto first = training.trainer_of(model, training.data());
  losses_of(*first, 3);
  const auto second = training.trainer_of(model, training.data());
  const auto& slot = second->executor().slot(second->plan().program.slot_named("moment2.final_norm.gamma"));
  for (int64_t i = 0; i < slot.elements(); ++i) EXPECT_EQ(as<float>(slot)[i], 0);
  EXPECT_EQ(first->executor().slot(model->parameters()[0]).data, second->executor().slot(model->parameters()[0]).data);
}

TEST(Trainer, TrimEveryTrimsItsContextAfterEachSoManySuccessfulSteps) {
  struct Cache final : Trimmable {
    int trims = 0;
    void trim() override { ++trims; }
  };
  Training training{.recipe = {.batch = 3}};
  const auto plain = training.trainer();
  training.recipe.trim_every = 2;
  const auto trainer = training.trainer();
  const auto cache = std::make_shared<Cache>();
  trainer->model().context().on_trim(cache);
  for (int successful = 0; successful < 5;) {
    if (successful == 1) {  // a skipped step does not count
      ASSERT_TRUE(skipped_step(*trainer).skipped);
      EXPECT_EQ(cache->trims, 0);
    }
    trainer->evaluate(training.data());
    const int64_t full = trainer->memory_bytes();
    const StepReport report = trainer->step();
    ++successful;
    EXPECT_EQ(cache->trims, successful / 2);
    if (successful % 2 == 0)
      EXPECT_LT(report.memory_bytes, full) << "the evaluation's plan is given back";
    else
      EXPECT_EQ(report.memory_bytes, full);
  }
  // The same rows without those of the skipped step, in a separate run: trimming changes no bit.
  const auto again = training.trainer();
  EXPECT_EQ(losses_of(*again, 4), losses_of(*plain, 4));
  EXPECT_EQ(again->state_digest(), plain->state_digest());
}

TEST(Trainer, CancelEndsOneStepAndKeepsTheState) {
  const Training training{.recipe = {.batch = 3}};
  const auto cancelled = training.trainer(), plain = training.trainer();
  for (const auto* t : {&cancelled, &plain}) (*t)->step();
  const std::string before = cancelled->state_digest();
  cancelled->cancel();
  EXPECT_EQ(error_of([&] { cancelled->step(); }).code(), Code::cancelled);
  EXPECT_EQ(cancelled->state_digest(), before);
  for (const auto* t : {&cancelled, &plain}) (*t)->step();
  EXPECT_EQ(cancelled->state_digest(), plain->state_digest()) << "and the rows of the cancelled step come again";
}

TEST(Trainer, ATokenOutsideTheVocabularyIsNamedWithScopeAndPlace) {
  const Training training{.recipe = {.batch = 2}};
  const auto trainer = training.trainer(false);
  Rows batch(*training.data(), {1, 2});
  reinterpret_cast<int32_t*>(batch.memory[0].data())[7 + 3] = 17;
  const std::string before = trainer->state_digest();
  const Error error = error_of([&] { trainer->step(batch.views); });
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.place.op, "embedding");
  EXPECT_TRUE(says(error.message(), {"embedding: ", "17", "[1, 3]"}));
  EXPECT_EQ(trainer->state_digest(), before);
}

struct Regression {
  std::shared_ptr<Context> context = Training{}.context();
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y = {1, 2, 3, 4};
  Recipe recipe = {.device = "reference", .batch = 2, .accumulate = 2};
  Trainer trainer{
      std::make_shared<Model>(context, build_mlp({.inputs = 2, .hidden = {3}, .outputs = 1, .activation = "tanh", .loss = "mse"}), 1),
      recipe, nullptr};
  std::vector<HostView> batch() const {
    return {plain_view("x", DType::f32, {4, 2}, x.data()), plain_view("y", DType::f32, {4, 1}, y.data())};
  }
};

TEST(Trainer, RefusesNaNWithTheInputAndThePlace) {
  Regression r;
  const std::string before = r.trainer.state_digest();
  r.x[5] = kNaN;
  const Error error = error_of([&] { r.trainer.step(r.batch()); });
  EXPECT_EQ(error.code(), Code::not_finite);
  EXPECT_TRUE(says(error, "\"x\" holds NaN in row 2, element 1"));
  EXPECT_EQ(r.trainer.state_digest(), before);
  r.x[5] = 6;
  EXPECT_EQ(r.trainer.step(r.batch()).step, 1) << "a refused batch does not count as an attempt";
}

TEST(Trainer, SkipsForAnInfInAnyMicroBatch) {
  for (const size_t row : {0U, 1U, 2U, 3U}) {  // two micro-batches of two rows
    Regression r;
    r.trainer.step(r.batch());
    const std::string before = r.trainer.state_digest();
    r.x[2 * row] = std::numeric_limits<float>::infinity();
    const StepReport report = r.trainer.step(r.batch());
    EXPECT_TRUE(report.skipped) << row;
    EXPECT_EQ(report.step, 2);
    EXPECT_EQ(r.trainer.state_digest(), before) << row;
  }
}

TEST(Trainer, RefusesABatchThatDoesNotFitWithBothSides) {
  Regression r;
  auto batch = r.batch();
  const auto refused = [&](const char* words) { return says(error_of([&] { r.trainer.step(batch); }), words); };
  batch[0].shape = {5, 2};
  EXPECT_TRUE(refused("\"x\" must have shape [4, 2], the batch gives [5, 2]"));
  batch[0].shape = {0, 2};
  EXPECT_TRUE(refused("\"x\" must have shape [4, 2], the batch gives [0, 2]"));
  batch = r.batch();
  batch[1].shape = {3, 1};
  EXPECT_TRUE(refused("\"y\" must have shape [4, 1], the batch gives [3, 1]"));
  batch = r.batch();
  batch[1].dtype = DType::f64;
  EXPECT_TRUE(refused("\"y\" must be f32, the batch gives f64"));
  batch = r.batch();
  batch.pop_back();
  EXPECT_TRUE(refused("\"y\" is missing"));
  batch = r.batch();
  batch[0].data = nullptr;
  EXPECT_TRUE(refused("NULL"));
  EXPECT_EQ(error_of([&] { r.trainer.step(); }).code(), Code::wrong_state);
  EXPECT_FALSE(r.trainer.step(r.batch()).skipped);
}

// An input without a batch dimension is the same for every micro-batch; one with several rows per sample is cut at the micro-batch's end.
TEST(Trainer, CutsOnlyInputsThatGrowWithTheBatch) {
  const auto train = [](int64_t batch, int64_t micro_batches) {
    Program program;
    program.sections.emplace_back();
    Builder b(program, 0);
    const Value x = b.input("x", DType::f32, {2 * kBatch, 3}), scale = b.input("scale", DType::f32, {3});
    const auto loss = b.append(Op::mse, {b.mul(x, b.parameter("w", {3}, {.kind = Init::ones, .values = {}})), b.mul(x, scale)});
    program.loss_sum = loss[0];
    program.loss_count = loss[1];
    Trainer trainer(std::make_shared<Model>(Training{}.context(), program, 1),
                    {.device = "reference", .batch = batch, .accumulate = micro_batches}, nullptr);
    std::vector<float> rows(24);
    std::iota(rows.begin(), rows.end(), 1.0F);
    const std::vector<float> scales = {2, 3, 4};
    const std::vector<HostView> views = {plain_view("x", DType::f32, {8, 3}, rows.data()),
                                         plain_view("scale", DType::f32, {3}, scales.data())};
    return trainer.step(views).loss;
  };
  const double whole = train(4, 1);
  EXPECT_NEAR(train(1, 4), whole, 1e-6 * whole);
  EXPECT_NEAR(train(2, 2), whole, 1e-6 * whole);
}

TEST(Trainer, TrainsAndReadsParametersInDoublePrecision) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value x = b.input("x", DType::f64, {kBatch, 3});
  const auto loss = b.append(Op::mse, {b.matmul(x, b.parameter("w", {3, 1}, {.kind = Init::normal, .values = {}}, DType::f64)),
                                       b.input("y", DType::f64, {kBatch, 1})});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  const auto model = std::make_shared<Model>(Training{}.context(), program, 1);
  const auto* w = pointer_to<const double>(model->data(model->parameters()[0]));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(w[i] != 0 && std::abs(w[i]) < 6) << w[i];
  Trainer trainer(model, {.batch = 2, .lr = 0.1, .warmup = 0}, nullptr);
  EXPECT_EQ(trainer.recipe().device, "reference") << "of the context, since the recipe has none";
  const std::vector<double> rows = {1, 0, 2, 0, 1, 1}, targets = {1, -1};
  const std::vector<HostView> views = {plain_view("x", DType::f64, {2, 3}, rows.data()),
                                       plain_view("y", DType::f64, {2, 1}, targets.data())};
  const double first = trainer.step(views).loss;
  double last = 0;
  for (int i = 0; i < 50; ++i) last = trainer.step(views).loss;
  EXPECT_LT(last, 0.1 * first);
}

TEST(Trainer, RefusesWhatDoesNotFitTheMemoryBeforeTouchingIt) {
  const auto context = context_within(1 << 16);
  const auto model = std::make_shared<Model>(context, build_gpt(odd_gpt()), 1);
  const int64_t before = context->backend().allocated_bytes();
  const Error error = error_of([&] { Trainer(model, {.device = "reference", .batch = 64}, nullptr); });
  EXPECT_EQ(error.code(), Code::out_of_memory);
  EXPECT_TRUE(says(error.message(), {"needs", "memory_limit"}));
  EXPECT_EQ(context->backend().allocated_bytes(), before);
}

TEST(Trainer, ReportsExactlyTheBytesOfItsArenas) {
  const Training training{.recipe = {.batch = 3, .accumulate = 2}};
  const auto trainer = training.trainer(false);
  EXPECT_EQ(trainer->memory_bytes(), trainer->plan().memory.total());
  EXPECT_EQ(trainer->model().context().backend().allocated_bytes(), trainer->plan().memory.total());
  const auto uses = trainer->model().context().memory()->account().uses();
  for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::activations, Arena::stash, Arena::workspace})
    EXPECT_EQ(uses.of[static_cast<size_t>(role_of(arena))].now, trainer->plan().memory.of(arena)) << name_of(arena);
  trainer->evaluate(std::make_shared<Sequences>(3, 7, 17));
  EXPECT_EQ(trainer->memory_bytes(), trainer->model().context().backend().allocated_bytes());
}

// The logits of an untrained model are near 0: log sum e^x is near log V, and so is the loss for any smoothing.
TEST(Trainer, LossTermsAreOfTrainingAndNotOfEvaluations) {
  const Training plain{.recipe = {.warmup = 0}}, terms{.recipe = {.warmup = 0, .label_smoothing = 0.5, .z_loss = 0.25}};
  const auto a = plain.trainer(), b = terms.trainer();
  const auto rows = std::make_shared<Sequences>(5, 7, 17);
  EXPECT_EQ(a->evaluate(rows).loss, b->evaluate(rows).loss);
  const double log_classes = std::log(17.0);
  EXPECT_NEAR(a->step().loss, log_classes, 0.05);
  EXPECT_NEAR(b->step().loss, log_classes + 0.25 * log_classes * log_classes, 0.05);
  for (int step = 0; step < 3; ++step) a->step(), b->step();
  EXPECT_NE(a->evaluate(rows).loss, b->evaluate(rows).loss);
}

TEST(Trainer, WarnsOfRanksWithoutAMicroBatch) {
  std::vector<std::string> warnings;
  Training training{.recipe = {.micro_batches = 3, .ranks = 3}, .warnings = &warnings};
  training.trainer();
  EXPECT_TRUE(warnings.empty());
  training.recipe.micro_batches = 2;
  training.trainer();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(says(warnings[0], {"2 micro-batches on 3 ranks, so 1 computes none", "fewer ranks"}));
}

}  // namespace
}  // namespace st

#include "team/find_nan.h"

#include <limits>
#include <optional>

#include "ir/build.h"
#include "models/mlp.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

constexpr auto kInf = std::numeric_limits<float>::infinity();
constexpr const char* kDevices[] = {"reference", "cpu"};

template <class Call>
Error not_finite(const Call& call) {
  const Error error = error_of(call);
  EXPECT_EQ(error.code(), Code::not_finite) << error.message();
  return error;
}

float* parameter(Trainer& trainer, const char* name) {
  return pointer_to<float>(trainer.model().data(trainer.model().parameter_named(name)));
}

TEST(FindNan, NamesTheOpThatReadAWeightThatIsNotFinite) {
  for (const char* device : kDevices) {
    Training training{.device = device, .recipe = {.batch = 3, .accumulate = 2}};
    training.recipe.find_nan = true;
    const auto trainer = training.trainer(), plain = training.trainer();
    for (const auto* t : {&trainer, &plain}) (*t)->step();
    float* gamma = parameter(*trainer, "final_norm.gamma");
    const float kept = gamma[5];
    gamma[5] = kInf;
    const std::string before = trainer->state_digest();
    const Error error = not_finite([&] { trainer->step(); });
    EXPECT_EQ(error.place.op, "layer_norm");
    EXPECT_EQ(error.place.tensor, "final_norm.gamma");
    EXPECT_EQ(error.place.step, 2);
    EXPECT_TRUE(says(error.message(),
                     {"step 2: ", "layer_norm in head (forward, micro-batch 0): ", "final_norm.gamma was not finite before: inf at [5]"}));
    EXPECT_EQ(trainer->state_digest(), before) << "the step was undone";
    gamma[5] = kept;
    for (const auto* t : {&trainer, &plain}) (*t)->step();
    EXPECT_EQ(trainer->state_digest(), plain->state_digest()) << "and its rows come again";
  }
}

TEST(FindNan, NamesTheMicroBatch) {
  for (const char* device : kDevices) {
    const auto context = Training{.device = device}.context();
    Recipe recipe = {.device = device, .batch = 2, .accumulate = 2};
    recipe.find_nan = true;
    const MlpOptions options = {.inputs = 2, .hidden = {3}, .outputs = 1, .activation = "tanh", .loss = "mse"};
    Trainer trainer(std::make_shared<Model>(context, build_mlp(options), 1), recipe, nullptr);
    std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y = {1, 2, 3, kInf};
    const std::vector<HostView> batch = {plain_view("x", DType::f32, {4, 2}, x.data()), plain_view("y", DType::f32, {4, 1}, y.data())};
    const std::string before = trainer.state_digest();
    const Error whole = not_finite([&] { trainer.step(batch); });
    EXPECT_TRUE(says(whole, "(forward, micro-batch 1): "));
    const Error sliced = not_finite([&] {
      while (!trainer.advance(batch, 0)) {
      }
    });
    EXPECT_EQ(sliced.message(), whole.message());
    EXPECT_EQ(trainer.state_digest(), before);
    y[3] = 4;
    EXPECT_FALSE(trainer.step(batch).skipped);
  }
}

// The graph makes and adds a mask of -inf; the value to find comes after it.
TEST(FindNan, PassesOverInfinitiesThatAreMeant) {
  for (const char* device : kDevices) {
    Program program;
    program.sections.emplace_back();
    Builder b(program, 0);
    const Value x = b.input("x", DType::f32, {kBatch, 4}), y = b.input("y", DType::f32, {kBatch, 4});
    const Value weight = b.parameter("w", {4, 4}, {.kind = Init::ones, .values = {}});
    const Value mask = b(Op::concat, {b.fill({3}, 0), b.fill({1}, -std::numeric_limits<double>::infinity())}, {{"axis", 0}});
    const Value share = b(Op::softmax, {b.add(b.matmul(x, weight), mask)});
    const auto loss = b.append(Op::mse, {b.add(share, b(Op::log, {x})), y});
    program.loss_sum = loss[0];
    program.loss_count = loss[1];
    Recipe recipe = {.device = device, .batch = 2};
    recipe.find_nan = true;
    Trainer trainer(std::make_shared<Model>(Training{.device = device}.context(), program, 1), recipe, nullptr);
    std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8}, targets(8);
    const std::vector<HostView> batch = {plain_view("x", DType::f32, {2, 4}, rows.data()),
                                         plain_view("y", DType::f32, {2, 4}, targets.data())};
    EXPECT_FALSE(trainer.step(batch).skipped);
    rows[6] = -7;
    const Error error = not_finite([&] { trainer.step(batch); });
    EXPECT_EQ(error.place.op, "log") << error.message();
    EXPECT_TRUE(says(error, "NaN at [1, 2]"));
  }
}

// find_nan may ask for the rows again after the update, so they are checked there too.
TEST(FindNan, AWrongCallInTheMiddleOfAnUpdateUndoesNothing) {
  Training training{.device = "cpu", .recipe = {.batch = 3}};
  training.recipe.find_nan = true;
  std::vector<int32_t> tokens(static_cast<size_t>(4 * training.options.context), 1);
  const auto rows = [&](int64_t count) {
    return std::vector<HostView>{plain_view("tokens", DType::i32, {count, training.options.context}, tokens.data()),
                                 plain_view("targets", DType::i32, {count, training.options.context}, tokens.data())};
  };
  const auto whole = training.trainer(), sliced = training.trainer();
  const StepReport report = whole->step(rows(3));
  const auto is_updating = [&] {
    try {
      const WeightsGate::TryReader reader(sliced->model().gate());
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  while (!is_updating()) ASSERT_FALSE(sliced->advance(rows(3), 0));
  EXPECT_THROW(sliced->advance(0.0), Error) << "the data's rows";
  EXPECT_THROW(sliced->advance(rows(2), 0), Error) << "fewer";
  EXPECT_TRUE(is_updating());
  std::optional<StepReport> done;
  while (!done) done = sliced->advance(rows(3), 0);
  EXPECT_EQ(done->loss, report.loss);
  EXPECT_EQ(sliced->state_digest(), whole->state_digest());
}

/// Exceeds fp16's 65504 only in backward: all results of forward are checked and finite.
TEST(FindNan, NamesTheFirstOverflowOfAStaticLossScaleInBackward) {
  Training training{.device = "cpu", .recipe = {.precision = "fp16", .batch = 3}};
  training.recipe.loss_scale = 1e9;
  training.recipe.find_nan = true;
  const auto trainer = training.trainer();
  const Error error = not_finite([&] { trainer->step(); });
  EXPECT_TRUE(says(error.message(), {"(backward, micro-batch 0): ", "f16"}));
  EXPECT_FALSE(error.place.op.empty());
}

TEST(FindNan, LeavesToADynamicLossScaleWhatItCanAnswer) {
  Training training{.device = "cpu", .recipe = {.precision = "fp16", .batch = 3}};
  training.recipe.loss_scale_initial = 1e9;
  training.recipe.find_nan = true;
  const auto falling = training.trainer();
  const StepReport skipped = falling->step();
  EXPECT_TRUE(skipped.skipped);
  EXPECT_LT(falling->loss_scale(), skipped.loss_scale);
  training.recipe.loss_scale_minimum = 1e9;  // it cannot fall further
  EXPECT_TRUE(says(not_finite([&] { training.trainer()->step(); }), "backward"));
  parameter(*falling, "final_norm.gamma")[0] = kInf;  // no scale makes this loss finite
  EXPECT_EQ(not_finite([&] { falling->step(); }).place.tensor, "final_norm.gamma");
}

TEST(FindNan, ChangesNoBitOfARunThatIsFinite) {
  Training training{.device = "cpu", .recipe = {.precision = "bf16", .batch = 3, .accumulate = 2}};
  const auto plain = training.trainer();
  training.recipe.find_nan = true;
  const auto checked = training.trainer();
  EXPECT_EQ(losses_of(*checked, 3), losses_of(*plain, 3));
  EXPECT_EQ(checked->state_digest(), plain->state_digest());
}

}  // namespace
}  // namespace st

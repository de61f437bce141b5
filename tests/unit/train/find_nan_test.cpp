#include "train/find_nan.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "models/mlp.h"
#include "training.h"

namespace st {
namespace {

constexpr auto kInf = std::numeric_limits<float>::infinity();
constexpr const char* kDevices[] = {"reference", "cpu"};

template <class Call>
Error not_finite(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_finite) << error.message();
    return error;
  }
  ADD_FAILURE() << "nothing was found";
  return {Code::ok, ""};
}

bool says(const Error& error, std::string_view part) { return error.message().find(part) != std::string::npos; }

float* parameter(Trainer& trainer, const char* name) {
  return reinterpret_cast<float*>(trainer.model().data(trainer.model().parameter_named(name)));
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
    EXPECT_TRUE(says(error, "step 2: ")) << error.message();
    EXPECT_TRUE(says(error, "layer_norm in head (forward, micro-batch 0): ")) << error.message();
    EXPECT_TRUE(says(error, "final_norm.gamma was not finite before: inf at [5]")) << error.message();
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
    EXPECT_TRUE(says(whole, "(forward, micro-batch 1): ")) << whole.message();
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

/// Past fp16's 65504 in backward alone: all that forward made was looked at and passed.
TEST(FindNan, NamesTheFirstOverflowOfAStaticLossScaleInBackward) {
  Training training{.device = "cpu", .recipe = {.precision = "fp16", .batch = 3}};
  training.recipe.loss_scale = 1e9;
  training.recipe.find_nan = true;
  const auto trainer = training.trainer();
  const Error error = not_finite([&] { trainer->step(); });
  EXPECT_TRUE(says(error, "(backward, micro-batch 0): ")) << error.message();
  EXPECT_TRUE(says(error, "f16")) << error.message();
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
  training.recipe.loss_scale_minimum = 1e9;  // it can fall no further
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

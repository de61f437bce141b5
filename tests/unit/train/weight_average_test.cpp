#include "train/weight_average.h"

#include <cmath>
#include <map>

#include "plan/plan.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

constexpr double kDecay = 0.75;

using Values = std::map<std::string, std::vector<float>>;

Values weights_of(const Model& model) {
  Values all;
  for (const SlotId id : model.parameters()) all[model.slot(id).name] = st::weights_of(model, model.slot(id).name);
  return all;
}

Values averages_of(Trainer& trainer) {
  Values all;
  for (const SlotId id : trainer.model().parameters()) {
    const Slot& slot = trainer.model().slot(id);
    std::vector<float>& values = all[slot.name];
    values.resize(static_cast<size_t>(slot.type.shape.elements()));
    trainer.average(slot.name, plain_view(slot.name, DType::f32, slot.type.shape, values.data()));
  }
  return all;
}

Training training(const char* device = "cpu", int threads = 1) {
  Training made{.device = device, .threads = threads, .recipe = {.batch = 3, .lr = 1e-2}};
  made.recipe.warmup = 0;
  made.recipe.ema_decay = kDecay;
  return made;
}

std::shared_ptr<const Dataset> validation() { return std::make_shared<Sequences>(5, 7, 17); }

// Against the formula in double. Each of the ten f32 updates rounds three times, by 2^-24 of values near the weights; older errors decay.
TEST(WeightAverage, IsThatOfTheWeightsAfterEachStep) {
  for (const char* device : {"reference", "cpu"}) {
    const auto trainer = training(device).trainer();
    std::map<std::string, std::vector<double>> expected;
    EXPECT_EQ(averages_of(*trainer), weights_of(trainer->model())) << "before the first update";
    for (int step = 1; step <= 10; ++step) {
      ASSERT_FALSE(trainer->step().skipped);
      for (const auto& [name, weights] : weights_of(trainer->model())) {
        std::vector<double>& average = expected[name];
        if (step == 1) average.assign(weights.begin(), weights.end());
        for (size_t i = 0; i < weights.size(); ++i) average[i] = kDecay * average[i] + (1 - kDecay) * static_cast<double>(weights[i]);
      }
      const Values averages = averages_of(*trainer);
      if (step == 1) {
        EXPECT_EQ(averages, weights_of(trainer->model())) << "the first update copies";
      } else {
        EXPECT_NE(averages, weights_of(trainer->model()));
      }
      ASSERT_EQ(averages.size(), expected.size());
      for (const auto& [name, average] : averages)
        for (size_t i = 0; i < average.size(); ++i)
          ASSERT_NEAR(static_cast<double>(average[i]), expected[name][i], 5e-7 * (std::abs(expected[name][i]) + 0.01))
              << device << ", step " << step << ", " << name << " " << i;
    }
  }
}

TEST(WeightAverage, ASkippedStepDoesNotChangeIt) {
  const auto trainer = training().trainer();
  losses_of(*trainer, 3);
  const Values before = averages_of(*trainer);
  ASSERT_TRUE(skipped_step(*trainer).skipped);
  EXPECT_EQ(averages_of(*trainer), before);
  ASSERT_FALSE(trainer->step().skipped);
  EXPECT_NE(averages_of(*trainer), before);
}

TEST(WeightAverage, AFirstStepThatIsSkippedLeavesTheCopyToTheNextOne) {
  const auto trainer = training().trainer();
  ASSERT_TRUE(skipped_step(*trainer).skipped);
  EXPECT_EQ(averages_of(*trainer), weights_of(trainer->model()));
  ASSERT_FALSE(trainer->step().skipped);
  EXPECT_EQ(averages_of(*trainer), weights_of(trainer->model()));
}

TEST(WeightAverage, DecayZeroIsThePlanAsItWasAndAnyOtherChangesNoWeight) {
  Training with = training(), without = training();
  without.recipe.ema_decay = 0;
  const auto plain = without.trainer(), averaged = with.trainer();
  EXPECT_EQ(explain(plain->plan()).find("average"), std::string::npos);
  EXPECT_GT(averaged->memory_bytes(), plain->memory_bytes()) << "its arena is counted";
  EXPECT_EQ(losses_of(*plain, 5), losses_of(*averaged, 5));
  EXPECT_EQ(weights_of(plain->model()), weights_of(averaged->model()));
  for (const Slot& slot : plain->plan().program.slots) EXPECT_FALSE(slot.name.starts_with("average.")) << slot.name;
  EXPECT_NE(plain->state_digest(), averaged->state_digest()) << "the average is state";
}

TEST(WeightAverage, HasTheSameBitsForOneToFourThreadsAndInSlices) {
  const auto one = training().trainer();
  losses_of(*one, 4);
  for (const int threads : {2, 3, 4}) {
    const auto many = training("cpu", threads).trainer();
    losses_of(*many, 4);
    EXPECT_EQ(averages_of(*many), averages_of(*one)) << threads << " threads";
  }
  const auto sliced = training().trainer();
  for (int step = 0; step < 4; ++step)
    while (!sliced->advance(0)) continue;
  EXPECT_EQ(averages_of(*sliced), averages_of(*one));
  EXPECT_EQ(sliced->state_digest(), one->state_digest());
}

TEST(WeightAverage, OfWhatIsNotTrainedIsTheParameterItself) {
  Training frozen = training();
  frozen.recipe.set("groups", R"([{"pattern": "final_norm.*", "frozen": true}])");
  const auto trainer = frozen.trainer();
  losses_of(*trainer, 3);
  EXPECT_LT(trainer->plan().program.slot_named("average.final_norm.gamma"), 0) << "it takes no memory";
  EXPECT_EQ(averages_of(*trainer)["final_norm.gamma"], weights_of(trainer->model())["final_norm.gamma"]);
}

TEST(WeightAverage, EvaluatesAsAModelThatHasItAndLeavesTheWeightsAlone) {
  for (const char* device : {"reference", "cpu"}) {
    const auto trainer = training(device).trainer();
    EXPECT_EQ(trainer->evaluate_average(validation()).loss, trainer->evaluate(validation()).loss) << "before the first update";
    losses_of(*trainer, 6);
    const std::string before = trainer->state_digest();
    const double ordinary = trainer->evaluate(validation()).loss, averaged = trainer->evaluate_average(validation()).loss;
    EXPECT_NE(averaged, ordinary);
    EXPECT_EQ(trainer->evaluate(validation()).loss, ordinary) << "the plans are shared: each run binds its own weights";
    EXPECT_EQ(trainer->state_digest(), before);

    const Values averages = averages_of(*trainer);
    trainer->use_average();
    EXPECT_EQ(weights_of(trainer->model()), averages);
    EXPECT_EQ(averages_of(*trainer), averages);
    EXPECT_EQ(trainer->evaluate(validation()).loss, averaged);
    EXPECT_FALSE(trainer->step().skipped) << "training goes on from there";

    Training plain = training(device);
    plain.recipe.ema_decay = 0;
    const auto other = plain.trainer();
    losses_of(*other, 6);
    EXPECT_EQ(other->evaluate(validation()).loss, ordinary) << "weights that are bound give the bits of those in place";
  }
}

TEST(WeightAverage, AnEvaluationOfItThatIsCancelledLeavesEveryBit) {
  const auto trainer = training().trainer();
  losses_of(*trainer, 3);
  const std::string before = trainer->state_digest();
  const double averaged = trainer->evaluate_average(validation()).loss, ordinary = trainer->evaluate(validation()).loss;
  trainer->cancel();
  EXPECT_EQ(error_of([&] { trainer->evaluate_average(validation()); }).code(), Code::cancelled);
  EXPECT_EQ(trainer->state_digest(), before);
  EXPECT_EQ(trainer->evaluate(validation()).loss, ordinary);
  EXPECT_EQ(trainer->evaluate_average(validation()).loss, averaged);
}

TEST(WeightAverage, WithoutADecaySaysHowToTurnItOn) {
  Training plain = training();
  plain.recipe.ema_decay = 0;
  const auto trainer = plain.trainer();
  trainer->step();
  float room = 0;
  for (const Error& error : {error_of([&] { trainer->average("final_norm.gamma", plain_view("x", DType::f32, {1}, &room)); }),
                             error_of([&] { trainer->use_average(); }), error_of([&] { trainer->evaluate_average(validation()); })}) {
    EXPECT_EQ(error.code(), Code::wrong_state);
    EXPECT_TRUE(says(error, "ema_decay"));
  }
}

}  // namespace
}  // namespace st

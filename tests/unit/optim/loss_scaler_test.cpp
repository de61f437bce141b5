// The loss scaler against recorded runs of torch.amp.GradScaler (fixtures/make_grad_scaler_fixture.py describes the file).
#include "optim/loss_scaler.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "refusal.h"

namespace st {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kSmallest = 0x1p-126;  // far below the fixture's scales, since GradScaler has no minimum

const SafetensorsFile& fixture() {
  static const SafetensorsFile file(ST_FIXTURES "/grad_scaler.safetensors");
  return file;
}

template <class T>
std::vector<T> values(const std::string& name) {
  const auto bytes = fixture().bytes(fixture().record(name));
  std::vector<T> made(bytes.size() / sizeof(T));
  std::memcpy(made.data(), bytes.data(), bytes.size());
  return made;
}

LossScale options_of(const std::string& arguments) {
  LossScale options{.minimum = kSmallest};
  const Json json = parse_json(arguments, "fixture");
  const auto take = [&](const char* key, double& to) {
    if (const Json* found = json.find(key)) to = found->number();
  };
  take("init_scale", options.scale);
  take("growth_factor", options.growth_factor);
  take("backoff_factor", options.backoff_factor);
  if (const Json* interval = json.find("growth_interval")) options.growth_interval = interval->whole();
  return options;
}

TEST(LossScaler, FollowsGradScalerToTheBit) {
  int cases = 0;
  for (const auto& [key, arguments] : fixture().header().metadata) {
    if (!key.starts_with("case:")) continue;
    const std::string name = key.substr(5);
    LossScaler scaler(options_of(arguments));
    const auto found = values<uint8_t>(name + "/found_inf");
    const auto scales = values<float>(name + "/scale");
    const auto good_steps = values<int32_t>(name + "/good_steps");
    ASSERT_EQ(found.size(), scales.size());
    for (size_t i = 0; i < found.size(); ++i) {
      scaler.update(found[i] != 0);
      ASSERT_EQ(static_cast<float>(scaler.scale()), scales[i]) << name << " step " << i;
      ASSERT_EQ(parse_json(scaler.state(), "state").find("good_steps")->whole(), good_steps[i]) << name << " step " << i;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 4);
}

TEST(LossScaler, HasGradScalersDefaults) {
  const LossScale defaults;
  EXPECT_TRUE(defaults.enabled && defaults.dynamic);
  EXPECT_EQ(defaults.scale, 65536);
  EXPECT_EQ(defaults.growth_factor, 2);
  EXPECT_EQ(defaults.backoff_factor, 0.5);
  EXPECT_EQ(defaults.growth_interval, 2000);
  EXPECT_EQ(defaults.minimum, 1);
}

// traps.md: without a minimum, an inf every 7th step and an interval of 2000 end at 2^-41 and below.
TEST(LossScaler, TheMinimumStopsTheSlide) {
  LossScaler scaler(LossScale{});
  for (int step = 1; step <= 700; ++step) {
    scaler.update(step % 7 == 0);
    ASSERT_GE(scaler.scale(), 1);
  }
  EXPECT_EQ(scaler.scale(), 1);
  for (int step = 0; step < 2000; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 2) << "it grows again";
}

TEST(LossScaler, AMinimumThatNoBackoffHitsIsReachedAllTheSame) {
  LossScaler scaler({.scale = 64, .backoff_factor = 0.25, .minimum = 3});
  std::vector<double> scales;
  for (int step = 0; step < 4; ++step) scaler.update(true), scales.push_back(scaler.scale());
  EXPECT_EQ(scales, (std::vector<double>{16, 4, 3, 3}));
}

TEST(LossScaler, GrowsNoFurtherThanItsInverseIsANormalNumber) {
  LossScaler scaler({.scale = 0x1p124, .growth_interval = 1});
  std::vector<double> scales;
  for (int step = 0; step < 4; ++step) scaler.update(false), scales.push_back(scaler.scale());
  EXPECT_EQ(scales, (std::vector<double>{0x1p125, 0x1p126, 0x1p126, 0x1p126}));
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 0x1p125);
}

TEST(LossScaler, AStaticScaleStays) {
  LossScaler scaler({.dynamic = false, .scale = 0.25, .growth_interval = 1});  // below the minimum, which applies only to dynamic scales
  for (const bool found : {true, false, false, true}) {
    scaler.update(found);
    EXPECT_EQ(scaler.scale(), 0.25);
  }
}

TEST(LossScaler, SwitchedOffIsOne) {
  LossScaler scaler({.enabled = false, .growth_interval = 1});
  for (const bool found : {true, false, false}) {
    EXPECT_EQ(scaler.scale(), 1);
    scaler.update(found);
  }
}

TEST(LossScaler, GoesOnFromItsStateAsIfNothingHadHappened) {
  const LossScale options{.scale = 3.3, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 3, .minimum = kSmallest};
  const auto found = [](int step) { return step % 11 == 4 || step % 13 == 12; };
  for (int cut = 0; cut < 40; ++cut) {
    LossScaler whole(options), first(options), second(options);
    for (int step = 0; step < 40; ++step) whole.update(found(step));
    for (int step = 0; step < cut; ++step) first.update(found(step));
    second.restore(first.state());
    for (int step = cut; step < 40; ++step) second.update(found(step));
    EXPECT_EQ(second.state(), whole.state()) << cut;
  }
}

TEST(LossScaler, RefusesWhatIsNoScaleNamingIt) {
  const auto refused = [](const LossScale& options, std::string_view words) {
    EXPECT_TRUE(refuses({words}, [&] { LossScaler{options}; }));
  };
  refused({.scale = -1}, "the scale is -1");
  refused({.scale = 0}, "the scale is 0");
  refused({.scale = kInf}, "the scale is inf");
  refused({.scale = NAN}, "the scale is nan");
  refused({.scale = 1e38}, "the scale is 1e+38");   // its inverse is denormal in fp32
  refused({.scale = 1e-39}, "the scale is 1e-39");  // is denormal itself
  refused({.growth_factor = 1}, "growth factor is 1");
  refused({.growth_factor = NAN}, "growth factor is nan");
  refused({.growth_factor = kInf}, "growth factor is inf");
  refused({.backoff_factor = 0}, "backoff factor is 0");
  refused({.backoff_factor = 1}, "backoff factor is 1");
  refused({.backoff_factor = NAN}, "backoff factor is nan");
  refused({.growth_interval = 0}, "growth interval must be at least 1 step, got 0");
  refused({.hysteresis = 0}, "hysteresis must be at least 1 overflow, got 0");
  refused({.minimum = 0}, "minimum is 0");
  refused({.minimum = kInf}, "minimum is inf");
  refused({.minimum = NAN}, "minimum is nan");
  refused({.scale = 0.5}, "below the minimum 1");
}

// Expected values follow DeepSpeed's runtime/fp16/loss_scaler.py by hand: i is a step that overflows, . one that does not.
TEST(LossScaler, AHysteresisBearsTheFirstOverflowsAsDeepSpeedDoes) {
  const auto scales_of = [](LossScale options, const char* steps) {
    options.scale = 16;
    options.growth_interval = 3;
    LossScaler scaler(options);
    std::vector<double> scales;
    for (const char* step = steps; *step != '\0'; ++step) {
      LossScaler resumed(options);
      resumed.restore(scaler.state());
      for (LossScaler* one : {&scaler, &resumed}) one->update(*step == 'i');
      EXPECT_EQ(resumed.state(), scaler.state());
      scales.push_back(scaler.scale());
    }
    return scales;
  };
  using Scales = std::vector<double>;
  EXPECT_EQ(scales_of({.hysteresis = 2}, "i.i.i...i"), (Scales{16, 16, 8, 8, 4, 4, 4, 8, 8})) << "borne anew after growth";
  EXPECT_EQ(scales_of({.hysteresis = 2, .consecutive_hysteresis = true}, "i.i.ii"), (Scales{16, 16, 16, 16, 16, 8}));
  EXPECT_EQ(scales_of({.hysteresis = 1}, "i..i"), (Scales{8, 8, 8, 4})) << "none";
  EXPECT_EQ(scales_of({.hysteresis = 2}, "..i...").back(), 32) << "an overflow that is borne begins the row anew";
  EXPECT_EQ(scales_of({.hysteresis = 2}, "..i..").back(), 16);
}

TEST(LossScaler, RefusesAStateThatIsNotOfItsHysteresis) {
  LossScaler scaler({.growth_interval = 5, .hysteresis = 2});
  for (const char* state : {R"({"scale":1.0,"good_steps":0})", R"({"scale":1.0,"good_steps":0,"overflows_left":3})",
                            R"({"scale":1.0,"good_steps":0,"overflows_left":0})", R"({"scale":1.0,"good_steps":0,"left":1})"})
    EXPECT_THROW(scaler.restore(state), Error) << state;
  EXPECT_NO_THROW(scaler.restore(R"({"scale":1.0,"good_steps":0,"overflows_left":1})"));
}

TEST(LossScaler, RefusesAStateThatIsNoneAndKeepsItsOwn) {
  LossScaler scaler({.growth_interval = 5});
  scaler.update(true);
  scaler.update(false);
  const std::string mine = scaler.state();
  for (const char* state : {"", "[]", "12", "{}", R"({"scale":1.0})", R"({"scale":0.0,"good_steps":0})", R"({"scale":-2.0,"good_steps":0})",
                            R"({"scale":1e39,"good_steps":0})", R"({"scale":0.1,"good_steps":0})", R"({"scale":"1","good_steps":0})",
                            R"({"scale":1.0,"good_steps":5})", R"({"scale":1.0,"good_steps":-1})", R"({"scale":1.0,"good_steps":0.5})",
                            R"({"scale":1.0,"good_steps":0,"more":1})"}) {
    EXPECT_TRUE(refuses({}, [&] { scaler.restore(state); })) << state;
    EXPECT_EQ(scaler.state(), mine) << state;
  }
}

}  // namespace
}  // namespace st

// A stand-alone optimizer on a host's arrays against the trainer's step with the same gradients: the same bits.
#include "parts/host_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/kernel_side.h"
#include "base/float16.h"
#include "base/float_mode.h"
#include "training.h"

namespace st {
namespace {

/// 4 rows of 8 tokens, a power of two, so that the trainer's gradients are exactly those of the mean loss. Wide enough for adamw-8bit to
/// store some moments in 8 bits.
const GptOptions kGpt = {.layers = 1, .width = 66, .heads = 3, .context = 8, .vocabulary = 70};

std::shared_ptr<Context> context_on(const std::string& device) {
  ContextOptions options;
  options.device = device;
  options.threads = 3;
  return std::make_shared<Context>(std::move(options));
}

/// A host's own copy of the trainer's parameters.
struct HostCopy {
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  std::vector<std::vector<float>> parameters, gradients;

  explicit HostCopy(const Trainer& trainer) {
    const Program& program = trainer.plan().program;
    for (size_t s = 0; s < program.slots.size(); ++s) {
      const Slot& slot = program.slots[s];
      if (slot.role != Role::parameter) continue;
      names.push_back(slot.name);
      shapes.push_back(slot.type.shape);
      parameters.push_back(values_of(trainer, slot.name));
      gradients.emplace_back(parameters.back().size());
    }
  }
  static std::vector<float> values_of(const Trainer& trainer, const std::string& name) {
    const Operand& slot = trainer.executor().slot(trainer.plan().program.slot_named(name));
    return {as<float>(slot), as<float>(slot) + slot.elements()};
  }
  void take_gradients(const Trainer& trainer) {
    for (size_t i = 0; i < names.size(); ++i)
      if (trainer.plan().program.slot_named("gradient." + names[i]) >= 0)
        trainer.gradient(names[i], plain_view(names[i], DType::f32, shapes[i], gradients[i].data()));
  }
  std::vector<HostView> views(const std::vector<std::vector<float>>& of) const {
    std::vector<HostView> views;
    for (size_t i = 0; i < names.size(); ++i) views.push_back(plain_view(names[i], DType::f32, shapes[i], of[i].data()));
    return views;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Under muon some parameters have AdamW's state: the host names those that are not weights of products.
std::string with_embeddings_apart(const std::string& optimizer) {
  return optimizer == "muon" ? R"(,"groups":[{"pattern":"*embedding*","optimizer":"adamw"}])" : "";
}

TEST(HostOptimizer, HasTheBitsOfTheTrainersStepsByEveryOptimizer) {
  const FloatMode mode;
  for (const std::string device : {"cpu", "reference"})
    for (const std::string optimizer : {"adamw", "adam", "adamw-8bit", "sgd", "adafactor", "lion", "rmsprop", "adagrad", "muon"}) {
      const std::string json = R"({"optimizer":")" + optimizer + R"(","lr":0.01,"momentum":0.9,"clip":0.5,"clip_value":0.03)";
      Recipe recipe{.batch = 4};
      recipe.merge(json + R"(,"warmup":0})");
      const auto trainer = Training{.device = device, .threads = 2, .options = kGpt, .recipe = recipe}.trainer();
      HostCopy host(*trainer);
      HostOptimizer own(context_on(device), json + with_embeddings_apart(optimizer) + "}", host.views(host.parameters));
      for (int step = 1; step <= 3; ++step) {
        const StepReport wanted = trainer->step();
        host.take_gradients(*trainer);
        const auto found = own.step(host.views(host.gradients));
        EXPECT_FALSE(found.skipped);
        EXPECT_EQ(found.step, step);
        EXPECT_EQ(found.norm, wanted.grad_norm) << optimizer;
        EXPECT_EQ(found.lr, wanted.lr);
        for (size_t i = 0; i < host.names.size(); ++i)
          ASSERT_TRUE(same_bits(host.parameters[i], HostCopy::values_of(*trainer, host.names[i])))
              << optimizer << " on " << device << ", step " << step << ": " << host.names[i];
      }
    }
}

TEST(HostOptimizer, GroupsScaleFreezeAndClipAsTheTrainers) {
  const FloatMode mode;
  const std::string json =
      R"({"lr":0.01,"clip":0.5,"groups":[{"pattern":"*.bias","weight_decay_scale":0,"lr_scale":2},{"pattern":"block.0.mlp.*","clip":0.01},)"
      R"({"pattern":"token_embedding*","frozen":true},{"pattern":"*.gamma","optimizer":"sgd"}])";
  Recipe recipe{.batch = 4};
  recipe.merge(json + R"(,"warmup":0})");
  const auto trainer = Training{.device = "cpu", .threads = 2, .options = kGpt, .recipe = recipe}.trainer();
  HostCopy host(*trainer);
  const std::vector<std::vector<float>> before = host.parameters;
  HostOptimizer own(context_on("cpu"), json + "}", host.views(host.parameters));
  int frozen = 0;
  for (int step = 0; step < 2; ++step) {
    trainer->step();
    host.take_gradients(*trainer);
    own.step(host.views(host.gradients));
    for (size_t i = 0; i < host.names.size(); ++i)
      EXPECT_TRUE(same_bits(host.parameters[i], HostCopy::values_of(*trainer, host.names[i]))) << host.names[i];
  }
  for (size_t i = 0; i < host.names.size(); ++i) {
    EXPECT_EQ(own.is_trained(i), !same_bits(host.parameters[i], before[i])) << host.names[i];
    frozen += own.is_trained(i) ? 0 : 1;
  }
  EXPECT_EQ(frozen, 1);
}

TEST(HostOptimizer, HasTheSameBitsForAnyThreads) {
  const FloatMode mode;
  for (const std::string optimizer : {"adamw", "adamw-8bit", "adafactor", "muon"}) {
    std::vector<std::vector<float>> first;
    for (const int threads : {1, 2, 3, 4}) {
      std::vector<float> weight(300 * 301), gradient(weight.size());
      for (size_t i = 0; i < weight.size(); ++i)
        weight[i] = static_cast<float>(i % 17) - 8, gradient[i] = static_cast<float>(i % 23) - 11.5F;
      HostOptimizer own(context_on("cpu"), text(R"({"optimizer":")", optimizer, R"(","clip":1,"threads":)", threads, "}"),
                        std::vector{plain_view("w", DType::f32, {300, 301}, weight.data())});
      for (int i = 0; i < 2; ++i) own.step(std::vector{plain_view("", DType::f32, {300, 301}, gradient.data())});
      first.push_back(weight);
      EXPECT_TRUE(same_bits(weight, first.front())) << optimizer << ", " << threads << " threads";
    }
  }
}

TEST(HostOptimizer, AStepWhoseGradientIsNotFiniteChangesNothing) {
  const FloatMode mode;
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const size_t at : {size_t{0}, size_t{6}}) {
      std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7}, g(7, 0.5F);
      const std::vector<float> first_a = {1, 2, 3, 4}, first_b = {5, 6, 7};
      HostOptimizer own(context_on("cpu"), R"({"clip":1})",
                        std::vector{plain_view("a", DType::f32, {4}, a.data()), plain_view("b", DType::f32, {3}, b.data())});
      g[at] = bad;
      const std::vector<HostView> gradients = {plain_view("", DType::f32, {4}, g.data()), plain_view("", DType::f32, {3}, g.data() + 4)};
      const auto report = own.step(gradients);
      EXPECT_TRUE(report.skipped);
      EXPECT_EQ(report.step, 0);
      EXPECT_FALSE(std::isfinite(report.norm));
      EXPECT_EQ(a, first_a);
      EXPECT_EQ(b, first_b);
      for (const HostView& state : own.state())
        for (int64_t i = 0; i < state.bytes(); ++i) EXPECT_EQ(static_cast<const char*>(state.data)[i], 0) << state.name;
      g[at] = 0.5F;
      EXPECT_EQ(own.step(gradients).step, 1);
      EXPECT_NE(a, first_a);
    }
}

// 16-bit gradients are widened exactly, so a step uses their exact values; moments continue when the gradients' types change.
TEST(HostOptimizer, GradientsMayBeOf16BitsAndChangeTheirType) {
  const FloatMode mode;
  const std::vector<float> wide = {0.5F, -1.25F, 3};
  const std::vector<uint16_t> bf16 = {0x3F00, 0xBFA0, 0x4040}, f16 = {0x3800, 0xBD00, 0x4200};
  const auto after = [&](const std::vector<HostView>& gradients) {
    std::vector<float> weight = {1, 2, 3};
    HostOptimizer own(context_on("cpu"), "", std::vector{plain_view("w", DType::f32, {3}, weight.data())});
    for (const HostView& gradient : gradients) own.step(std::vector{gradient});
    return weight;
  };
  const HostView as_f32 = plain_view("", DType::f32, {3}, wide.data()), as_bf16 = plain_view("", DType::bf16, {3}, bf16.data()),
                 as_f16 = plain_view("", DType::f16, {3}, f16.data());
  const auto wanted = after({as_f32, as_f32, as_f32});
  EXPECT_EQ(after({as_bf16, as_f16, as_f32}), wanted);
  EXPECT_EQ(after({as_f16, as_f16, as_bf16}), wanted);
}

std::vector<uint16_t> rounded(const std::vector<float>& values, DType to) {
  std::vector<uint16_t> made(values.size());
  for (size_t i = 0; i < made.size(); ++i) made[i] = to == DType::bf16 ? bf16_of(values[i]) : f16_of(values[i]);
  return made;
}

// The masters have the same bits as without copies. The copies are their rounding: before the first step, after each step, and after a
// skipped one.
TEST(HostOptimizer, LeavesCopiesIn16BitsByEveryOptimizer) {
  const FloatMode mode;
  for (const std::string device : {"cpu", "reference"})
    for (const std::string optimizer : {"adamw", "adam", "adamw-8bit", "sgd", "adafactor", "lion", "rmsprop", "adagrad", "muon"})
      for (const DType type : {DType::bf16, DType::f16}) {
        SCOPED_TRACE(text(optimizer, " on ", device, " to ", type));
        const Shape matrix = {130, 67}, vector = {5};
        std::vector<float> w(8710), v(5, 1.001F), frozen(5, 2.003F), g(8710), h(5, 0.3F);
        for (size_t i = 0; i < w.size(); ++i) w[i] = std::sin(static_cast<float>(i)), g[i] = std::cos(3 * static_cast<float>(i));
        std::vector<float> w_alone = w, v_alone = v;
        std::vector<uint16_t> w_copy(w.size()), frozen_copy(5);
        const std::string json = text(R"({"clip":0.5,"optimizer":")", optimizer,
                                      R"(","groups":[{"pattern":"frozen","frozen":true},{"pattern":"v","lr_scale":2}]})");
        const auto make = [&](std::vector<float>& of_w, std::vector<float>& of_v) {
          return std::make_unique<HostOptimizer>(
              context_on(device), json,
              std::vector{plain_view("w", DType::f32, matrix, of_w.data()), plain_view("v", DType::f32, vector, of_v.data()),
                          plain_view("frozen", DType::f32, vector, frozen.data())});
        };
        const auto with = make(w, v), without = make(w_alone, v_alone);
        const std::vector<HostView> gradients = {plain_view("", DType::f32, matrix, g.data()), plain_view("", DType::f32, vector, h.data()),
                                                 HostView{}};
        with->step(gradients);  // copies may be added late: the moments stay
        without->step(gradients);
        with->keep_copies(
            std::vector{plain_view("", type, matrix, w_copy.data()), HostView{}, plain_view("", type, vector, frozen_copy.data())});
        EXPECT_EQ(w_copy, rounded(w, type));
        EXPECT_EQ(frozen_copy, rounded(frozen, type));
        for (int step = 0; step < 4; ++step) {
          g[0] = step == 2 ? std::numeric_limits<float>::infinity() : 1;
          EXPECT_EQ(with->step(gradients).skipped, step == 2);
          without->step(gradients);
          EXPECT_TRUE(same_bits(w, w_alone));
          EXPECT_TRUE(same_bits(v, v_alone));
          EXPECT_EQ(w_copy, rounded(w, type));
        }
        const std::vector<uint16_t> last = w_copy;
        with->keep_copies({});
        with->step(gradients);
        without->step(gradients);
        EXPECT_TRUE(same_bits(w, w_alone));
        EXPECT_EQ(w_copy, last);
      }
}

// torch.optim.AdamW's first step: -lr (sign(g) + decay p), except for epsilon.
TEST(HostOptimizer, UpdatesDoublesToTheirPrecisionAlsoBesideFloats) {
  const FloatMode mode;
  double weight = 2;
  const double gradient = 1e-3;
  HostOptimizer own(context_on("cpu"), R"({"lr":0.1,"weight_decay":0.5,"epsilon":1e-20})",
                    std::vector{plain_view("w", DType::f64, {}, &weight)});
  own.step(std::vector{plain_view("", DType::f64, {}, &gradient)});
  EXPECT_NEAR(weight, 2 * (1 - 0.1 * 0.5) - 0.1, 1e-15);

  float beside = 1;
  const float its_gradient = 2e-3F;
  HostOptimizer both(context_on("cpu"), R"({"lr":0.1})",
                     std::vector{plain_view("w", DType::f64, {}, &weight), plain_view("v", DType::f32, {}, &beside)});
  const auto report = both.step(std::vector{plain_view("", DType::f64, {}, &gradient), plain_view("", DType::f32, {}, &its_gradient)});
  EXPECT_NEAR(report.norm, std::sqrt(5e-6), 1e-10);
  EXPECT_NEAR(beside, 1 - 0.1 - 0.001, 1e-6);
}

}  // namespace
}  // namespace st

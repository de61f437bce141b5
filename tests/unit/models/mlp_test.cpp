#include "models/mlp.h"

#include "ir/verify.h"
#include "refusal.h"

namespace st {
namespace {

std::string refusal_of(const MlpOptions& options) {
  return refusal([&] { check_options(options); });
}

int64_t parameters_in(const Program& program) {
  int64_t count = 0;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::parameter) count += slot.type.shape.elements();
  return count;
}

TEST(Mlp, IsVerifiedWithEveryActivationAndLoss) {
  for (const std::string activation : {"gelu", "relu", "silu", "tanh"}) {
    for (const std::string loss : {"mse", "cross_entropy"}) {
      const MlpOptions options{.inputs = 3, .hidden = {7, 5}, .outputs = 2, .activation = activation, .loss = loss};
      const Program program = build_mlp(options);
      EXPECT_NO_THROW(verify(program, "build_mlp")) << activation << " " << loss;
      const Program bound = bind(program, 4);
      EXPECT_NO_THROW(verify(bound, "bind"));
      EXPECT_EQ(bound.find(Phase::forward)->graph.type(bound.outputs[0].value).shape, (Shape{4, 2}));
      EXPECT_EQ(bound.outputs[0].name, loss == "mse" ? "prediction" : "logits");
      EXPECT_EQ(parameters_in(program), (3 + 1) * 7 + (7 + 1) * 5 + (5 + 1) * 2);
      EXPECT_EQ(parameters_in(program), parameter_count(options));
    }
  }
}

TEST(Mlp, TakesClassesOrValuesAsItsTargets) {
  const auto target = [](const std::string& loss) {
    const Program program = build_mlp({.inputs = 3, .hidden = {}, .outputs = 4, .activation = "relu", .loss = loss});
    return program.slot(program.slot_named("y")).type;
  };
  EXPECT_EQ(target("mse").dtype, DType::f32);
  EXPECT_EQ(target("mse").shape, (Shape{kBatch, 4}));
  EXPECT_EQ(target("cross_entropy").dtype, DType::i32);
  EXPECT_EQ(target("cross_entropy").shape, (Shape{kBatch}));
}

TEST(Mlp, NamesItsLayers) {
  const Program program = build_mlp({.inputs = 3, .hidden = {7}, .outputs = 2, .activation = "tanh", .loss = "mse"});
  const auto slot = [&](const std::string& name) { return program.slots.at(static_cast<size_t>(program.slot_named(name))); };
  EXPECT_EQ(slot("layer.0.weight").type.shape, (Shape{3, 7}));
  EXPECT_EQ(slot("layer.0.weight").init.kind, Init::kaiming);
  EXPECT_DOUBLE_EQ(slot("layer.0.weight").init.scale, 5.0 / 3);
  EXPECT_EQ(slot("layer.0.bias").init.kind, Init::zeros);
  EXPECT_EQ(slot("layer.1.weight").type.shape, (Shape{7, 2}));
  EXPECT_EQ(slot("layer.1.weight").init.kind, Init::xavier);
  EXPECT_EQ(slot("layer.1.bias").type.shape, (Shape{2}));
}

TEST(Mlp, RefusesWhatCannotBeBuiltAndSaysWhy) {
  EXPECT_EQ(refusal_of({.inputs = 0}), "mlp: inputs must be at least 1, got 0");
  EXPECT_EQ(refusal_of({.hidden = {4, -1}}), "mlp: hidden widths must be at least 1, hidden[1] is -1");
  EXPECT_EQ(refusal_of({.activation = "relo"}),
            "mlp: activation \"relo\" is unknown; did you mean relu? There are: gelu, relu, silu, tanh");
  EXPECT_TRUE(says(refusal_of({.loss = "crossentropy"}), {"cross_entropy"}));
  EXPECT_THROW(parameter_count({.inputs = int64_t{1} << 40, .hidden = {int64_t{1} << 40}}), Error);
}

}  // namespace
}  // namespace st

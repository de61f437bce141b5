// Objects of scaletrain.hpp own one handle each: moved, closed, and destroyed in any order.
#include <memory>
#include <type_traits>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, ObjectsMoveAndDoNotCopy) {
  static_assert(!std::is_copy_constructible_v<Model> && !std::is_copy_assignable_v<Trainer>);
  static_assert(std::is_nothrow_move_constructible_v<Context> && std::is_nothrow_move_assignable_v<Data>);
  Recipe first(R"({"lr": 0.5})");
  st_recipe* const raw = first.get();
  Recipe second = std::move(first);
  EXPECT_EQ(second.get(), raw);
  EXPECT_EQ(thrown_status([&] { first.get(); }), Status::invalid_handle);
  EXPECT_EQ(thrown_status([&] { first.json(); }), Status::invalid_handle);
  Recipe third;
  third = std::move(second);
  EXPECT_EQ(live_handles("recipe"), 1) << "what was assigned to was not destroyed";
  EXPECT_EQ(third.value("lr"), "0.5");
}

TEST_F(Hpp, CloseDestroysNowAndOnce) {
  Context context;
  EXPECT_EQ(live_handles("context"), 1);
  context.close();
  EXPECT_EQ(live_handles("context"), 0);
  EXPECT_NO_THROW(context.close());
  EXPECT_EQ(thrown_status([&] { context.memory(); }), Status::invalid_handle);
  EXPECT_EQ(refusal(Status::invalid_handle, [&] { context.cancel(); }),  // only a status: the C ABI has no message for it
            "context: this object is closed; make another one, or close it after its last call");
}

TEST_F(Hpp, ParentsMayGoFirst) {
  Sine sine;
  sine.context.close();
  sine.model.close();
  sine.recipe.close();
  EXPECT_EQ(sine.trainer.step(sine.batch).step, 1);
}

TEST_F(Hpp, AnOwnerThatGoesDuringACallOfAnotherObjectLeavesNoHandle) {
  std::unique_ptr<Model> model;
  int64_t during = 0;
  ContextOptions options = Sine::one_thread();
  options.log = [&](LogLevel, const std::string&, const std::string& text) {
    if (text.find("planned") == std::string::npos) return;
    model.reset();  // the trainer that is being made is in a call of it
    during = live_handles("model");
  };
  const Context context(options);
  model = std::make_unique<Model>(sine_model(context));
  const Trainer trainer(*model, Recipe(R"({"batch": 4})"));
  EXPECT_EQ(during, 1) << "it was destroyed under a call, or the call was not inside";
  EXPECT_EQ(live_handles("model"), 0);
}

TEST_F(Hpp, ErrorsCarryStatusMessageAndFacts) {
  const Context context;
  const Graph graph(context);
  const Value x = graph.input("x", DType::f32, {kBatch, 3});
  const Value w = graph.parameter("w", {4, 5}, Init::zeros, 0);
  try {
    matmul(x, w);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    EXPECT_TRUE(has(error.what(), "[4, 5]")) << error.what();
    EXPECT_EQ(error.info().op, "matmul");
    EXPECT_EQ(error.info().step, -1);
  }
}

TEST_F(Hpp, ATrainerGivesItsTexts) {
  const Sine sine;
  EXPECT_EQ(thrown_status([&] { sine.trainer.step(); }), Status::wrong_state) << "this trainer has no data";
  EXPECT_EQ(sine.trainer.digest().size(), 32U);
  EXPECT_TRUE(has(sine.trainer.plan(), "ranks"));
  EXPECT_FALSE(sine.trainer.explain().empty());
  EXPECT_EQ(sine.trainer.timeline(), R"({"steps":[],"ranks":[]})");
}

TEST_F(Hpp, ParametersAreReadSetAndListed) {
  Sine sine;
  ASSERT_EQ(sine.model.parameter_count(), 4);
  EXPECT_EQ(sine.model.parameters().at(0).name, "first.weight");
  std::vector<float> wanted(16, 0.25F), found(16);
  sine.model.set("first.weight", view(wanted, {1, 16}));
  sine.model.get("first.weight", view(found, {1, 16}));
  EXPECT_EQ(found, wanted);
  const std::vector<float> constant(16);
  EXPECT_EQ(thrown_status([&] { sine.model.get("first.weight", view(constant, {1, 16})); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { sine.model.get("no.such", view(found, {1, 16})); }), Status::not_found);
}

TEST_F(Hpp, ViewsKeepTheirPointersWhenCopiedAndMoved) {
  std::vector<float> x(6);
  Views copy, moved;
  {
    Views first{{"a name too long for the small string", view(x, {2, 3})}};
    copy = first;
    EXPECT_NE(copy.raw()->name, first.raw()->name) << "the copy's own";
    EXPECT_NE(copy.raw()->view.dims, first.raw()->view.dims);
    moved = std::move(first);
  }
  for (const Views* views : {&copy, &moved}) {
    ASSERT_EQ(views->size(), 1);
    EXPECT_STREQ(views->raw()->name, "a name too long for the small string");
    EXPECT_EQ(views->raw()->view.dims[1], 3);
    EXPECT_EQ(views->raw()->view.data, x.data());
    EXPECT_EQ(views->raw()->view.bytes, 24);
  }
  EXPECT_EQ(thrown_status([&] { copy.at("b"); }), Status::not_found);
  EXPECT_EQ(thrown_status([&] { copy[0].view.as<double>(); }), Status::invalid_argument);
}

TEST_F(Hpp, TheLibraryTellsWhatItIs) {
  EXPECT_NO_THROW(require());
  EXPECT_EQ(thrown_status([] { require(99, 0); }), Status::unsupported);
  EXPECT_EQ(version(), "0.1.0");
  EXPECT_TRUE(has(features(), "cpu"));
  EXPECT_TRUE(has(Recipe::keys(), "\"lr\""));
  EXPECT_EQ(thrown_status([] { Recipe(R"({"batc": 1})"); }), Status::invalid_argument);
  Recipe recipe;
  recipe.set("lr", "0.25");
  EXPECT_TRUE(has(recipe.json(), "0.25"));
}

}  // namespace

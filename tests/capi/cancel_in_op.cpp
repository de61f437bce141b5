// A cancel from inside a host's op: the call executes nothing after that op.
#include <algorithm>
#include <functional>

#include "sine_rows.h"

namespace {

using namespace st::test;

/// Four host ops in a row, which count their calls and cancel in one of them.
class CancelInOp : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    auto op = filled(st_op_callbacks_init);
    op.shape = [](void*, int32_t, const st_op_type* in, int32_t, st_op_type* out) {
      out[0] = in[0];
      return st_status{ST_OK};
    };
    op.forward = [](void* user, int32_t, const st_view* in, int32_t, const st_view* out) { return copy(user, in[0], out[0]); };
    op.backward = [](void* user, int32_t, const st_view*, int32_t, const st_view*, const st_view* dy, const st_view* dx) {
      return copy(user, dy[0], dx[0]);
    };
    ASSERT_TRUE(works(st_op_register(context, "same", &op, this)));
    build();
    ASSERT_TRUE(works(st_data_arrays(context, kSineRows, 2, rows.views, nullptr, nullptr, data.out())));
    ASSERT_TRUE(works(st_recipe_create(R"({"batch": 4, "accumulate": 2, "warmup": 0})", recipe.out())));
    ASSERT_TRUE(works(st_trainer_create(model, recipe, data, trainer.out())));
  }
  void build() {
    ASSERT_TRUE(works(st_graph_create(context, graph.out())));
    const int64_t column[] = {ST_BATCH, 1};
    st_value x = 0, y = 0, loss[2] = {0, 0};
    ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, column, &x)));
    ASSERT_TRUE(works(st_graph_input(graph, "y", ST_F32, 2, column, &y)));
    ASSERT_TRUE(works(st_layer_linear(graph, "first", x, R"({"outputs": 1})", &x)));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(works(st_graph_op(graph, "same", 1, &x, nullptr, 1, &x)));
    ASSERT_TRUE(works(st_graph_op(graph, "neg", 1, &x, nullptr, 1, &x)));  // so that an instruction follows the last of them
    ASSERT_TRUE(works(st_graph_output(graph, "prediction", x)));
    const st_value pair[] = {x, y};
    ASSERT_TRUE(works(st_graph_op(graph, "mse", 2, pair, nullptr, 2, loss)));
    ASSERT_TRUE(works(st_graph_loss(graph, loss[0])));
    ASSERT_TRUE(works(st_model_create(graph, 1, model.out())));
  }
  static st_status copy(void* user, const st_view& from, const st_view& to) {
    auto& test = *static_cast<CancelInOp*>(user);
    std::copy_n(static_cast<const float*>(from.data), from.bytes / 4, static_cast<float*>(to.data));
    if (test.calls++ == test.cancel_at) test.cancel();
    return ST_OK;
  }
  void cancel() { EXPECT_EQ(GetParam() ? st_context_cancel(context) : st_trainer_cancel(trainer), ST_OK); }
  std::string digest() { return text_of(st_trainer_digest, trainer); }
  /// Cancels `call` in each of its op calls in turn. `in_all`: the number of op calls without a cancel.
  void expect_last(const std::function<st_status()>& call, int64_t in_all) {
    calls = 0;
    ASSERT_TRUE(works(call()));
    ASSERT_EQ(calls, in_all);
    const std::string before = digest();
    for (cancel_at = 0; cancel_at < in_all; ++cancel_at) {
      calls = 0;
      EXPECT_TRUE(fails(ST_CANCELLED, call(), {"cancelled"})) << "in call " << cancel_at;
      EXPECT_EQ(calls, cancel_at + 1) << "an op ran after the cancel";
      EXPECT_EQ(digest(), before);
    }
    cancel_at = -1;
    EXPECT_TRUE(works(call())) << "the cancel was consumed";
  }

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  HeldRecipe recipe;
  SineRows rows;
  HeldData data;
  HeldTrainer trainer;
  int64_t calls = 0, cancel_at = -1;
};

INSTANTIATE_TEST_SUITE_P(By, CancelInOp, testing::Bool(), [](const auto& made) { return made.param ? "Context" : "Trainer"; });

TEST_P(CancelInOp, EndsAStepAtItsNextInstruction) {
  expect_last([&] { return st_trainer_step(trainer, 0, nullptr, nullptr); }, 16);  // forward and backward in two micro-batches
}

TEST_P(CancelInOp, EndsARunAtItsNextInstruction) {
  int64_t done = 0;
  const auto count = [](void* user, const st_step_report* report) {
    *static_cast<int64_t*>(user) = report->step;
    return st_status{ST_OK};
  };
  expect_last([&] { return st_trainer_run(trainer, done + 1, count, &done); }, 16);
}

TEST_P(CancelInOp, EndsAnAdvanceAtItsNextInstruction) {
  const auto advance = [&] {
    int32_t done = 0;
    return st_trainer_advance(trainer, 0, nullptr, INT64_MAX, &done, nullptr);
  };
  expect_last(advance, 16);
}

TEST_P(CancelInOp, EndsAnEvaluationAtItsNextInstruction) {
  auto evaluation = filled(st_evaluation_init);
  expect_last([&] { return st_trainer_evaluate(trainer, data, &evaluation); }, 12);  // 10 rows by 4
}

TEST_P(CancelInOp, EndsAPredictionAtItsNextInstructionButATrainersIsNotForIt) {
  const auto predictor = hold<HeldPredictor>(st_predictor_create, model, nullptr);
  float made[kSineRows];
  const st_named_view out = {"prediction", {ST_F32, 2, rows.dims, nullptr, made, sizeof made}};
  const auto predict = [&] { return st_predictor_run(predictor, 1, rows.views, 1, &out); };
  if (GetParam()) return expect_last(predict, 4);
  cancel_at = 0;
  EXPECT_TRUE(works(predict()));
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_step(trainer, 0, nullptr, nullptr)));
}

}  // namespace

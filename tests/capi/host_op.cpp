// Host ops: in training they equal the library's ops, and their failures are errors, never crashes.
#include <cfloat>
#include <cmath>

#include "small_run.h"
#include "square_and_mix.h"

namespace {

using namespace st::test;

/// out = (p s) w3 of h = (x w1)^2, g = x w2, p = h g, s = h + g; by the host's ops or the library's.
st_value two_layers(st_graph* graph, bool by_host, st_value x) {
  const auto parameter = [&](const char* name, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    st_value value = 0;
    EXPECT_TRUE(works(st_graph_parameter(graph, name, 2, dims, ST_INIT_NORMAL, 0.5, &value)));
    return value;
  };
  const auto op = [&](const char* name, std::initializer_list<st_value> in) {
    st_value value = 0;
    EXPECT_TRUE(works(st_graph_op(graph, name, static_cast<int32_t>(in.size()), in.begin(), nullptr, 1, &value)));
    return value;
  };
  const st_value a = op("matmul", {x, parameter("w1", 3, 4)});
  const st_value g = op("matmul", {x, parameter("w2", 3, 4)});
  const st_value h = by_host ? op("square", {a}) : op("mul", {a, a});
  st_value pair[2] = {h, g};
  if (by_host) {
    EXPECT_TRUE(works(st_graph_op(graph, "mix", 2, pair, nullptr, 2, pair)));
  } else {
    pair[0] = op("mul", {h, g});
    pair[1] = op("add", {h, g});
  }
  return op("matmul", {op("mul", {pair[0], pair[1]}), parameter("w3", 4, 1)});
}

struct HostRun {
  explicit HostRun(bool by_host, const std::string& device = "cpu", Watch* watch = nullptr) {
    auto options = filled(st_context_options_init);
    options.device = device.c_str();
    EXPECT_TRUE(works(st_context_create(&options, context.out())));
    if (by_host) register_square_and_mix(context, watch);
    EXPECT_TRUE(works(st_graph_create(context, graph.out())));
    const int64_t three[] = {ST_BATCH, 3}, one[] = {ST_BATCH, 1};
    st_value in = 0, wanted = 0, loss = 0;
    EXPECT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, three, &in)));
    EXPECT_TRUE(works(st_graph_input(graph, "y", ST_F32, 2, one, &wanted)));
    const st_value ends[] = {two_layers(graph, by_host, in), wanted};
    EXPECT_TRUE(works(st_graph_op(graph, "mse", 2, ends, nullptr, 1, &loss)));
    EXPECT_TRUE(works(st_graph_loss(graph, loss)));
    EXPECT_TRUE(works(st_model_create(graph, 1, model.out())));
    const std::string json = R"({"batch": 4, "accumulate": 2, "warmup": 0, "lr": 0.01, "device": ")" + device + "\"}";
    EXPECT_TRUE(works(st_recipe_create(json.c_str(), recipe.out())));
    EXPECT_TRUE(works(st_trainer_create(model, recipe, nullptr, trainer.out())));
    for (int i = 0; i < 24; ++i) x.push_back(std::sin(static_cast<float>(i)));
    for (int i = 0; i < 8; ++i) y.push_back(std::cos(static_cast<float>(i)));
  }
  st_status step(double* loss = nullptr) {
    const int64_t x_dims[] = {8, 3}, y_dims[] = {8, 1};
    const st_named_view views[] = {{"x", {ST_F32, 2, x_dims, nullptr, x.data(), 96}}, {"y", {ST_F32, 2, y_dims, nullptr, y.data(), 32}}};
    auto report = filled(st_step_report_init);
    const st_status status = st_trainer_step(trainer, 2, views, &report);
    if (loss != nullptr) *loss = report.loss;
    return status;
  }
  std::string digest() const { return text_of(st_trainer_digest, trainer); }

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  HeldRecipe recipe;
  HeldTrainer trainer;
  std::vector<float> x, y;
};

TEST(HostOp, TrainsBitForBitLikeTheLibrarysOwnOps) {
  for (const char* device : {"cpu", "reference"}) {
    HostRun hosts(true, device), ours(false, device);
    double first = 0, loss = 0, same = 0;
    for (int step = 0; step < 30; ++step) {
      ASSERT_TRUE(works(hosts.step(&loss)));
      ASSERT_TRUE(works(ours.step(&same)));
      ASSERT_EQ(loss, same) << device << ", step " << step;
      if (step == 0) first = loss;
    }
    EXPECT_LT(loss, 0.8 * first) << "it learns";
    EXPECT_EQ(hosts.digest(), ours.digest()) << device;
  }
}

TEST(HostOp, LivesOnInWhatWasMadeOfItsContext) {
  HostRun run(true), other(true);
  run.context.reset();
  run.graph.reset();
  run.model.reset();
  ASSERT_TRUE(works(run.step()));
  ASSERT_TRUE(works(other.step()));
  EXPECT_EQ(run.digest(), other.digest());
}

TEST(HostOp, AFailureInAnyCallLeavesTheLastWholeStep) {
  Watch watch, quiet;
  HostRun run(true, "cpu", &watch), undisturbed(true, "cpu", &quiet);
  watch.then(-1, {});
  ASSERT_TRUE(works(run.step()));
  ASSERT_TRUE(works(undisturbed.step()));
  const int64_t calls = watch.calls;
  ASSERT_EQ(calls, 8) << "two ops forward and backward in two micro-batches";
  for (int64_t call = 0; call < calls; ++call) {
    const std::string before = run.digest();
    watch.then(call, [] { return st_status{77}; });
    EXPECT_TRUE(fails(ST_CALLBACK, run.step(), {"host", "callback of \"", "returned 77"})) << call;
    const auto info = last_error();
    EXPECT_EQ(std::string(info.op).substr(0, 4), "host");
    EXPECT_EQ(run.digest(), before) << "failed in call " << call;
    watch.then(-1, {});
    ASSERT_TRUE(works(run.step()));
    ASSERT_TRUE(works(undisturbed.step()));
    EXPECT_EQ(run.digest(), undisturbed.digest()) << "after a failure in call " << call;
  }
}

TEST(HostOp, ACallbackThatCallsItsTrainerIsToldBusy) {
  Watch watch;
  HostRun run(true, "cpu", &watch), undisturbed(true);
  for (const int64_t call : {0, 5}) {  // forward, backward
    bool asked = false;
    watch.then(call, [&] {
      asked = true;
      const char* text = nullptr;
      float w[12];
      const int64_t dims[] = {3, 4};
      const st_view view = {ST_F32, 2, dims, nullptr, w, sizeof w};
      EXPECT_TRUE(fails(ST_BUSY, run.step(), {"st_trainer_step", "another call"}));
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_digest(run.trainer, &text)));
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(run.trainer), {"st_trainer_destroy"}));
      EXPECT_TRUE(fails(ST_BUSY, st_model_get(run.model, "w1", &view)));
      EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(run.model), {"st_model_destroy"}));
      // Calls on other handles work: the registry is not locked while a callback runs.
      const auto one = callbacks(square, square_backward);
      EXPECT_TRUE(works(st_op_register(run.context, call == 0 ? "another" : "more", &one, nullptr)));
      EXPECT_TRUE(works(undisturbed.step()));
      if (call != 0) run.context.reset();  // the model keeps it alive
      return st_status{ST_OK};
    });
    ASSERT_TRUE(works(run.step()));
    EXPECT_TRUE(asked);
    EXPECT_EQ(run.digest(), undisturbed.digest());
  }
  EXPECT_TRUE(works(run.step())) << "the context's handle is gone";
}

TEST(HostOp, RunsInTheFloatingPointModeOfItsHost) {
  Watch watch;
  HostRun run(true, "cpu", &watch);
  for (const int64_t call : {0, 4}) {
    float half = 0;
    watch.then(call, [&] {
      volatile float least = FLT_MIN;
      half = least * 0.5F;  // zero in the library's mode
      return st_status{ST_OK};
    });
    ASSERT_TRUE(works(run.step()));
    EXPECT_GT(half, 0) << "call " << call;
  }
}

}  // namespace

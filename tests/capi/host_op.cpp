// Ops of the host's own: trained inside a graph they are as good as the library's, and what goes wrong in them is an error, never a crash.
#include <array>
#include <cfloat>
#include <cmath>
#include <functional>
#include <memory>

#include "small_run.h"

namespace {

using namespace st::test;

int64_t elements(const st_view& view) { return view.bytes / 4; }
float* values(const st_view& view) { return static_cast<float*>(view.data); }

/// What every callback of this file does before it computes: counts, and does what the test asks for in the n-th call.
struct Watch {
  int64_t calls = 0, at = -1;
  std::function<st_status()> act = [] { return st_status{ST_OK}; };
  st_status operator()() { return calls++ == at ? act() : ST_OK; }
  void then(int64_t call, std::function<st_status()> next) {
    calls = 0;
    at = call;
    act = std::move(next);
  }
};

st_status watched(void* user) { return user == nullptr ? ST_OK : (*static_cast<Watch*>(user))(); }

st_status as_the_first(void*, int32_t, const st_op_type* inputs, int32_t m, st_op_type* outputs) {
  for (int32_t i = 0; i < m; ++i) outputs[i] = inputs[0];
  return ST_OK;
}

st_status square(void* user, int32_t, const st_view* in, int32_t, const st_view* out) {
  for (int64_t i = 0; i < elements(in[0]); ++i) values(out[0])[i] = values(in[0])[i] * values(in[0])[i];
  return watched(user);
}

/// As autodiff has it for mul(x, x): dy x twice, added.
st_status square_backward(void* user, int32_t, const st_view* in, int32_t, const st_view*, const st_view* dy, const st_view* dx) {
  for (int64_t i = 0; i < elements(in[0]); ++i) {
    const float part = values(dy[0])[i] * values(in[0])[i];
    values(dx[0])[i] = part + part;
  }
  return watched(user);
}

/// a, b -> a b, a + b
st_status mix(void* user, int32_t, const st_view* in, int32_t, const st_view* out) {
  for (int64_t i = 0; i < elements(in[0]); ++i) {
    values(out[0])[i] = values(in[0])[i] * values(in[1])[i];
    values(out[1])[i] = values(in[0])[i] + values(in[1])[i];
  }
  return watched(user);
}

st_status mix_backward(void* user, int32_t n, const st_view* in, int32_t, const st_view*, const st_view* d, const st_view* dx) {
  for (int32_t k = 0; k < n; ++k)
    for (int64_t i = 0; dx[k].data != nullptr && i < elements(in[0]); ++i) {
      const float part = values(d[0])[i] * values(in[1 - k])[i];
      values(dx[k])[i] = values(d[1])[i] + part;
    }
  return watched(user);
}

st_op_callbacks callbacks(st_op_forward_fn forward, st_op_backward_fn backward, int32_t outputs = 1, st_op_shape_fn shape = as_the_first) {
  auto made = filled(st_op_callbacks_init);
  made.outputs = outputs;
  made.shape = shape;
  made.forward = forward;
  made.backward = backward;
  return made;
}

void register_both(st_context* context, Watch* watch = nullptr) {
  const auto one = callbacks(square, square_backward), two = callbacks(mix, mix_backward, 2);
  EXPECT_TRUE(works(st_op_register(context, "square", &one, watch)));
  EXPECT_TRUE(works(st_op_register(context, "mix", &two, watch)));
}

/// out = (p s) w3 of h = (x w1)^2, g = x w2, p = h g, s = h + g; by the host's ops or by the library's.
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
    if (by_host) register_both(context, watch);
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
  std::string digest() const {
    const char* hex = "";
    EXPECT_TRUE(works(st_trainer_digest(trainer, &hex)));
    return hex;
  }

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
    auto info = filled(st_error_info_init);
    EXPECT_TRUE(works(st_last_error_info(&info)));
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
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(run.trainer)));
      EXPECT_TRUE(fails(ST_BUSY, st_model_get(run.model, "w1", &view)));
      // What is of no handle that is busy, is free: the registry is not locked while a callback runs.
      const auto one = callbacks(square, square_backward);
      EXPECT_TRUE(works(st_op_register(run.context, call == 0 ? "another" : "more", &one, nullptr)));
      EXPECT_TRUE(works(undisturbed.step()));
      return st_status{ST_OK};
    });
    ASSERT_TRUE(works(run.step()));
    EXPECT_TRUE(asked);
    EXPECT_EQ(run.digest(), undisturbed.digest());
  }
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

class HostOpGraph : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    ASSERT_TRUE(works(st_graph_create(context, graph.out())));
    const int64_t dims[] = {ST_BATCH, 3};
    ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, dims, &x)));
  }
  st_status op(const char* name, std::initializer_list<st_value> in, const char* attributes = nullptr) {
    return st_graph_op(graph, name, static_cast<int32_t>(in.size()), in.begin(), attributes, 1, &y);
  }
  st_status add(const char* name, const st_op_callbacks& made, void* user = nullptr) { return st_op_register(context, name, &made, user); }

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  st_value x = 0, y = 0;
};

TEST_F(HostOpGraph, NamesAreCheckedWhenTheyAreRegistered) {
  const auto good = callbacks(square, square_backward);
  for (const char* name : {"", "2d", "a b", "gr\xC3\xBC\xC3\x9F", "host\n"})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add(name, good), {"st_op_register", "letter"})) << name;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add("matmul", good), {"st_op_register", "matmul", "op of the library"}));
  EXPECT_TRUE(works(add("square", good)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add("square", good), {"\"square\"", "registered already"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_op_register(context, nullptr, &good, nullptr), {"st_op_register", "name is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_op_register(context, "a", nullptr, nullptr), {"st_op_register", "callbacks is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_op_register(nullptr, "a", &good, nullptr), {"st_op_register"}));
}

TEST_F(HostOpGraph, CallbacksAreCheckedWhenTheyAreRegistered) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add("a", callbacks(nullptr, square_backward)), {"no forward callback"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add("a", callbacks(square, nullptr, 1, nullptr)), {"no shape callback"}));
  for (const int32_t outputs : {-1, 0, 9})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add("a", callbacks(square, nullptr, outputs)), {"1 to 8"})) << outputs;
  auto small = callbacks(square, nullptr);
  small.struct_size = 8;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, add("a", small), {"struct_size"}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, op("a", {x}), {"unknown"})) << "none of them was taken";
}

TEST_F(HostOpGraph, AnUnknownOpNamesTheNearestOfBothKinds) {
  ASSERT_TRUE(works(add("swirl", callbacks(square, nullptr))));
  EXPECT_TRUE(fails(ST_NOT_FOUND, op("swirll", {x}), {"\"swirl\""}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, op("geluu", {x}), {"\"gelu\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("swirl", {x}, R"({"axis": 1})"), {"swirl", "no attributes"}));
  for (const char* name : {"host", "host_backward"})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op(name, {x}, R"({"name": "swirl", "id": 1})"), {name, "not an op of models"}));
}

TEST_F(HostOpGraph, IsKnownInItsOwnContextOnly) {
  ASSERT_TRUE(works(add("swirl", callbacks(square, nullptr))));
  HeldContext other;
  HeldGraph foreign;
  ASSERT_TRUE(works(st_context_create(nullptr, other.out())));
  ASSERT_TRUE(works(st_graph_create(other, foreign.out())));
  const int64_t dims[] = {ST_BATCH, 3};
  st_value in = 0;
  ASSERT_TRUE(works(st_graph_input(foreign, "x", ST_F32, 2, dims, &in)));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_graph_op(foreign, "swirl", 1, &in, nullptr, 1, &y), {"swirl", "unknown"}));
}

TEST_F(HostOpGraph, AShapeCallbackThatLiesIsNamedWithWhatItSaid) {
  struct Lie {
    st_op_type type;
    std::string_view word;
  };
  const Lie lies[] = {{{0, 1, {3}}, "dtype 0"},
                      {{99, 1, {3}}, "dtype 99"},
                      {{ST_F32, 9, {3}}, "rank 9"},
                      {{ST_F32, -1, {3}}, "rank -1"},
                      {{ST_F32, 2, {INT64_MAX, INT64_MAX}}, "no memory"},
                      {{ST_F32, 1, {INT64_MIN}}, "no memory"}};
  const auto tell = [](void* user, int32_t, const st_op_type*, int32_t, st_op_type* outputs) {
    outputs[0] = *static_cast<const st_op_type*>(user);
    return st_status{ST_OK};
  };
  int32_t number = 0;
  for (Lie lie : lies) {
    const std::string name = "lie" + std::to_string(number++);
    ASSERT_TRUE(works(add(name.c_str(), callbacks(square, nullptr, 1, tell), &lie.type)));
    EXPECT_TRUE(fails(ST_CALLBACK, op(name.c_str(), {x}), {"st_graph_op", name, lie.word, "f32[batch, 3]"}));
    EXPECT_EQ(y, 0);
  }
}

TEST_F(HostOpGraph, ANegativeDimensionWithoutABatchIsALie) {
  const auto negative = [](void*, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) {
    outputs[0] = inputs[0];
    outputs[0].dims[0] = -4;
    return st_status{ST_OK};
  };
  const int64_t dims[] = {3};
  st_value w = 0;
  ASSERT_TRUE(works(add("negative", callbacks(square, nullptr, 1, negative))));
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 1, dims, ST_INIT_ZEROS, 1, &w)));
  EXPECT_TRUE(fails(ST_CALLBACK, op("negative", {w}), {"negative", "[-4]"}));
  EXPECT_TRUE(works(op("negative", {x}))) << "four times the batch";
}

TEST_F(HostOpGraph, AShapeCallbacksStatusIsNamed) {
  const auto refuse = [](void*, int32_t, const st_op_type*, int32_t, st_op_type*) { return st_status{31}; };
  ASSERT_TRUE(works(add("refuser", callbacks(square, nullptr, 1, refuse))));
  EXPECT_TRUE(fails(ST_CALLBACK, op("refuser", {x}), {"shape callback of \"refuser\" returned 31"}));
  EXPECT_TRUE(fails(ST_CALLBACK, st_model_create(graph, 0, model.out()), {"refuser"})) << "the graph keeps its first error";
}

TEST_F(HostOpGraph, AShapeCallbackThatCallsItsGraphIsToldBusy) {
  const auto curious = [](void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs) {
    const char* text = nullptr;
    EXPECT_TRUE(fails(ST_BUSY, st_graph_text(static_cast<st_graph*>(user), &text)));
    return as_the_first(nullptr, n, inputs, m, outputs);
  };
  ASSERT_TRUE(works(add("curious", callbacks(square, nullptr, 1, curious), static_cast<st_graph*>(graph))));
  EXPECT_TRUE(works(op("curious", {x})));
}

TEST_F(HostOpGraph, WithoutBackwardATrainerThatNeedsItIsRefused) {
  ASSERT_TRUE(works(add("one_way", callbacks(square, nullptr))));
  const int64_t dims[] = {3, 1};
  st_value w = 0;
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, dims, ST_INIT_NORMAL, 1, &w)));
  const auto loss_of = [&](bool before) {  // one_way(x) w, or one_way(x w)
    HeldRecipe recipe;
    HeldTrainer trainer;
    if (before) {
      EXPECT_TRUE(works(op("one_way", {x})));
    }
    EXPECT_TRUE(works(op("matmul", {before ? y : x, w})));
    if (!before) {
      EXPECT_TRUE(works(op("one_way", {y})));
    }
    EXPECT_TRUE(works(op("sum", {y})));
    EXPECT_TRUE(works(st_graph_loss(graph, y)));
    EXPECT_TRUE(works(st_model_create(graph, 0, model.out())));
    EXPECT_TRUE(works(st_recipe_create(nullptr, recipe.out())));
    return st_trainer_create(model, recipe, nullptr, trainer.out());
  };
  EXPECT_TRUE(works(loss_of(true))) << "no gradient goes through it";
  model.reset();
  EXPECT_TRUE(fails(ST_UNSUPPORTED, loss_of(false), {"one_way", "backward", "register it with one"}));
}

// y = 2 x and, beside it, where x is positive: as integers, which have no gradient.
TEST_F(HostOpGraph, AnIntegerOutputHasNoGradient) {
  static bool saw_none = false, saw_unwanted = false;
  const auto shape = [](void*, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) {
    outputs[0] = outputs[1] = inputs[0];
    outputs[1].dtype = ST_I32;
    return st_status{ST_OK};
  };
  const auto forward = [](void*, int32_t, const st_view* in, int32_t, const st_view* out) {
    for (int64_t i = 0; i < elements(in[0]); ++i) {
      values(out[0])[i] = 2 * values(in[0])[i] + 0 * values(in[1])[0];
      static_cast<int32_t*>(out[1].data)[i] = values(in[0])[i] > 0;
    }
    return st_status{ST_OK};
  };
  const auto backward = [](void*, int32_t, const st_view* in, int32_t, const st_view*, const st_view* d, const st_view* dx) {
    saw_none = d[1].data == nullptr && d[1].dtype == ST_I32 && d[1].rank == 2;
    saw_unwanted = dx[1].data == nullptr && dx[1].rank == 2;
    for (int64_t i = 0; i < elements(in[0]); ++i) values(dx[0])[i] = 2 * values(d[0])[i];
    return st_status{ST_OK};
  };
  ASSERT_TRUE(works(add("double_and_sign", callbacks(forward, backward, 2, shape))));
  const int64_t dims[] = {3, 3};
  HeldRecipe recipe;
  HeldTrainer trainer;
  st_value w = 0;
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, dims, ST_INIT_NORMAL, 1, &w)));
  ASSERT_TRUE(works(op("matmul", {x, w})));
  ASSERT_TRUE(works(op("double_and_sign", {y, x})));
  ASSERT_TRUE(works(op("sum", {y})));
  ASSERT_TRUE(works(st_graph_loss(graph, y)));
  ASSERT_TRUE(works(st_model_create(graph, 0, model.out())));
  ASSERT_TRUE(works(st_recipe_create(R"({"batch": 2})", recipe.out())));
  ASSERT_TRUE(works(st_trainer_create(model, recipe, nullptr, trainer.out())));
  float rows[6] = {1, 2, 3, -1, -2, -4};
  const int64_t two[] = {2, 3};
  const st_named_view view = {"x", {ST_F32, 2, two, nullptr, rows, sizeof rows}};
  EXPECT_TRUE(works(st_trainer_step(trainer, 1, &view, nullptr)));
  EXPECT_TRUE(saw_none);
  EXPECT_TRUE(saw_unwanted) << "x is data: no gradient is wanted";
}

}  // namespace

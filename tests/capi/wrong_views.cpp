// Views that describe no memory, or the wrong memory: one table, applied to every call that takes a view.
#include <algorithm>
#include <array>
#include <functional>

#include "view_calls.h"

namespace {

using namespace st::test;

/// A valid view of f32 with modifiable dims and strides, over memory that is larger than it says.
struct Subject {
  explicit Subject(std::array<int64_t, 2> shape, int32_t rank = 2) : memory(256, 9) {
    std::ranges::copy(shape, dims.begin());
    view = {ST_F32, rank, dims.data(), nullptr, memory.data(), 4 * shape[0] * (rank == 2 ? shape[1] : 1)};
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// Row-major strides, to be modified.
  int64_t* own_strides() {
    strides = {dims[1], 1};
    view.strides = strides.data();
    return strides.data();
  }
  bool is_untouched() const {
    return std::ranges::all_of(memory, [](float v) { return v == 9; });
  }

  std::vector<float> memory;
  std::array<int64_t, 9> dims{1, 1, 1, 1, 1, 1, 1, 1, 1}, strides{};
  st_view view;
};

/// The views that a call accepts in addition to f32 memory of one shape.
enum Takes : uint32_t {
  kOnlyThis = 0,
  kAnyDtype = 1,
  kAnyShape = 2,
  kOverlapping = 4,     // it reads, so elements may share memory
  kNoOtherLayouts = 8,  // returns ST_UNSUPPORTED for more dimensions and for negative strides
};

struct Wrong {
  const char* what;
  uint32_t unless;  // valid for calls that accept this
  bool is_layout;
  void (*make)(Subject& s);
};

constexpr int64_t kFar = int64_t{1} << 61;

constexpr Wrong kWrong[] = {
    {"dtype 0", 0, false, [](Subject& s) { s.view.dtype = 0; }},
    {"dtype 9", 0, false, [](Subject& s) { s.view.dtype = 9; }},
    {"dtype -1", 0, false, [](Subject& s) { s.view.dtype = -1; }},
    {"another dtype", kAnyDtype, false,
     [](Subject& s) { s.view = {ST_I64, s.view.rank, s.view.dims, nullptr, s.view.data, 2 * s.view.bytes}; }},
    {"rank 9", 0, true, [](Subject& s) { s.view.rank = 9; }},
    {"rank -1", 0, false, [](Subject& s) { s.view.rank = -1; }},
    {"another rank", kAnyShape, false, [](Subject& s) { s.view.rank += 2; }},
    {"another shape", kAnyShape, false, [](Subject& s) { s.dims[1] = 3, s.dims[0] = 17, s.view.bytes = 4 * 3 * 17; }},
    {"dims NULL", 0, false, [](Subject& s) { s.view.dims = nullptr; }},
    {"a negative dim", 0, false, [](Subject& s) { s.dims[0] = -s.dims[0]; }},
    {"dims without end", 0, false, [](Subject& s) { s.dims[0] = kFar, s.view.bytes = INT64_MAX; }},
    {"a byte too few", 0, false, [](Subject& s) { --s.view.bytes; }},
    {"bytes -1", 0, false, [](Subject& s) { s.view.bytes = -1; }},
    {"data NULL", 0, false, [](Subject& s) { s.view.data = nullptr; }},
    {"a stride beyond its bytes", 0, false, [](Subject& s) { s.own_strides()[0] += 1; }},
    {"a stride without end", 0, false, [](Subject& s) { s.own_strides()[0] = kFar, s.view.bytes = INT64_MAX; }},
    {"a negative stride", 0, true, [](Subject& s) { s.own_strides()[0] = -1; }},
    {"device 1", 0, false, [](Subject& s) { s.view.device = 1; }},
    {"device -1", 0, false, [](Subject& s) { s.view.device = -1; }},
    {"reserved 1", 0, false, [](Subject& s) { s.view.reserved = 1; }},
    {"elements that share memory", kOverlapping, false, [](Subject& s) { s.own_strides()[0] = 0; }},
};

/// `call` must refuse each wrong view, name itself and the view, and change nothing; it must accept the valid one.
template <class Call>
void expect_refused(std::string_view function, std::string_view name, uint32_t takes, std::array<int64_t, 2> shape, int32_t rank,
                    const Call& call) {
  for (const Wrong& wrong : kWrong) {
    if ((wrong.unless & takes) != 0) continue;
    SCOPED_TRACE(std::string(function) + ": " + wrong.what);
    Subject s(shape, rank);
    wrong.make(s);
    const bool unsupported = wrong.is_layout && (takes & kNoOtherLayouts) != 0;
    EXPECT_TRUE(fails(unsupported ? ST_UNSUPPORTED : ST_INVALID_ARGUMENT, call(s.view), {name}));
    EXPECT_TRUE(s.is_untouched());
  }
  Subject right(shape, rank);
  EXPECT_TRUE(works(call(right.view))) << function;
}

class WrongViews : public ViewCalls {
 protected:
  st_status forward(const st_view& x) {
    const st_named_view batch[] = {{"x", x}, y(4)};
    return st_trainer_forward(run.trainer, 2, batch, &outputs_count, &outputs);
  }
};

TEST_F(WrongViews, OfABatchAreRefused) {
  const auto step = [&](const st_view& x) {
    const st_named_view batch[] = {{"x", x}, y(8)};
    return st_trainer_step(run.trainer, 2, batch, nullptr);
  };
  const auto advance = [&](const st_view& x) {
    const st_named_view batch[] = {{"x", x}, y(8)};
    int32_t done = 0;
    return st_trainer_advance(run.trainer, 2, batch, INT64_MAX, &done, nullptr);
  };
  expect_refused("st_trainer_step", "\"x\"", kOverlapping, {8, 1}, 2, step);
  expect_refused("st_trainer_advance", "\"x\"", kOverlapping, {8, 1}, 2, advance);
  Subject right({8, 1});
  const st_named_view batch[] = {{"x", right.view}, y(8)};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 2, batch, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST_F(WrongViews, OfForwardAndBackwardAreRefused) {
  expect_refused("st_trainer_forward", "\"x\"", kOverlapping, {4, 1}, 2, [&](const st_view& x) { return forward(x); });
  const auto into = [&](const st_view& prediction) {
    Subject x({4, 1});
    const st_named_view batch[] = {{"x", x.view}, y(4)}, to = {"prediction", prediction};
    return st_trainer_forward_into(run.trainer, 2, batch, 1, &to);
  };
  expect_refused("st_trainer_forward_into", "\"prediction\"", kOnlyThis, {4, 1}, 2, into);
  const auto backward = [&](const st_view& gradient) {
    Subject x({4, 1});
    EXPECT_TRUE(works(forward(x.view)));
    const st_named_view by = {"prediction", gradient};
    return st_trainer_backward(run.trainer, 1, &by);
  };
  expect_refused("st_trainer_backward", "\"prediction\"", kOverlapping, {4, 1}, 2, backward);
  EXPECT_TRUE(works(st_trainer_apply(run.trainer, nullptr)));
}

TEST_F(WrongViews, OfAPredictionAreRefused) {
  Subject x({8, 1}), prediction({8, 1});
  expect_refused("st_predictor_run", "\"x\"", kOverlapping, {8, 1}, 2, [&](const st_view& v) { return predict(v, prediction.view); });
  expect_refused("st_predictor_run", "\"prediction\"", kOnlyThis, {8, 1}, 2, [&](const st_view& v) { return predict(x.view, v); });
}

TEST_F(WrongViews, OfWeightsAndGradientsAreRefused) {
  ASSERT_TRUE(works(run.step()));
  const std::string before = run.digest();
  const auto gradient = [&](const st_view& v) { return st_trainer_gradient(run.trainer, "second.weight", &v); };
  const auto get = [&](const st_view& v) { return st_model_get(run.model, "second.weight", &v); };
  const auto set = [&](const st_view& v) { return st_model_set(undisturbed.model, "second.weight", &v); };
  expect_refused("st_trainer_gradient", "gradient", kOnlyThis, {16, 1}, 2, gradient);
  expect_refused("st_model_get", "\"second.weight\"", kOnlyThis, {16, 1}, 2, get);
  expect_refused("st_model_set", "\"second.weight\"", kOnlyThis, {16, 1}, 2, set);
  EXPECT_EQ(run.digest(), before);
}

TEST_F(WrongViews, OfTensorsDataAndParametersAreRefused) {
  const auto wrap = [&](const st_view& v) {
    HeldTensor tensor;
    return st_tensor_wrap(run.context, &v, nullptr, nullptr, tensor.out());
  };
  const auto arrays = [&](const st_view& v) {
    const st_named_view array = {"x", v};
    HeldData data;
    return st_data_arrays(run.context, 8, 1, &array, nullptr, nullptr, data.out());
  };
  const auto parameter = [&](const st_view& v) {
    HeldGraph graph;  // a new graph, since a graph keeps its first error
    st_value value = 0;
    EXPECT_TRUE(works(st_graph_create(run.context, graph.out())));
    return st_graph_parameter_values(graph, "w", &v, 1, &value);
  };
  expect_refused("st_tensor_wrap", "st_tensor_wrap", kAnyDtype | kAnyShape | kOverlapping | kNoOtherLayouts, {8, 1}, 2, wrap);
  expect_refused("st_data_arrays", "\"x\"", kAnyDtype | kAnyShape | kOverlapping | kNoOtherLayouts, {8, 1}, 2, arrays);
  expect_refused("st_graph_parameter_values", "\"w\"", kAnyShape | kOverlapping, {8, 1}, 2, parameter);
}

}  // namespace

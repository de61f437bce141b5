// Allocations fail, at each point, in a call of a training step or in a call between steps. The call fails, the state stays that of the
// last whole step, and the next call works.
#include <functional>
#include <vector>

#include "ledger.h"
#include "sanitized.h"
#include "sine_rows.h"

namespace {

using namespace st::test;

constexpr int64_t kEndless = 100000;

/// A trainer after one whole step, and what its calls need.
struct Stepped {
  explicit Stepped(st_context* made_on)
      : context(made_on), sine(made_on, nullptr, R"({"batch": 4, "accumulate": 2, "warmup": 0, "ema_decay": 0.5})") {
    for (size_t v = 0; v < 2; ++v) {
      views[v] = rows.views[v];
      views[v].view.dims = eight;
      short_views[v] = rows.views[v];
      short_views[v].view.dims = three;
      short_views[v].view.strides = every_other;
      half[v] = rows.views[v];
      half[v].view.dims = four;
    }
    EXPECT_TRUE(works(sine.step(2, views)));
    EXPECT_TRUE(works(st_predictor_create(sine.model, nullptr, predictor.out())));
    EXPECT_TRUE(works(st_data_arrays(context, kSineRows, 2, rows.views, nullptr, nullptr, data.out())));
  }
  /// Twice, the second time into the host's memory.
  st_status forward() {
    int64_t m = 0;
    const st_named_view* outputs = nullptr;
    const st_status status = st_trainer_forward(sine.trainer, 2, half, &m, &outputs);
    const st_named_view into = {"prediction", {ST_F32, 2, four, every_other, gradient, sizeof gradient}};
    return status == ST_OK ? st_trainer_forward_into(sine.trainer, 2, half, 1, &into) : status;
  }
  st_status backward() {
    const st_named_view by = {"prediction", {ST_F32, 2, four, every_other, slope, sizeof slope}};
    return st_trainer_backward(sine.trainer, 1, &by);
  }
  st_status advance(const st_named_view* batch) {
    int32_t done = 0;
    st_status status = ST_OK;
    while (status == ST_OK && done == 0) status = st_trainer_advance(sine.trainer, 2, batch, 0, &done, nullptr);
    return status;
  }
  st_status evaluate() {
    auto report = filled(st_evaluation_init);
    return st_trainer_evaluate(sine.trainer, data, &report);
  }
  st_status evaluate_average() {
    auto report = filled(st_evaluation_init);
    return st_trainer_evaluate_average(sine.trainer, data, &report);
  }
  st_status predict() {
    const st_named_view input = half[0], output = {"prediction", {ST_F32, 2, four, nullptr, answer, sizeof answer}};
    return st_predictor_run(predictor, 1, &input, 1, &output);
  }

  st_context* context;
  SineRows rows;
  SineTrainer sine;
  HeldData data;
  HeldPredictor predictor;
  HeldModel copy;
  HeldTensor tensor;
  int64_t eight[2] = {8, 1}, three[2] = {3, 1}, four[2] = {4, 1}, every_other[2] = {2, 1};
  st_named_view views[2], short_views[2], half[2];
  float slope[8] = {0.5F, 0, -0.25F, 0, 1, 0, 0.125F, 0}, answer[4] = {}, gradient[64] = {};
};

struct StepCall {
  const char* name;
  std::function<st_status(Stepped&)> call;
};

const StepCall kCalls[] = {
    {"step", [](Stepped& s) { return s.sine.step(2, s.views); }},
    {"step_on_a_short_batch_with_gaps", [](Stepped& s) { return s.sine.step(2, s.short_views); }},
    {"advance", [](Stepped& s) { return s.advance(s.views); }},
    {"advance_on_a_short_batch_with_gaps", [](Stepped& s) { return s.advance(s.short_views); }},
    {"own_loss",
     [](Stepped& s) {
       st_status status = s.forward();
       if (status == ST_OK) status = s.backward();
       return status == ST_OK ? st_trainer_apply(s.sine.trainer, nullptr) : status;
     }},
    {"gradient_with_gaps",
     [](Stepped& s) {
       const int64_t dims[] = {16, 1}, apart[] = {2, 1};
       const st_view to = {ST_F32, 2, dims, apart, s.gradient, sizeof s.gradient};
       return st_trainer_gradient(s.sine.trainer, "second.weight", &to);
     }},
    {"evaluate", [](Stepped& s) { return s.evaluate(); }},
    {"evaluate_average", [](Stepped& s) { return s.evaluate_average(); }},
    {"average_with_gaps",
     [](Stepped& s) {
       const int64_t dims[] = {16, 1}, apart[] = {2, 1};
       const st_view to = {ST_F32, 2, dims, apart, s.gradient, sizeof s.gradient};
       return st_trainer_average(s.sine.trainer, "second.weight", &to);
     }},
    {"predictor_run", [](Stepped& s) { return s.predict(); }},
    {"predictor_refresh", [](Stepped& s) { return st_predictor_refresh(s.predictor); }},
    {"clone", [](Stepped& s) { return st_model_clone(s.sine.model, s.copy.out()); }},
    {"tensor",
     [](Stepped& s) {
       const int64_t dims[] = {5, 7};
       return st_tensor_create(s.context, ST_F32, 2, dims, s.tensor.out());
     }},
};

class StepMemory : public testing::TestWithParam<std::tuple<Failing, size_t>> {
 protected:
  static Failing failing() { return std::get<0>(GetParam()); }
  static const StepCall& tried() { return kCalls[std::get<1>(GetParam())]; }

  void SetUp() override {
    const auto options = ledger_.options();
    ASSERT_TRUE(works(st_context_create(&options, context_.out())));
  }
  /// Makes the call with its n-th allocation failing; returns whether one failed.
  bool fail(int64_t n, Stepped& s, st_status* status) {
    ledger_.fail_at(n, failing());
    *status = tried().call(s);
    return ledger_.fail_none();
  }

  Ledger ledger_;
  HeldContext context_;
};

TEST_P(StepMemory, ThatRunsOutLosesNothing) {
  Stepped undisturbed(context_);
  const std::string before = undisturbed.sine.digest();
  ASSERT_TRUE(works(tried().call(undisturbed)));
  const std::string after = undisturbed.sine.digest();
  for (int64_t n = 0; n < kEndless; n = next_to_fail(n)) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    Stepped s(context_);
    st_status status = ST_OK;
    if (!fail(n, s, &status)) {
      EXPECT_TRUE(works(status));
      EXPECT_EQ(s.sine.digest(), after);
      return;
    }
    if (status == ST_OK && failing() == Failing::once) continue;  // it recovered, or allocated again
    ASSERT_TRUE(fails(ST_OUT_OF_MEMORY, status));
    ASSERT_EQ(s.sine.digest(), before);
    ASSERT_TRUE(works(tried().call(s))) << "the next call";
    ASSERT_EQ(s.sine.digest(), after);
  }
  FAIL() << "the call never succeeded";
}

std::string name_of(const testing::TestParamInfo<StepMemory::ParamType>& test) {
  return std::string(std::get<0>(test.param) == Failing::once ? "Once_" : "ForGood_") + kCalls[std::get<1>(test.param)].name;
}

/// Under a sanitizer each call fails in one of the two ways.
std::vector<StepMemory::ParamType> cases() {
  std::vector<StepMemory::ParamType> all;
  for (size_t call = 0; call < std::size(kCalls); ++call)
    for (const Failing failing : {Failing::once, Failing::for_good})
      if (!st::kSanitized || (failing == Failing::once) == (call % 2 == 0)) all.emplace_back(failing, call);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, StepMemory, testing::ValuesIn(cases()), name_of);

// Proves that these calls do allocate, since otherwise the tests above would test nothing: a step's plan is complete from the start.
TEST(StepMemoryCalls, Allocate) {
  Ledger ledger;
  const auto options = ledger.options();
  const auto context = hold<HeldContext>(st_context_create, &options);
  Stepped s(context);
  for (const StepCall& tried : kCalls) {
    const std::string_view name = tried.name;
    ledger.fail_at(INT64_MAX);
    ASSERT_TRUE(works(tried.call(s))) << name;
    const bool keeps_all = name == "step" || name.starts_with("advance");
    EXPECT_EQ(ledger.calls() == 0, keeps_all) << name << ": " << ledger.calls();
  }
}

}  // namespace

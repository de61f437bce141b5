// A host op in every call that runs ops: bits equal those of the library's op, and a failure affects only that call.
#include "squared_text.h"

namespace {

using namespace st::test;

TEST(HostOpCalls, HaveTheBitsOfTheLibrarysOwnOp) {
  HostSquare square;
  const SquaredText host(&square), own(nullptr);
  for (const SquaredText* run : {&host, &own}) ASSERT_TRUE(works(st_trainer_step(run->trainer, 0, nullptr, nullptr)));
  const auto hosts = hold<HeldPredictor>(st_predictor_create, host.model, nullptr);
  const auto owns = hold<HeldPredictor>(st_predictor_create, own.model, nullptr);
  double mine = 0, theirs = -1;
  ASSERT_TRUE(works(host.evaluate(&mine)));
  ASSERT_TRUE(works(own.evaluate(&theirs)));
  EXPECT_EQ(mine, theirs);
  EXPECT_EQ(host.answer(hosts), own.answer(owns));
  const Written text = written(hosts);
  ASSERT_TRUE(works(text.status));
  EXPECT_EQ(text.tokens.size(), 12U);
  EXPECT_EQ(text.tokens, written(owns).tokens);
  EXPECT_EQ(host.digest(), own.digest());
}

/// A model with the host's op, and an undisturbed one.
class HostOpFailure : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(works(st_predictor_create(run.model, nullptr, predictor.out()))); }

  /// Makes `callback` return 77 in its n-th call from now (from 0), once.
  static void fail_at(int64_t n, std::function<st_status()>& callback) {
    callback = [n]() mutable { return st_status{n-- == 0 ? 77 : ST_OK}; };
  }
  testing::AssertionResult failed(st_status status) { return fails(ST_CALLBACK, status, {"callback of \"square\"", "returned 77"}); }
  /// Both make another step and reach the same state.
  void expect_undisturbed() {
    ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
    ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
    EXPECT_EQ(run.digest(), undisturbed.digest());
  }

  HostSquare square, quiet;
  const SquaredText run{&square}, undisturbed{&quiet};
  HeldPredictor predictor;
};

TEST_F(HostOpFailure, EndsAPredictorsRunAndTheNextOneWorks) {
  const std::string before = run.answer(predictor);
  fail_at(0, square.forward);
  st_status status = ST_OK;
  run.answer(predictor, &status);
  EXPECT_TRUE(failed(status));
  EXPECT_EQ(run.answer(predictor), before);
  expect_undisturbed();
}

TEST_F(HostOpFailure, EndsATextAndTheNextOneIsWhole) {
  const auto before = written(predictor).tokens;
  for (const int64_t call : {0, 5}) {
    fail_at(call, square.forward);
    const Written text = written(predictor);
    EXPECT_TRUE(failed(text.status));
    EXPECT_EQ(text.tokens, std::vector<int32_t>(before.begin(), before.begin() + call)) << "earlier tokens were delivered";
  }
  EXPECT_EQ(written(predictor).tokens, before);
}

TEST_F(HostOpFailure, EndsAnEvaluationAndTheNextOneCountsAll) {
  double before = 0, after = -1, none = 0;
  ASSERT_TRUE(works(run.evaluate(&before)));
  for (const int64_t call : {0, 3}) {
    fail_at(call, square.forward);
    EXPECT_TRUE(failed(run.evaluate(&none)));
    ASSERT_TRUE(works(run.evaluate(&after)));
    EXPECT_EQ(after, before);
  }
  expect_undisturbed();
}

TEST_F(HostOpFailure, InASliceUndoesTheStep) {
  int32_t done = 0;
  for (auto* callback : {&square.forward, &square.backward}) {
    const std::string before = run.digest();
    fail_at(0, *callback);
    st_status status = ST_OK;
    int slices = 0;
    for (done = 0; status == ST_OK && done == 0; ++slices) status = st_trainer_advance(run.trainer, 0, nullptr, 0, &done, nullptr);
    EXPECT_TRUE(failed(status));
    EXPECT_GT(slices, 1);
    EXPECT_EQ(run.digest(), before);
    expect_undisturbed();
  }
}

TEST_F(HostOpFailure, InAHostsLossUndoesTheStep) {
  TokenBatch batch(4, 5);
  const std::string before = run.digest();
  fail_at(0, square.forward);
  EXPECT_TRUE(failed(forward(run.trainer, 2, batch.views())));
  ASSERT_TRUE(works(forward(run.trainer, 2, batch.views())));
  fail_at(0, square.backward);
  EXPECT_TRUE(failed(st_trainer_backward(run.trainer, 0, nullptr)));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_apply(run.trainer, nullptr), {"st_trainer_forward"}));
  EXPECT_EQ(run.digest(), before);
  for (const SquaredText* each : {&run, &undisturbed}) {
    ASSERT_TRUE(works(forward(each->trainer, 2, batch.views())));
    ASSERT_TRUE(works(st_trainer_backward(each->trainer, 0, nullptr)));
    ASSERT_TRUE(works(st_trainer_apply(each->trainer, nullptr)));
  }
  EXPECT_EQ(run.digest(), undisturbed.digest());
  expect_undisturbed();
}

}  // namespace

// A step that was begun and is not done: after forward, after backward, between slices of advance. Every call on every handle is then
// either refused with the way out or allowed, and none changes the bits that the step ends with.
#include <algorithm>

#include "handle_calls.h"
#include "sanitized.h"

namespace {

using namespace st::test;

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) { return std::ranges::find(names, name) != names.end(); }

/// The expected answer of every row; calls that continue or abandon the step are covered by the tests themselves.
struct Answers {
  Names wrong_state, busy, left_out;
  std::string_view way_out;
};

/// A gradient exists only when a step is done.
std::string_view way_out_of(const HandleCall& row, const Answers& answers) {
  return row.local_function() == "st_trainer_gradient" ? "complete a step first" : answers.way_out;
}

void call_all(AllKinds& w, const Answers& answers) {
  for (const bool destroys : {false, true})  // destroying calls come last
    for (const HandleCall& row : handle_calls()) {
      if (row.is_destroy() != destroys || is_one_of(row.function, answers.left_out)) continue;
      const st_status status = row.call(w, w.of(row.kind));
      const auto result = is_one_of(row.local_function(), answers.wrong_state) ? fails(ST_WRONG_STATE, status, {way_out_of(row, answers)})
                          : is_one_of(row.local_function(), answers.busy)      ? fails(ST_BUSY, status, {row.function})
                                                                               : works(status);
      EXPECT_TRUE(result) << row.function << " (" << row.argument << ")";
    }
}

st_status forward(AllKinds& w) { return st_trainer_forward(w.run.trainer, 2, w.batch.views(), &w.number, &w.outputs); }
st_status backward(AllKinds& w) { return st_trainer_backward(w.run.trainer, 0, nullptr); }
st_status apply(AllKinds& w) { return st_trainer_apply(w.run.trainer, nullptr); }

void expect_pairs_undisturbed(bool after_backward) {
  AllKinds undisturbed, w;
  for (AllKinds* each : {&undisturbed, &w}) {
    ASSERT_TRUE(works(forward(*each)));
    if (after_backward) {
      ASSERT_TRUE(works(backward(*each)));
    }
    if (each == &w)
      call_all(w, {.wrong_state = {"st_trainer_step", "st_trainer_run", "st_trainer_advance", "st_trainer_gradient", "st_trainer_digest",
                                   "st_trainer_use_average", "st_trainer_log_end", "st_trainer_write_report", "st_trainer_save",
                                   "st_trainer_resume"},
                   .busy = {},
                   .left_out = {"st_trainer_forward", "st_trainer_forward_into", "st_trainer_backward", "st_trainer_apply",
                                "st_trainer_cancel", "st_context_cancel", "st_trainer_destroy"},
                   .way_out = "st_trainer_apply"});
    if (!after_backward) {
      ASSERT_TRUE(works(backward(*each)));
    }
    ASSERT_TRUE(works(apply(*each)));
  }
  EXPECT_EQ(w.run.digest(), undisturbed.run.digest());
}

TEST(BegunSteps, AfterAForwardNothingDisturbsIt) { expect_pairs_undisturbed(false); }
TEST(BegunSteps, AfterABackwardNothingDisturbsIt) { expect_pairs_undisturbed(true); }

/// Runs at most `most` slices of one instruction, on host rows: the data's rows may be late, and then a slice runs nothing. Returns the
/// number of slices.
int slice(AllKinds& w, int most) {
  static TokenBatch batch(6, 1);  // borrowed until the step is done
  int slices = 0;
  for (w.done = 0; w.done == 0 && slices < most; ++slices)
    EXPECT_TRUE(works(st_trainer_advance(w.run.trainer, 2, batch.views(), 0, &w.done, nullptr)));
  return slices;
}

TEST(BegunSteps, BetweenSlicesNothingDisturbsThem) {
  AllKinds undisturbed;
  const int slices = slice(undisturbed, 100000);
  ASSERT_GT(slices, 10);
  for (const int at : {1, slices / 2, slices - 1}) {
    if (st::kSanitized && at != slices - 1) continue;  // the other states differ in what is refused
    SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(slices) + " slices");
    AllKinds w;
    ASSERT_EQ(slice(w, at), at);
    const bool updates = st_predictor_refresh(w.predictor) == ST_BUSY;
    EXPECT_EQ(updates, at == slices - 1);
    const Names readers = {"st_model_clone",     "st_model_blend",      "st_model_digest",      "st_model_get",
                           "st_model_set",       "st_model_write_file", "st_model_write",       "st_model_read",
                           "st_model_read_file", "st_predictor_create", "st_predictor_refresh", "st_model_load"};
    call_all(w, {.wrong_state = {"st_trainer_step", "st_trainer_run", "st_trainer_evaluate", "st_trainer_digest", "st_trainer_gradient",
                                 "st_trainer_forward", "st_trainer_forward_into", "st_trainer_backward", "st_trainer_apply",
                                 "st_trainer_log_end", "st_trainer_write_report", "st_trainer_evaluate_average", "st_trainer_average",
                                 "st_trainer_use_average", "st_trainer_save", "st_trainer_resume"},
                 .busy = updates ? readers : Names{},
                 .left_out = {"st_trainer_advance", "st_trainer_cancel", "st_context_cancel", "st_trainer_destroy"},
                 .way_out = "st_trainer_advance"});
    EXPECT_EQ(slice(w, 100000), slices - at);
    EXPECT_EQ(w.run.digest(), undisturbed.run.digest());
  }
}

}  // namespace

// One handle and two threads: while a call is inside, every other call on its trainer or its model is BUSY. All other handles are free and
// may even be destroyed, since the objects made from them keep them alive.
#include <algorithm>

#include "handle_calls.h"
#include "inside.h"
#include "sanitized.h"

namespace {

using namespace st::test;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// These calls end the one inside; see trainer_threads.cpp.
bool ends_a_step(const HandleCall& row) { return is_one_of(row.function, {"st_trainer_stop", "st_trainer_cancel", "st_context_cancel"}); }

/// The trainer's own calls, those that pass it data, and those that read or write its model's weights.
bool is_busy(const HandleCall& row) {
  const std::string_view name = row.local_function();
  if (is_one_of(name, {"st_trainer_create", "st_trainer_create_in_group", "st_trainer_evaluate", "st_trainer_evaluate_average",
                       "st_trainer_save", "st_trainer_save_every", "st_trainer_resume", "st_model_load"}))
    return true;
  if (row.kind == std::string_view("trainer")) return true;
  return row.kind == std::string_view("model") && !is_one_of(name, {"st_model_parameter_count", "st_model_parameter", "st_predictor_create",
                                                                    "st_plan_create"});  // they need no whole step
}

void call_all(AllKinds& w) {
  for (const bool destroys : {false, true})  // destroying calls come last
    for (const HandleCall& row : handle_calls()) {
      if (row.is_destroy() != destroys || ends_a_step(row)) continue;
      const st_status status = row.call(w, w.of(row.kind));
      const auto result = is_busy(row) ? fails(ST_BUSY, status, {row.function, "call on this handle is running"}) : works(status);
      EXPECT_TRUE(result) << row.function << " (" << row.argument << ")";
    }
}

struct Use {
  const char* name;
  st_status (*before)(AllKinds& w);
  st_status (*call)(AllKinds& w);
  st_status (*after)(AllKinds& w);
};

st_status nothing(AllKinds&) { return ST_OK; }
st_status forward(AllKinds& w) { return st_trainer_forward(w.run.trainer, 2, w.batch.views(), &w.number, &w.outputs); }
st_status backward(AllKinds& w) { return st_trainer_backward(w.run.trainer, 0, nullptr); }
st_status step(AllKinds& w) { return st_trainer_step(w.run.trainer, 0, nullptr, nullptr); }
st_status run(AllKinds& w) { return st_trainer_run(w.run.trainer, 2, nullptr, nullptr); }
st_status advance(AllKinds& w) { return st_trainer_advance(w.run.trainer, 0, nullptr, INT64_MAX, &w.done, nullptr); }
st_status evaluate(AllKinds& w) {
  auto evaluation = filled(st_evaluation_init);
  return st_trainer_evaluate(w.run.trainer, w.run.data, &evaluation);
}

st_status apply(AllKinds& w) { return st_trainer_apply(w.run.trainer, nullptr); }
st_status finish(AllKinds& w) {
  const st_status status = backward(w);
  return status == ST_OK ? apply(w) : status;
}

constexpr Use kUses[] = {{"step", nothing, step, nothing},       {"run", nothing, run, nothing},
                         {"advance", nothing, advance, nothing}, {"evaluate", nothing, evaluate, nothing},
                         {"forward", nothing, forward, finish},  {"backward", forward, backward, apply}};

TEST(HandlesInUse, OtherCallsAreBusyAndOtherHandlesFree) {
  for (const Use& use : kUses) {
    if (st::kSanitized && use.call != step) continue;
    SCOPED_TRACE(use.name);
    Inside inside;
    AllKinds undisturbed, w(inside.options());
    for (AllKinds* each : {&undisturbed, &w}) ASSERT_TRUE(works(use.before(*each)));
    bool asked = false;
    inside.then(2, [&] {
      asked = true;
      call_all(w);
    });
    ASSERT_TRUE(works(use.call(w)));
    ASSERT_TRUE(works(use.call(undisturbed)));
    EXPECT_TRUE(asked) << "the host was never asked for threads";
    inside.then(-1, {});
    for (AllKinds* each : {&undisturbed, &w}) ASSERT_TRUE(works(use.after(*each)));
    EXPECT_EQ(w.run.digest(), undisturbed.run.digest());
  }
}

}  // namespace

// st_trainer_run: a number of whole steps, and what ends it early.
#include <fstream>
#include <string>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

TEST(TrainerRun, EndsAtSoManyStepsInAll) {
  SmallRun run(text_file("run.txt", 3000));
  std::vector<int64_t> seen;
  const auto note = [](void* user, const st_step_report* report) {
    static_cast<std::vector<int64_t>*>(user)->push_back(report->step);
    return st_status{ST_OK};
  };
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 3, note, &seen)));
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 5, note, &seen)));
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 5, note, &seen)));
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_run(run.trainer, 0, nullptr, nullptr), {"st_trainer_run", "steps is 0"}));
  SmallRun no_data;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_run(no_data.trainer, 1, nullptr, nullptr), {"data", "batch"}));
}

TEST(TrainerRun, EndsAfterAWholeStepWhenItsCallbackFails) {
  const std::string text = text_file("callback.txt", 3000);
  SmallRun run(text), undisturbed(text);
  const auto refuse = [](void*, const st_step_report* report) { return report->step == 2 ? st_status{42} : st_status{ST_OK}; };
  EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_run(run.trainer, 9, refuse, nullptr), {"on_step returned 42 after step 2"}));
  ASSERT_TRUE(works(st_trainer_run(undisturbed.trainer, 2, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 4, nullptr, nullptr)));
  EXPECT_TRUE(works(st_trainer_run(undisturbed.trainer, 4, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(TrainerRun, TellsWhyItsCallbackFails) {
  SmallRun run(text_file("why.txt", 3000));
  const auto fail_at = [](void* why, const st_step_report* report) {
    if (report->step == 1) st_callback_error("not of the step that fails");
    if (report->step == 2) st_callback_error(static_cast<const char*>(why));
    return report->step < 2 ? st_status{ST_OK} : st_status{42};
  };
  std::string why = "the sensor is gone";
  EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_run(run.trainer, 9, fail_at, why.data()),
                    {R"(on_step returned 42 ("the sensor is gone") after step 2)"}));
  EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_run(run.trainer, 9, fail_at, nullptr), {"on_step returned 42 after step 3"}));
}

TEST(TrainerRun, LogsTheStepsOfItsCallbackInTheirOrder) {
  SmallRun run(text_file("order.txt", 3000));
  const std::string path = file_of("order.jsonl", "");
  ASSERT_TRUE(works(st_trainer_log(run.trainer, path.c_str())));
  const auto step_too = [](void* trainer, const st_step_report* report) {
    return report->step == 2 ? st_trainer_step(static_cast<st_trainer*>(trainer), 0, nullptr, nullptr) : st_status{ST_OK};
  };
  ASSERT_TRUE(works(st_trainer_run(run.trainer, 4, step_too, static_cast<st_trainer*>(run.trainer))));
  std::ifstream file(path);
  int64_t step = 0;
  for (std::string line; std::getline(file, line);)
    EXPECT_NE(line.find("\"step\":" + std::to_string(++step) + ","), std::string::npos) << line;
  EXPECT_EQ(step, 4);
}

TEST(TrainerRun, LetsItsCallbackLookAtEverythingBetweenSteps) {
  const std::string text = text_file("between.txt", 3000);
  SmallRun run(text), undisturbed(text);
  const auto look = [](void* user, const st_step_report*) {
    auto& r = *static_cast<SmallRun*>(user);
    auto evaluation = filled(st_evaluation_init);
    const char* plan = nullptr;
    std::vector<float> bias(16);
    const int64_t dims[] = {16};
    const st_view to = {ST_F32, 1, dims, nullptr, bias.data(), 64};
    EXPECT_TRUE(works(st_trainer_evaluate(r.trainer, r.data, &evaluation)));
    EXPECT_GT(evaluation.count, 0);
    EXPECT_TRUE(works(st_model_get(r.model, "final_norm.beta", &to)));
    EXPECT_TRUE(works(st_trainer_plan(r.trainer, &plan)));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_run(r.trainer, 99, nullptr, nullptr), {"st_trainer_run"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(r.trainer), {"st_trainer_destroy"}));
    return st_status{ST_OK};
  };
  ASSERT_TRUE(works(st_trainer_run(run.trainer, 3, look, &run)));
  ASSERT_TRUE(works(st_trainer_run(undisturbed.trainer, 3, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(TrainerRun, IsStoppedByItsCallbackWithoutError) {
  SmallRun run(text_file("stop.txt", 3000));
  const auto stop = [](void* user, const st_step_report* report) {
    return report->step == 2 ? st_trainer_stop(static_cast<SmallRun*>(user)->trainer) : st_status{ST_OK};
  };
  ASSERT_TRUE(works(st_trainer_run(run.trainer, 9, stop, &run)));
  const auto report = filled(st_step_report_init, st_trainer_step, run.trainer, 0, nullptr);
  EXPECT_EQ(report.step, 3);
}

TEST(TrainerRun, IsEndedByACancelThatIsThenUsedUp) {
  const std::string text = text_file("cancel.txt", 3000);
  SmallRun run(text), undisturbed(text);
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_run(r->trainer, 2, nullptr, nullptr)));
  const std::string before = run.digest();
  auto evaluation = filled(st_evaluation_init);
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));  // no call is running: the next one ends
  EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_run(run.trainer, 5, nullptr, nullptr), {"cancelled", "last whole step"}));
  EXPECT_EQ(run.digest(), before);
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
  EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_evaluate(run.trainer, run.data, &evaluation)));
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_run(r->trainer, 5, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest()) << "the same rows, the same random numbers";
}

}  // namespace

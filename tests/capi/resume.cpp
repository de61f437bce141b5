// A trainer's checkpoints: saved now, in the background, or every so many steps; resumed with the same bits; weights alone.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "checkpoint_folder.h"

namespace {

using namespace st::test;

const char* const kRecipe = R"({"batch": 3, "accumulate": 2, "warmup": 2, "dropout": 0.1, "ema_decay": 0.5})";

/// Options of a context that appends its warnings.
st_context_options collecting(std::string& warnings) {
  auto options = filled(st_context_options_init);
  options.log = [](void* user, int32_t level, const char*, const char* text) {
    if (level == ST_LOG_WARNING) *static_cast<std::string*>(user) += text;
  };
  options.log_user = &warnings;
  return options;
}

struct SavedRun {
  explicit SavedRun(const st_checkpoint_options* options = nullptr) : run(text(), nullptr, kRecipe) {
    EXPECT_TRUE(works(st_checkpoint_create(run.context, folder.c_str(), options, checkpoint.out())));
  }
  static const std::string& text() {
    static const std::string path = text_file("resume.txt", 600);  // few rows, so that eight steps are more than an epoch
    return path;
  }
  void steps(int count, st_step_report* report = nullptr) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, report)));
  }

  CheckpointFolder folder;
  SmallRun run;
  HeldCheckpoint checkpoint;
};

std::string digest_after(SmallRun& run, int64_t steps) {
  EXPECT_TRUE(works(st_trainer_run(run.trainer, steps, nullptr, nullptr)));
  return run.digest();
}

TEST(Resume, MakesTheStepsOfTheRunThatWasNotInterrupted) {
  SavedRun first;
  first.steps(3);
  ASSERT_TRUE(works(st_trainer_save(first.run.trainer, first.checkpoint, R"({"note": "third"})", nullptr)));
  const std::string third = first.run.digest(), eighth = digest_after(first.run, 8);
  EXPECT_EQ(text_of(st_checkpoint_hash, first.checkpoint, nullptr), third);

  SmallRun second(SavedRun::text(), nullptr, kRecipe);
  ASSERT_TRUE(works(st_trainer_run(second.trainer, 5, nullptr, nullptr)));  // starts from another state
  const auto report = filled(st_load_report_init, st_trainer_resume, second.trainer, first.checkpoint, nullptr, nullptr);
  EXPECT_EQ(second.digest(), third);
  EXPECT_EQ(report.step, 3);
  EXPECT_STREQ(report.name, "step-00000003");
  EXPECT_STREQ(report.metadata, R"({"note":"third"})");
  EXPECT_GT(report.read, 20);
  EXPECT_EQ(report.missing_count + report.unexpected_count + report.skipped_count + report.changed_count, 0);
  EXPECT_EQ(digest_after(second, 8), eighth);
}

TEST(Resume, SavesEverySoManyStepsAndTellsWhichIsOnTheDisk) {
  SavedRun saved;
  auto report = filled(st_step_report_init);
  EXPECT_EQ(report.saved_step, -1);
  saved.steps(1, &report);
  EXPECT_EQ(report.saved_step, -1);
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 2, 0)));
  saved.steps(5, &report);  // saves after steps 2, 4 and 6
  EXPECT_EQ(report.save_error, nullptr);
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  const std::string json = text_of(st_checkpoint_list, saved.checkpoint);
  EXPECT_EQ(json, R"([{"name":"step-00000006","step":6,"problem":null},{"name":"step-00000004","step":4,"problem":null},)"
                  R"({"name":"step-00000002","step":2,"problem":null}])");
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, nullptr, 0, 0)));
  saved.steps(2, &report);
  EXPECT_EQ(report.saved_step, -1) << "the trainer has stopped saving";
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  auto progress = filled(st_save_progress_init, st_checkpoint_progress, saved.checkpoint);
  EXPECT_EQ(progress.saved, 3);

  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 0, 1e-7)));  // minutes: shorter than any step
  saved.steps(2, &report);
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 0, 60)));
  saved.steps(2, &report);
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  ASSERT_TRUE(works(st_checkpoint_progress(saved.checkpoint, &progress)));
  EXPECT_EQ(progress.saved, 5);
  EXPECT_EQ(progress.saved_step, 10);
}

TEST(Resume, SavesByMinutesCountThemFromTheLastSave) {
  constexpr double kSeconds = 0.2;
  SavedRun saved;
  const auto seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 0, kSeconds / 60)));
  while (seconds() < 2.5 * kSeconds) saved.steps(1);
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  const auto progress = filled(st_save_progress_init, st_checkpoint_progress, saved.checkpoint);
  EXPECT_GE(progress.saved, 1);
  EXPECT_LE(progress.saved, seconds() / kSeconds);
}

TEST(Resume, TheSavesOfAStepInSlicesAndOfAHostsOwnLossAreTheSame) {
  SavedRun saved;
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 1, 0)));
  int32_t done = 0;
  while (done == 0) ASSERT_TRUE(works(st_trainer_advance(saved.run.trainer, 0, nullptr, 1000000, &done, nullptr)));
  TokenBatch batch(3, 5);
  ASSERT_TRUE(works(forward(saved.run.trainer, 2, batch.views())));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_save(saved.run.trainer, saved.checkpoint, nullptr, nullptr), {"st_trainer_save"}));
  EXPECT_TRUE(
      fails(ST_WRONG_STATE, st_trainer_resume(saved.run.trainer, saved.checkpoint, nullptr, nullptr, nullptr), {"a step is in progress"}));
  ASSERT_TRUE(works(st_trainer_backward(saved.run.trainer, 0, nullptr)));
  ASSERT_TRUE(works(st_trainer_apply(saved.run.trainer, nullptr)));
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  const char* hash = "";
  EXPECT_EQ(text_of(st_checkpoint_hash, saved.checkpoint, "step-00000002"), saved.run.digest());
  EXPECT_TRUE(works(st_checkpoint_inspect(saved.checkpoint, "step-00000001", &hash)));
}

// The folder is removed while training: training continues, and one report says so, once.
TEST(Resume, AFailedSaveIsToldInAReportAndTrainingGoesOn) {
  std::string warnings;
  auto options = collecting(warnings);
  options.threads = 1;
  CheckpointFolder folder;
  SmallRun run(SavedRun::text(), &options, kRecipe), undisturbed(SavedRun::text(), nullptr, kRecipe);
  const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, run.context, folder.c_str(), nullptr);
  ASSERT_TRUE(works(st_trainer_save_every(run.trainer, checkpoint, 2, 0)));
  std::filesystem::remove_all(folder.path());
  file_of(std::filesystem::path(folder.path()).filename().string(), "in its place");
  std::string told;
  int times = 0;
  for (int step = 1; step <= 3; ++step) {
    const auto report = filled(st_step_report_init, st_trainer_step, run.trainer, 0, nullptr);
    if (step == 2) {
      for (int32_t busy = 1; busy != 0;) {  // until the save has ended, without asking for its error
        const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint);
        busy = progress.failed == 0;
      }
    }
    EXPECT_EQ(report.saved_step, -1);
    if (report.save_error != nullptr) told = report.save_error, ++times;
  }
  EXPECT_EQ(times, 1);
  EXPECT_NE(told.find(folder.path()), std::string::npos) << told;
  EXPECT_NE(warnings.find(told), std::string::npos) << warnings;
  EXPECT_EQ(run.digest(), digest_after(undisturbed, 3));
  std::filesystem::remove(folder.path());
}

// A recipe whose state no checkpoint has is the caller's mistake: an older checkpoint would not help, so none is skipped.
TEST(Resume, StateThatIsMissingIsNoDamage) {
  SavedRun saved;
  for (int step = 0; step < 2; ++step) {
    saved.steps(1);
    ASSERT_TRUE(works(st_trainer_save(saved.run.trainer, saved.checkpoint, nullptr, nullptr)));
  }
  SmallRun other(SavedRun::text(), nullptr,
                 R"({"batch": 3, "accumulate": 2, "warmup": 2, "dropout": 0.1, "ema_decay": 0.5, "optimizer": "sgd", "momentum": 0.9})");
  const std::string before = other.digest();
  auto report = filled(st_load_report_init);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_resume(other.trainer, saved.checkpoint, nullptr, nullptr, &report),
                    {"step-00000002", "missing"}));
  EXPECT_EQ(report.skipped_count, 0);
  EXPECT_EQ(report.step, 2);
  EXPECT_GT(report.missing_count, 0);
  EXPECT_EQ(other.digest(), before);
}

/// Path, size and time of each file.
std::string files_in(const CheckpointFolder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file())
      files.push_back(entry.path().string() + " " + std::to_string(entry.file_size()) + " " +
                      std::to_string(entry.last_write_time().time_since_epoch().count()) + "\n");
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file;
  return all;
}

// Hosts train from step 0 after ST_NOT_FOUND, and keep_last then removes what the folder held.
TEST(Resume, OnlyAFolderWithoutACheckpointIsNotFound) {
  SavedRun saved;
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_trainer_resume(saved.run.trainer, saved.checkpoint, nullptr, nullptr, nullptr), {"no checkpoint"}));
  for (int step = 0; step < 2; ++step) {
    saved.steps(1);
    ASSERT_TRUE(works(st_trainer_save(saved.run.trainer, saved.checkpoint, nullptr, nullptr)));
  }
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_trainer_resume(saved.run.trainer, saved.checkpoint, "step-00000003", nullptr, nullptr),
                    {"step-00000003", "step-00000002"}));
  const std::string files = files_in(saved.folder);
  for (const char* layers : {"1", "3"}) {
    const std::string json = std::string(R"({"width": 16, "heads": 2, "context": 8, "layers": )") + layers + "}";
    const auto model = hold<HeldModel>(st_model_builtin, saved.run.context, "gpt", json.c_str(), 1);
    const auto recipe = hold<HeldRecipe>(st_recipe_create, kRecipe);
    const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, saved.run.data);
    const auto view = filled(st_step_report_init, st_trainer_step, trainer, 0, nullptr);
    EXPECT_EQ(view.step, 1);
    const std::string before = text_of(st_trainer_digest, trainer);
    for (const char* name : {static_cast<const char*>(nullptr), "step-00000001"})
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_resume(trainer, saved.checkpoint, name, nullptr, nullptr), {"block."})) << layers;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_load(model, saved.checkpoint, nullptr, nullptr, nullptr), {"block."})) << layers;
    EXPECT_EQ(text_of(st_trainer_digest, trainer), before);
  }
  EXPECT_EQ(files_in(saved.folder), files);

  // Checkpoints without a manifest, or with an unreadable one, are damaged.
  std::filesystem::remove(saved.folder.in("step-00000002/manifest.json"));
  EXPECT_TRUE(fails(ST_CORRUPT, st_trainer_resume(saved.run.trainer, saved.checkpoint, "step-00000002", nullptr, nullptr), {"manifest"}));
  auto report = filled(st_load_report_init, st_trainer_resume, saved.run.trainer, saved.checkpoint, nullptr, nullptr);
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.skipped_count, 1);
  saved.folder.spoil("step-00000001/manifest.json");
  const char* json = "";
  EXPECT_TRUE(fails(ST_CORRUPT, st_trainer_resume(saved.run.trainer, saved.checkpoint, nullptr, nullptr, nullptr), {"none of the 2"}));
  EXPECT_TRUE(fails(ST_CORRUPT, st_checkpoint_inspect(saved.checkpoint, nullptr, &json), {"no checkpoint there has a valid manifest"}));
}

// A host that starts another model in the folder of a run does not lose that run.
TEST(Resume, RetentionKeepsTheCheckpointsOfAnotherModel) {
  std::string warnings;
  auto options = collecting(warnings);
  CheckpointFolder folder;
  SmallRun first(SavedRun::text(), &options, kRecipe);
  auto keeping = filled(st_checkpoint_options_init);
  keeping.keep_last = 1;
  const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, first.context, folder.c_str(), &keeping);
  ASSERT_TRUE(works(st_trainer_run(first.trainer, 4, nullptr, nullptr)));
  ASSERT_TRUE(works(st_trainer_save(first.trainer, checkpoint, nullptr, nullptr)));
  EXPECT_EQ(warnings, "");
  const auto model = hold<HeldModel>(st_model_builtin, first.context, "gpt", R"({"layers": 1, "width": 16, "heads": 2, "context": 8})", 1);
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, first.recipe, first.data);
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(works(st_trainer_run(trainer, step, nullptr, nullptr)));
    ASSERT_TRUE(works(st_trainer_save(trainer, checkpoint, nullptr, nullptr)));
  }
  const size_t at = warnings.find("another run");
  EXPECT_TRUE(at != std::string::npos && warnings.find("step-00000004") != std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("another run", at + 1), std::string::npos) << "it is reported once";
  EXPECT_TRUE(works(st_trainer_resume(first.trainer, checkpoint, "step-00000004", nullptr, nullptr)));
  EXPECT_EQ(text_of(st_checkpoint_list, checkpoint), R"([{"name":"step-00000003","step":3,"problem":null},)"
                                                     R"({"name":"step-00000004","step":4,"problem":null}])");
}

TEST(Resume, NamesWhatDiffers) {
  SavedRun saved;
  saved.steps(1);
  ASSERT_TRUE(works(st_trainer_save(saved.run.trainer, saved.checkpoint, nullptr, nullptr)));
  SmallRun slower(SavedRun::text(), nullptr,
                  R"({"batch": 3, "accumulate": 2, "warmup": 2, "dropout": 0.1, "ema_decay": 0.5, "lr": 0.25, "threads": 1})");
  const auto report = filled(st_load_report_init, st_trainer_resume, slower.trainer, saved.checkpoint, nullptr, nullptr);
  ASSERT_GE(report.changed_count, 1);
  bool has_lr = false;
  for (int64_t i = 0; i < report.changed_count; ++i) has_lr = has_lr || std::string(report.changed[i]).rfind("lr: 0.25", 0) == 0;
  EXPECT_TRUE(has_lr);
  EXPECT_EQ(slower.digest(), saved.run.digest());
}

TEST(Resume, AModelTakesTheWeightsAlone) {
  SavedRun saved;
  saved.steps(2);
  ASSERT_TRUE(works(st_trainer_save(saved.run.trainer, saved.checkpoint, nullptr, nullptr)));
  SmallRun fresh;
  auto report = filled(st_load_report_init, st_model_load, fresh.model, saved.checkpoint, nullptr, nullptr);
  const char* trained = "";
  ASSERT_TRUE(works(st_model_digest(saved.run.model, &trained)));
  EXPECT_EQ(text_of(st_model_digest, fresh.model), trained);
  EXPECT_EQ(report.step, 2);
  EXPECT_EQ(report.unexpected_count, 0) << "optimizer state was not requested";

  const auto other = hold<HeldModel>(st_model_builtin, fresh.context, "mlp", nullptr, 1);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_load(other, saved.checkpoint, nullptr, nullptr, &report), {"missing"}));
  EXPECT_GT(report.missing_count, 0);
}

TEST(Resume, ATrainerKeepsTheFolderUntilItSavesNoMore) {
  SavedRun saved;
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 1, 0)));
  saved.checkpoint.reset();
  saved.steps(1);
  EXPECT_TRUE(fails(ST_BUSY, st_checkpoint_create(saved.run.context, saved.folder.c_str(), nullptr, saved.checkpoint.out())));
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, nullptr, 0, 0)));
  ASSERT_TRUE(works(st_checkpoint_create(saved.run.context, saved.folder.c_str(), nullptr, saved.checkpoint.out())));
  ASSERT_TRUE(works(st_trainer_resume(saved.run.trainer, saved.checkpoint, "step-00000001", nullptr, nullptr)));
}

int64_t other_memory(const SmallRun& run) {
  const auto stats = memory_of(run.context);
  return stats.role_bytes[ST_MEMORY_OTHER];
}

// The copy of all weights and the optimizer's state is allocated before the first save. Trim frees it, and the next save allocates it
// again.
TEST(Resume, CopiesAreMemoryOfTheContextThatTrimGivesBack) {
  SavedRun saved;
  const int64_t before = other_memory(saved.run);
  ASSERT_TRUE(works(st_trainer_save_every(saved.run.trainer, saved.checkpoint, 1, 0)));
  const int64_t copy = other_memory(saved.run) - before;
  const auto stats = memory_of(saved.run.context);
  EXPECT_GE(copy, stats.role_bytes[ST_MEMORY_PARAMETERS] + stats.role_bytes[ST_MEMORY_OPTIMIZER]);
  saved.steps(3);
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  EXPECT_EQ(other_memory(saved.run) - before, copy) << "the memory is kept between saves";
  ASSERT_TRUE(works(st_context_trim(saved.run.context)));
  EXPECT_EQ(other_memory(saved.run), before);
  saved.steps(1);
  ASSERT_TRUE(works(st_checkpoint_wait(saved.checkpoint, -1)));
  EXPECT_EQ(other_memory(saved.run) - before, copy);
  EXPECT_EQ(text_of(st_checkpoint_hash, saved.checkpoint, "step-00000004"), saved.run.digest());
}

/// The memory that a trainer needs without a copy of its state.
int64_t peak_of_a_step() {
  SavedRun unlimited;
  unlimited.steps(1);
  return memory_of(unlimited.run.context).peak_bytes;
}

// Without memory for a copy, the trainer's own saves complete before the step returns; a host's background save fails, and the host may
// save without a copy.
TEST(Resume, CopiesKeepToTheMemoryLimit) {
  const int64_t need = peak_of_a_step();
  auto options = filled(st_context_options_init);
  options.memory_limit = need + 4096;
  CheckpointFolder folder;
  SmallRun run(SavedRun::text(), &options, kRecipe);
  const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, run.context, folder.c_str(), nullptr);
  ASSERT_TRUE(works(st_trainer_save_every(run.trainer, checkpoint, 1, 0)));
  const auto report = filled(st_step_report_init, st_trainer_step, run.trainer, 0, nullptr);
  EXPECT_EQ(report.save_error, nullptr);
  EXPECT_EQ(report.saved_step, 1) << "the save is already on disk";
  EXPECT_EQ(text_of(st_checkpoint_hash, checkpoint, nullptr), run.digest());

  HeldPending pending;
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_trainer_save(run.trainer, checkpoint, nullptr, pending.out()), {"memory_limit", "waited for"}));
  std::vector<unsigned char> large(static_cast<size_t>(need));
  const int64_t dims[] = {need};
  const st_named_view view = {"large", {ST_U8, 1, dims, nullptr, large.data(), need}};
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_checkpoint_save(checkpoint, 2, 1, &view, nullptr, pending.out()), {"memory_limit"}));
  EXPECT_TRUE(works(st_checkpoint_save(checkpoint, 2, 1, &view, nullptr, nullptr)));
  EXPECT_TRUE(works(st_checkpoint_wait(checkpoint, -1))) << "the host got the error";
  const auto stats = memory_of(run.context);
  EXPECT_LE(stats.peak_bytes, options.memory_limit);
}

// If the process were killed between a step's save and its log line, a resumed run would lack the line. So the line comes first: code that
// sees the save begin (it fails here with a warning) finds the line.
TEST(Resume, AStepIsLoggedBeforeItIsSaved) {
  struct Seen {
    std::string path, log;
  } seen;
  auto options = filled(st_context_options_init);
  options.log = [](void* user, int32_t level, const char* area, const char*) {
    if (level != ST_LOG_WARNING || std::string(area) != "checkpoint") return;
    auto& that = *static_cast<Seen*>(user);
    std::ifstream file(that.path);
    that.log.assign(std::istreambuf_iterator<char>(file), {});
  };
  options.log_user = &seen;
  options.memory_limit = peak_of_a_step() + 4096;  // so that the save completes before the step returns
  const CheckpointFolder folder;
  SmallRun run(SavedRun::text(), &options, kRecipe);
  seen.path = file_of("logged_before.jsonl", "");
  ASSERT_TRUE(works(st_trainer_log(run.trainer, seen.path.c_str())));
  const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, run.context, folder.c_str(), nullptr);
  ASSERT_TRUE(works(st_trainer_save_every(run.trainer, checkpoint, 2, 0)));
  std::filesystem::remove_all(folder.path());
  file_of(std::filesystem::path(folder.path()).filename().string(), "in its place");
  auto report = filled(st_step_report_init);
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, &report)));
  EXPECT_NE(report.save_error, nullptr);
  EXPECT_NE(seen.log.find(R"({"step":2,)"), std::string::npos) << seen.log;
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  std::ifstream file(seen.path);
  int64_t lines = 0;
  for (std::string line; std::getline(file, line);) EXPECT_EQ(line.find("{\"step\":" + std::to_string(++lines)), 0U) << line;
  EXPECT_EQ(lines, 3) << "each line appears once";
}

TEST(Resume, SaveEveryIsLookedAt) {
  SavedRun saved;
  const auto refused = [&](st_checkpoint* checkpoint, int64_t steps, double minutes, std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_save_every(saved.run.trainer, checkpoint, steps, minutes), words));
  };
  refused(saved.checkpoint, -1, 0, {"steps is -1"});
  refused(saved.checkpoint, 0, -1, {"minutes is -1"});
  refused(saved.checkpoint, 0, 0.0 / 0.0, {"minutes is"});
  refused(saved.checkpoint, 0, 0, {"NULL checkpoint"});
  refused(nullptr, 1, 0, {"checkpoint is NULL"});
  auto options = filled(st_checkpoint_options_init);
  options.read_only = 1;
  const auto reader = hold<HeldCheckpoint>(st_checkpoint_create, saved.run.context, saved.folder.c_str(), &options);
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_save_every(saved.run.trainer, reader, 1, 0), {"read_only"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_save(saved.run.trainer, reader, nullptr, nullptr), {"read_only"}));
}

}  // namespace

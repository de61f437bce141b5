// Trainers that are each one rank of a communicator and hold shards of the state (zero 1 to 3): digest, averages, gradients, saves and
// resumes as collective calls. Here a rank is a thread with its own context; tests/faults has processes.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "checkpoint_folder.h"
#include "group_rank.h"
#include "sanitized.h"

namespace {

using namespace st::test;

constexpr const char* kWeight = JoinedRank::kWeight;

Keys with_zero(int zero, Keys keys = {}) {
  keys["zero"] = std::to_string(zero);
  return keys;
}

struct ZeroRank : JoinedRank {
  using JoinedRank::JoinedRank;
  using Get = st_status (*)(st_trainer*, const char*, const st_view*);
  /// Reads kWeight, or another parameter into kWeight's shape.
  st_status read(Get get, const char* name, std::vector<float>& all) const {
    int64_t dims[2] = {0, 0};
    for (int64_t i = 0; dims[0] == 0; ++i) {
      const auto info = filled(st_parameter_info_init, st_model_parameter, run.model, i);
      if (info.name == std::string(kWeight)) std::copy_n(info.dims, 2, dims);
    }
    all.resize(static_cast<size_t>(dims[0] * dims[1]));
    const st_view view{ST_F32, 2, dims, nullptr, all.data(), static_cast<int64_t>(all.size() * sizeof(float))};
    return get(trainer, name, &view);
  }
  /// Rank 0 opens it for all.
  void open(const CheckpointFolder& folder, int rank, HeldCheckpoint& checkpoint, double bytes_per_second = 0) const {
    auto options = filled(st_checkpoint_options_init);
    options.bytes_per_second = bytes_per_second;
    options.read_only = rank == 0 ? 0 : 1;
    ASSERT_TRUE(works(st_checkpoint_create(run.context, folder.c_str(), &options, checkpoint.out())));
  }
  /// The other ranks open it once it exists; `own` null: there are none.
  void open_with(st_communicator* own, const CheckpointFolder& folder, int rank, HeldCheckpoint& checkpoint,
                 double bytes_per_second = 0) const {
    if (rank == 0) open(folder, rank, checkpoint, bytes_per_second);
    if (own != nullptr) {
      ASSERT_TRUE(works(st_communicator_barrier(own, "the folder is there", nullptr)));
    }
    if (rank != 0) open(folder, rank, checkpoint, bytes_per_second);
  }
};

std::string state_alone(const std::string& text, int steps, const Keys& keys) {
  ZeroRank alone(text, keys, nullptr);
  alone.steps(steps);
  return alone.digest();
}

struct Place {
  int size, zero;
  bool is_late = false;
};

/// `steps` more, from the newest checkpoint; saves at the end, in the background or not.
void run_until(const std::string& text, const Keys& keys, const CheckpointFolder& folder, Place place, int steps, std::string* state) {
  std::mutex one_at_a_time;
  const auto act = [&](int rank, st_communicator* own) {
    ZeroRank mine(text, place.size > 1 ? with_zero(place.zero, keys) : keys, own, place.is_late);
    HeldCheckpoint checkpoint;
    mine.open_with(own, folder, rank, checkpoint);
    const bool is_new = std::filesystem::is_empty(folder.path()) || !std::filesystem::exists(folder.in("latest"));
    if (!is_new) {
      const auto report = filled(st_load_report_init, st_trainer_resume, mine.trainer, checkpoint, nullptr, nullptr);
      EXPECT_EQ(report.missing_count + report.unexpected_count, 0);
    }
    if (own != nullptr) {
      ASSERT_TRUE(works(st_communicator_barrier(own, "all have looked", nullptr)));
    }
    mine.steps(steps);
    HeldPending pending;
    const bool waits = place.zero == 1;
    ASSERT_TRUE(works(st_trainer_save_collective(mine.trainer, checkpoint, "{\"by\": \"all\"}", waits ? nullptr : pending.out())));
    const std::string digest = mine.digest();
    mine.steps(1);  // the save continues in the background
    if (!waits) {
      EXPECT_TRUE(works(st_pending_wait(pending, -1)));
    }
    const std::lock_guard lock(one_at_a_time);
    if (rank == 0) {
      const char* hex = nullptr;
      EXPECT_EQ(text_of(st_checkpoint_hash, checkpoint, nullptr), digest);
      ASSERT_TRUE(works(st_checkpoint_verify(checkpoint, nullptr, &hex)));
      EXPECT_NE(std::string(hex).find("\"problems\":[]"), std::string::npos) << hex;
      *state = digest;
    } else {
      EXPECT_EQ(*state == "" ? digest : *state, digest);
    }
    const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint);
    EXPECT_EQ(progress.saved, 1);
  };
  state->clear();
  if (place.size == 1) return act(0, nullptr);
  const ThreadRanks ranks(place.size);
  ranks.each(act);
}

TEST(ZeroInGroup, WhatSomeRanksSavedOthersGoOnWith) {
  const std::string text = text_file("zero.txt", 3000);
  for (const char* precision : {"\"fp32\"", "\"bf16\"", "\"fp16\""}) {
    if (st::kSanitized && std::string_view(precision) != "\"fp16\"") continue;  // it has masters and a loss scaler
    const Keys keys = {{"precision", precision}, {"ema_decay", "0.9"}};
    const CheckpointFolder folder;
    int steps = 0;
    for (const Place place : {Place{2, 2, true}, Place{3, 3}, Place{1, 0}, Place{2, 3}, Place{3, 1, true}, Place{2, 2}}) {
      if (st::kSanitized && steps == 8) break;
      std::string state;
      run_until(text, keys, folder, place, 2, &state);
      steps += 2;
      EXPECT_EQ(state, state_alone(text, steps, keys)) << precision << ", " << place.size << " ranks, zero " << place.zero;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with("ranks-")) << entry.path();
  }
}

TEST(ZeroInGroup, SavesByItselfEverySoManySteps) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder;
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    ZeroRank mine(text, with_zero(2), own);
    HeldCheckpoint checkpoint;
    mine.open_with(own, folder, rank, checkpoint);
    ASSERT_TRUE(works(st_trainer_save_every_collective(mine.trainer, checkpoint, 2, 1e-9)));  // by time: every step
    for (int step = 1; step <= 4; ++step) {
      const auto report = filled(st_step_report_init, st_trainer_step, mine.trainer, 0, nullptr);
      EXPECT_EQ(report.save_error, nullptr);
      ASSERT_TRUE(works(st_checkpoint_wait(checkpoint, -1)));
    }
    const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint);
    EXPECT_EQ(progress.saved, 4);
    EXPECT_EQ(progress.saved_step, 4);
  });
}

TEST(ZeroInGroup, WhatIsNotWholeForOneRankIsPassedOverByAll) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder;
  std::string first, second;
  run_until(text, {}, folder, {2, 2}, 2, &first);
  run_until(text, {}, folder, {2, 2}, 2, &second);
  folder.spoil("step-00000004/optimizer-00002-of-00002.safetensors", 100);  // of rank 1's shards
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    ZeroRank mine(text, with_zero(1), own);
    mine.steps(1);
    const std::string before = mine.digest();
    auto options = filled(st_checkpoint_options_init);
    options.read_only = 1;
    const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, mine.run.context, folder.c_str(), &options);
    EXPECT_TRUE(fails(ST_CORRUPT, st_trainer_resume(mine.trainer, checkpoint, "step-00000004", nullptr, nullptr), {"optimizer-00002"}));
    EXPECT_EQ(mine.digest(), before);
    const auto report = filled(st_load_report_init, st_trainer_resume, mine.trainer, checkpoint, nullptr, nullptr);
    EXPECT_STREQ(report.name, "step-00000002");
    EXPECT_EQ(report.skipped_count, 1);
    EXPECT_EQ(mine.digest(), first) << rank;
  });
}

TEST(ZeroInGroup, AResumeThatDoesNotFitOrLacksAManifestIsNeverNotFound) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder;
  std::string state;
  for (int run = 0; run < 2; ++run) run_until(text, {}, folder, {2, 2}, 2, &state);
  std::filesystem::remove(folder.in("step-00000004/manifest.json"));
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    auto options = filled(st_checkpoint_options_init);
    options.read_only = 1;
    ZeroRank mine(text, with_zero(1), own), other(text, with_zero(1, {{"ema_decay", "0.5"}}), own);
    const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, mine.run.context, folder.c_str(), &options);
    const std::string before = other.digest();
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_resume(other.trainer, checkpoint, nullptr, nullptr, nullptr), {"average."}));
    EXPECT_EQ(other.digest(), before);
    EXPECT_TRUE(fails(ST_CORRUPT, st_trainer_resume(mine.trainer, checkpoint, "step-00000004", nullptr, nullptr), {"manifest"}));
    const auto report = filled(st_load_report_init, st_trainer_resume, mine.trainer, checkpoint, nullptr, nullptr);
    EXPECT_STREQ(report.name, "step-00000002");
    EXPECT_EQ(report.skipped_count, 1) << rank;
  });
}

TEST(ZeroInGroup, AnErrorOfOneRankIsToldOnAllAndTrainingGoesOn) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder;
  const std::string alone = state_alone(text, 3, {});
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    ZeroRank mine(text, with_zero(2), own);
    mine.steps(1);
    HeldCheckpoint checkpoint;
    mine.open_with(own, folder, rank, checkpoint);
    ASSERT_TRUE(works(st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr)));
    mine.steps(1);
    HeldCheckpoint other;  // rank 2's; its folder is gone when it must save
    if (rank == 2) {
      const CheckpointFolder elsewhere;
      std::filesystem::create_directory(elsewhere.path());
      mine.open(elsewhere, rank, other);
      std::swap(checkpoint, other);
      std::filesystem::remove_all(elsewhere.path());
      std::ofstream(elsewhere.path()) << "no folder";
      EXPECT_TRUE(fails(ST_IO, st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr), {elsewhere.path()}));
      std::swap(checkpoint, other);
    } else {
      EXPECT_TRUE(fails(ST_IO, st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr), {"rank 2"}));
      const auto info = last_error();
      EXPECT_EQ(info.rank, 2);
    }
    mine.steps(1);
    EXPECT_EQ(mine.digest(), alone);
    ASSERT_TRUE(works(st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr)));
    const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint);
    EXPECT_EQ(progress.saved, 2);
  });
}

TEST(ZeroInGroup, ASaveUnderWayIsCommittedThoughTheGroupEnds) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder;
  std::string saved;
  std::barrier<> all_save(2);
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    ZeroRank mine(text, with_zero(2), own);
    mine.steps(1);
    const std::string digest = mine.digest();
    if (rank == 0) saved = digest;
    HeldCheckpoint checkpoint;
    mine.open_with(own, folder, rank, checkpoint, 1);
    HeldPending pending;
    EXPECT_TRUE(works(st_trainer_save_collective(mine.trainer, checkpoint, nullptr, pending.out())));
    all_save.arrive_and_wait();
    if (rank == 1) {
      ASSERT_TRUE(works(st_communicator_abort(own, "enough")));
    }
    EXPECT_TRUE(fails(ST_RANK_FAILED, mine.step(), {"enough"}));
    EXPECT_EQ(filled(st_save_progress_init, st_checkpoint_progress, checkpoint).saved, 0);
    checkpoint.reset();  // lifts the limit of its write rate
    EXPECT_TRUE(works(st_pending_wait(pending, -1)));
  });
  auto options = filled(st_checkpoint_options_init);
  options.read_only = 1;
  const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, ranks.context, folder.c_str(), &options);
  EXPECT_EQ(text_of(st_checkpoint_hash, checkpoint, nullptr), saved);
}

TEST(ZeroInGroup, WhatOneRankGivesWronglyToASaveOrResumeIsToldOnAllAtOnce) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder;
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    ZeroRank mine(text, with_zero(1), own);
    mine.steps(1);
    const std::string saved = mine.digest();
    HeldCheckpoint checkpoint;
    mine.open_with(own, folder, rank, checkpoint);
    const auto start = std::chrono::steady_clock::now();
    const auto told = [&](int wrong) { return std::string(rank == wrong ? "" : "rank " + std::to_string(wrong)); };
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_save_collective(mine.trainer, checkpoint, rank == 2 ? "no JSON" : nullptr, nullptr),
                      {told(2)}));
    EXPECT_TRUE(
        fails(ST_INVALID_HANDLE,
              st_trainer_save_collective(mine.trainer, rank == 1 ? nullptr : static_cast<st_checkpoint*>(checkpoint), nullptr, nullptr),
              {told(1)}));
    ASSERT_TRUE(works(st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr)));
    mine.steps(1);
    const std::string before = mine.digest();
    auto options = filled(st_read_options_init);
    options.name_count = rank == 1 ? -1 : 0;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_resume(mine.trainer, checkpoint, nullptr, &options, nullptr), {told(1)}));
    const char* const name = rank == 0 ? nullptr : "step-00000001";
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, st_trainer_resume(mine.trainer, checkpoint, name, nullptr, nullptr),
                      {"rank 1", "\"step-00000001\"", "rank 0", "the newest"}));
    EXPECT_EQ(mine.digest(), before);
    ASSERT_TRUE(works(st_trainer_resume(mine.trainer, checkpoint, nullptr, nullptr, nullptr)));
    EXPECT_EQ(mine.digest(), saved);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "half the deadline";
  });
}

TEST(ZeroInGroup, WhatOneRankGivesWronglyToAReadIsToldOnAllAtOnce) {
  const std::string text = text_file("zero.txt", 3000);
  const Keys keys = {{"ema_decay", "0.5"}};
  const std::string alone = state_alone(text, 2, keys);
  for (const int zero : {1, 3}) {
    const CheckpointFolder folder;
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      ZeroRank mine(text, with_zero(zero, keys), own);
      mine.steps(1);
      HeldCheckpoint checkpoint;
      mine.open_with(own, folder, rank, checkpoint);
      const auto start = std::chrono::steady_clock::now();
      const auto told = [&](int wrong) { return std::string(rank == wrong ? "" : "rank " + std::to_string(wrong)); };
      const char* hex = nullptr;
      std::vector<float> values;
      EXPECT_TRUE(
          fails(ST_NOT_FOUND, mine.read(st_trainer_gradient_collective, rank == 1 ? "nothing" : kWeight, values), {told(1), "nothing"}));
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT,
                        rank == 2 ? st_trainer_average_collective(mine.trainer, kWeight, nullptr)
                                  : mine.read(st_trainer_average_collective, kWeight, values),
                        {told(2)}));
      EXPECT_TRUE(fails(ST_RANK_MISMATCH,
                        mine.read(rank == 2 ? st_trainer_average_collective : st_trainer_gradient_collective, kWeight, values),
                        {"rank 2"}));
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_digest_collective(mine.trainer, rank == 1 ? nullptr : &hex), {told(1)}));
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_save_every_collective(mine.trainer, checkpoint, rank == 2 ? -1 : 2, 0), {told(2)}));
      EXPECT_TRUE(fails(ST_RANK_MISMATCH, st_trainer_save_every_collective(mine.trainer, checkpoint, rank == 2 ? 3 : 2, 0),
                        {"rank 2", "every 3", "every 2"}));
      EXPECT_TRUE(fails(ST_RANK_MISMATCH,
                        rank == 1 ? st_trainer_use_average(mine.trainer) : st_trainer_digest_collective(mine.trainer, &hex),
                        {"rank 1", "averages", "digest"}));
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "half the deadline";
      mine.steps(1);
      EXPECT_EQ(mine.digest(), alone);
    });
  }
}

TEST(ZeroInGroup, OnlyRankZeroHasTheFolder) {
  const std::string text = text_file("zero.txt", 3000);
  const CheckpointFolder folder, elsewhere;
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    ZeroRank mine(text, with_zero(1), own);
    mine.steps(1);
    HeldCheckpoint checkpoint;
    mine.open(rank == 0 ? folder : elsewhere, 0, checkpoint);
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr), {"read_only"}));
    mine.steps(1);
    HeldCheckpoint right;
    if (rank != 0) {
      mine.open(folder, rank, right);
      std::swap(checkpoint, right);
    }
    ASSERT_TRUE(
        works(st_trainer_save_collective(mine.trainer, checkpoint, nullptr, nullptr)));  // the refused call counted as a call on both ranks
    const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint);
    EXPECT_EQ(progress.saved_step, 2);
  });
}

}  // namespace

// A rank with an invalid request, a failing callback, a cancel or different settings: all ranks return at once with the reason.
#include <chrono>
#include <functional>

#include "group_rank.h"
#include "sanitized.h"
#include "sine_rows.h"
#include "squared_text.h"

namespace {

using namespace st::test;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kAtOnce(5);  // on a busy machine; the deadline of ThreadRanks is 20 s

class FailingTrainers : public testing::Test {
 protected:
  const std::string text = text_file("failing_trainers.txt", 3000);

  /// Three ranks have made a step; then rank 1 makes this call instead of another step. It fails with `status`, and the other ranks get the
  /// reason.
  void expect_told(st_status status, std::initializer_list<std::string_view> words,
                   const std::function<st_status(GroupRank&, st_communicator*)>& call) const {
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      JoinedRank mine(text, {}, own);
      ASSERT_TRUE(works(mine.step()));
      const std::string before = mine.digest();
      const auto began = steady_clock::now();
      if (rank == 1) {
        EXPECT_TRUE(fails(status, call(mine, own), words));
      } else {
        std::vector<std::string_view> told = {"rank 1"};
        told.insert(told.end(), words);
        const st_status got = mine.step();
        EXPECT_EQ(got, ST_RANK_FAILED);
        for (const std::string_view word : told) EXPECT_NE(std::string(st_last_error()).find(word), std::string::npos) << st_last_error();
      }
      EXPECT_LT(steady_clock::now() - began, kAtOnce);
      EXPECT_EQ(mine.digest(), before);
      EXPECT_TRUE(fails(ST_RANK_FAILED, st_communicator_barrier(own, "after it", nullptr)));
    });
  }
};

TEST_F(FailingTrainers, ABatchThatDoesNotFitOneRankIsToldToAll) {
  expect_told(ST_INVALID_ARGUMENT, {"tokens"}, [](GroupRank& mine, st_communicator*) {
    TokenBatch batch(4, 5);
    batch.views()[0].view.dtype = ST_F32;
    return st_trainer_step(mine.trainer, 2, batch.views(), nullptr);
  });
  expect_told(ST_INVALID_ARGUMENT, {"batch is NULL"},
              [](GroupRank& mine, st_communicator*) { return st_trainer_step(mine.trainer, 2, nullptr, nullptr); });
  expect_told(ST_INVALID_ARGUMENT, {"nanoseconds is -1"}, [](GroupRank& mine, st_communicator*) {
    int32_t done = 0;
    return st_trainer_advance(mine.trainer, 0, nullptr, -1, &done, nullptr);
  });
}

TEST_F(FailingTrainers, ALearningRateThatOneRankCannotMakeIsToldToAll) {
  expect_told(ST_CALLBACK, {"learning rate"}, [](GroupRank& mine, st_communicator*) {
    const auto refuse = [](void*, int64_t, double*) -> st_status { return ST_CALLBACK; };
    EXPECT_TRUE(works(st_trainer_set_schedule(mine.trainer, refuse, nullptr, nullptr)));
    return mine.step();
  });
}

TEST_F(FailingTrainers, ARunThatOneRanksHostEndsEndsAll) {
  expect_told(ST_INVALID_ARGUMENT, {"steps is 0"},
              [](GroupRank& mine, st_communicator*) { return st_trainer_run(mine.trainer, 0, nullptr, nullptr); });
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    JoinedRank mine(text, {}, own);
    const st_on_step_fn refuse = [](void*, const st_step_report* report) { return st_status{report->step == 2 ? ST_IO : ST_OK}; };
    const st_status status = st_trainer_run(mine.trainer, 9, rank == 1 ? refuse : nullptr, nullptr);
    EXPECT_EQ(status, rank == 1 ? ST_CALLBACK : ST_RANK_FAILED);
    EXPECT_NE(std::string(st_last_error()).find("on_step returned"), std::string::npos) << st_last_error();
    auto report = filled(st_evaluation_init);
    EXPECT_TRUE(works(st_trainer_evaluate(mine.trainer, mine.run.data, &report))) << "the state is that of a whole step";
  });
}

TEST_F(FailingTrainers, ATrainerThatOneRankCannotMakeIsToldToAll) {
  struct Case {
    std::map<std::string, std::string> changed;
    bool has_place;  // for the handle
    std::string_view word;
  };
  for (const Case& c :
       {Case{{{"ranks", "4"}}, true, "has ranks 4"}, Case{{{"batch", "1000000000"}}, true, "bytes"}, Case{{}, false, "NULL"}}) {
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      GroupRank mine(text, rank == 2 ? c.changed : std::map<std::string, std::string>());
      const auto began = steady_clock::now();
      if (rank == 2) {
        EXPECT_NE(
            st_trainer_create_in_group(mine.run.model, mine.run.recipe, mine.run.data, own, c.has_place ? mine.trainer.out() : nullptr),
            ST_OK);
        EXPECT_NE(std::string(st_last_error()).find(c.word), std::string::npos) << st_last_error();
      } else {
        EXPECT_TRUE(fails(ST_RANK_FAILED, mine.join(own), {"rank 2", c.word}));
      }
      EXPECT_LT(steady_clock::now() - began, kAtOnce);
    });
  }
}

TEST_F(FailingTrainers, ARankWhoseMemoryIsTooSmallIsNamedOnAll) {
  const Keys step = {{"batch", "64"}, {"micro_batches", "3"}};
  const auto with = [&](Keys keys) {
    keys.insert(step.begin(), step.end());
    return keys;
  };
  int64_t least = 0;  // bytes of a step that fits
  const Keys of_least = with({{"zero", "3"}, {"recompute", "\"full\""}});
  ThreadRanks(3).each([&](int rank, st_communicator* own) {
    const JoinedRank mine(text, of_least, own);
    if (rank == 2) least = number_in(plan_of(mine.trainer), "device_total");
  });
  auto small = filled(st_context_options_init);
  small.memory_limit = least / 2;  // the model fits
  for (const Keys& keys : {with({}), with({{"zero", "3"}}), with({{"zero", "3"}, {"recompute", "\"auto\""}})}) {
    if (st::kSanitized && keys.contains("recompute")) continue;  // it would use up the 4 s that the search for changes has
    const int refusing = keys.contains("recompute") ? 0 : 2;     // rank 0 chooses the scopes of all, in the least memory of any
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      GroupRank mine(text, keys, rank == 2 ? &small : nullptr);
      const auto began = steady_clock::now();
      EXPECT_EQ(mine.join(own), rank == refusing ? ST_OUT_OF_MEMORY : ST_RANK_FAILED);
      const std::string message = st_last_error();
      EXPECT_NE(message.find(refusing == 0 ? "The rank with the least memory is rank 2" : "a training step needs "), std::string::npos)
          << message;
      if (!st::kSanitized) EXPECT_NE(message.find("recipe that fit: batch 64 -> "), std::string::npos) << message;
      if (rank != refusing) {
        EXPECT_EQ(last_error().rank, refusing);
        EXPECT_NE(message.find(refusing == 0 ? "rank 0" : "rank 2"), std::string::npos) << message;
      }
      EXPECT_LT(steady_clock::now() - began, kAtOnce);
    });
  }
}

TEST_F(FailingTrainers, ALearningRateThatIsSetOnOneRankIsShownBeforeTheUpdate) {
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    JoinedRank mine(text, {{"lr_schedule", "\"constant\""}, {"warmup", "0"}}, own);
    ASSERT_TRUE(works(mine.step()));
    const std::string before = mine.digest();
    if (rank == 1) {
      ASSERT_TRUE(works(st_trainer_set(mine.trainer, "lr", "0.002")));
    }
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, mine.step(), {"rank 1", "has learning rate 0.002, rank 0 0.001"}));
    const auto info = last_error();
    EXPECT_EQ(info.rank, 1);
    EXPECT_EQ(mine.digest(), before);
    if (rank != 1) {
      ASSERT_TRUE(works(st_trainer_set(mine.trainer, "lr", "0.002")));
    }
    EXPECT_TRUE(works(mine.step()));
  });
}

TEST_F(FailingTrainers, ACancelOfWhateverKindEndsTheWaitForTheOthers) {
  for (int by = 0; by < 4; ++by) {
    const ThreadRanks ranks(2);
    std::atomic<bool> has_ended = false;
    ranks.each([&](int rank, st_communicator* own) {
      JoinedRank mine(text, {}, own);
      ASSERT_TRUE(works(mine.step()));
      if (rank == 1) {
        while (!has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(fails(ST_RANK_FAILED, mine.step(), {"rank 0", "cancelled"}));
        return;
      }
      if (by == 0) {
        EXPECT_TRUE(works(st_trainer_cancel(mine.trainer)));  // before the step, and for it
      }
      std::thread host([&] {
        if (by == 1) cancel_until(has_ended, mine.run.context);  // not the communicator's context
        if (by == 2) cancel_until(has_ended, ranks.context);
        while (by == 3 && !has_ended) {
          EXPECT_TRUE(works(st_trainer_cancel(mine.trainer)));
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
      const auto began = steady_clock::now();
      EXPECT_TRUE(fails(ST_CANCELLED, mine.step())) << by;
      EXPECT_LT(steady_clock::now() - began, kAtOnce);
      has_ended = true;
      host.join();
    });
  }
}

TEST_F(FailingTrainers, ADataCallbackThatFailsOnOneRankEndsTheStepOfAll) {
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    const auto context = hold<HeldContext>(st_context_create, nullptr);
    SineFill fill;
    fill.before([&](int64_t call) { return rank == 1 && call == 1 ? ST_IO : ST_OK; });  // of its second step
    HeldData data;
    ASSERT_TRUE(works(fill.open(context, data.out())));
    SineTrainer alone(context, nullptr);
    const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 2, "micro_batches": 3, "warmup": 0, "threads": 1})");
    auto trainer = hold<HeldTrainer>(st_trainer_create_in_group, alone.model, recipe, data, own);
    st_status status = ST_OK;
    while (status == ST_OK) status = st_trainer_step(trainer, 0, nullptr, nullptr);
    EXPECT_EQ(status, rank == 1 ? ST_CALLBACK : ST_RANK_FAILED) << st_last_error();
    EXPECT_NE(std::string(st_last_error()).find("fill returned 14"), std::string::npos) << st_last_error();
    trainer.reset();
    auto report = filled(st_evaluation_init);
    EXPECT_TRUE(works(st_trainer_evaluate(alone.trainer, data, &report))) << "the host can continue to use model and data";
  });
}

TEST_F(FailingTrainers, AHostOpThatFailsOnOneOfTheThreadsEndsTheStepAndTheNextOneWorks) {
  std::atomic<int> calls{0}, fails_at{-1};
  HostSquare square;
  const auto count = [&] { return calls++ == fails_at ? st_status{ST_IO} : st_status{ST_OK}; };
  square.forward = square.backward = count;
  const SquaredText run(&square), undisturbed(nullptr);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4, "warmup": 0, "ranks": 3, "threads": 1})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, run.model, recipe, run.data);
  const auto other = hold<HeldTrainer>(st_trainer_create, undisturbed.model, recipe, undisturbed.data);
  const auto digest = [](st_trainer* of) { return text_of(st_trainer_digest, of); };
  for (int call = 0; call < 6; ++call) {  // of any rank, forward and backward
    const std::string before = digest(trainer);
    calls = 0;
    fails_at = call;
    EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_step(trainer, 0, nullptr, nullptr), {"square"}));
    EXPECT_EQ(digest(trainer), before);
    fails_at = -1;
    ASSERT_TRUE(works(st_trainer_step(trainer, 0, nullptr, nullptr)));
    ASSERT_TRUE(works(st_trainer_step(other, 0, nullptr, nullptr)));
    EXPECT_EQ(digest(trainer), digest(other));
  }
}

TEST_F(FailingTrainers, TwoTrainingsOfOneProcessAreIndependent) {
  const std::string alone = digest_alone(text, 4);
  const ThreadRanks doomed(2), whole(2);
  std::thread beside([&] {
    doomed.each([&](int rank, st_communicator* own) {
      JoinedRank mine(text, {}, own);
      ASSERT_TRUE(works(mine.step()));
      if (rank == 1) {
        EXPECT_TRUE(works(st_communicator_abort(own, "enough of this one")));
      }
      st_status status = ST_OK;
      while (status == ST_OK) status = mine.step();
      EXPECT_TRUE(fails(ST_RANK_FAILED, status, {"rank 1", "enough of this one"}));
    });
  });
  whole.each([&](int, st_communicator* own) {
    JoinedRank mine(text, {}, own);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(works(mine.step()));
    EXPECT_EQ(mine.digest(), alone);
  });
  beside.join();
}

}  // namespace

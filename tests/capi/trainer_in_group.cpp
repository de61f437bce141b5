// Trainers that are each one rank of a communicator: their results, and the errors of ranks that do not belong to one run.
#include <map>

#include "group_rank.h"

namespace {

using namespace st::test;

/// The rows of `all` that belong to a rank: micro-batches of two rows, in turn.
void take_own_rows(const TokenBatch& all, int64_t rows, int rank, int size, TokenBatch& own) {
  own.tokens.clear();
  own.targets.clear();
  for (int64_t row = 0; row < rows; ++row) {
    if (row / 2 % size != rank) continue;
    for (int64_t i = row * kSmallContext; i < (row + 1) * kSmallContext; ++i) {
      own.tokens.push_back(all.tokens[static_cast<size_t>(i)]);
      own.targets.push_back(all.targets[static_cast<size_t>(i)]);
    }
  }
  // Refilled vectors may have moved.
  own.views()[0].view.data = own.tokens.data();
  own.views()[1].view.data = own.targets.data();
}

TEST(TrainerInGroup, IsGivenItsOwnRowsAlone) {
  for (const int64_t rows : {14, 7, 3}) {
    const TokenBatch all(rows, 5);
    const SmallRun alone("", nullptr, kGroupRecipe);
    ASSERT_TRUE(works(st_trainer_step(alone.trainer, 2, all.views(), nullptr)));
    const std::string state = alone.digest();
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      JoinedRank mine("", {}, own);
      int64_t count = 0;
      for (int64_t row = 0; row < rows; ++row) count += row / 2 % 3 == rank ? 1 : 0;
      TokenBatch batch(count, 1);
      take_own_rows(all, rows, rank, 3, batch);
      ASSERT_TRUE(works(st_trainer_step(mine.trainer, 2, batch.views(), nullptr)));
      EXPECT_EQ(mine.digest(), state) << rows << " rows";
    });
  }
}

TEST(TrainerInGroup, RowsThatAreNotOfOneStepAreToldOnAll) {
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    JoinedRank mine("", {}, own);
    const TokenBatch batch(rank == 0 ? 2 : 4, 5);
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, st_trainer_step(mine.trainer, 2, batch.views(), nullptr), {"rank 0", "2 rows", "4", "6 rows"}));
    const TokenBatch right(2, 5);
    EXPECT_TRUE(works(st_trainer_step(mine.trainer, 2, right.views(), nullptr)));
  });
}

TEST(TrainerInGroup, RanksOfAnotherRunAreRefusedWithBothSidesOnAll) {
  const std::string text = text_file("group.txt", 3000), other = text_file("other.txt", 3001);
  struct Case {
    std::string text;
    std::map<std::string, std::string> changed;
    std::initializer_list<std::string_view> words;
  };
  for (const Case& c : {Case{text, {{"lr", "0.002"}}, {"rank 1", "has lr 0.002, rank 0 has 0.001"}},
                        Case{text, {{"bucket", "4096"}}, {"has bucket 4096, rank 0 has 26214400"}},
                        Case{text, {{"optimizer", "\"lion\""}, {"batch", "1"}}, {"has batch 1, rank 0 has 2", "more"}},
                        Case{other, {}, {"rank 1", "data"}}}) {
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      GroupRank mine(rank == 1 ? c.text : text, rank == 1 ? c.changed : std::map<std::string, std::string>());
      EXPECT_TRUE(fails(ST_RANK_MISMATCH, mine.join(own), c.words));
      const auto info = last_error();
      EXPECT_EQ(info.rank, 1);
      EXPECT_TRUE(works(st_communicator_barrier(own, "the group is whole", nullptr)));
    });
  }
}

TEST(TrainerInGroup, WeightsThatDifferAreNamedBeforeTheFirstStepAndByReplicaCheck) {
  const std::string text = text_file("group.txt", 3000);
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    JoinedRank mine(text, {{"replica_check", "2"}}, own);
    const auto expect_named = [&](int odd) {
      EXPECT_TRUE(fails(ST_RANK_MISMATCH, mine.step(), {"replica check", GroupRank::kBias, "1 of"}));
      const auto info = last_error();
      EXPECT_EQ(info.rank, odd);
      EXPECT_STREQ(info.tensor, GroupRank::kBias);
    };
    if (rank == 2) {
      ASSERT_TRUE(works(mine.set_bias(0.5F)));
    }
    expect_named(2);
    ASSERT_TRUE(works(mine.set_bias(0.25F)));  // on all ranks
    ASSERT_TRUE(works(mine.step()));
    if (rank == 0) {
      ASSERT_TRUE(works(mine.set_bias(0.5F)));
    }
    ASSERT_TRUE(works(mine.step()));  // nothing is checked here
    expect_named(0);
  });
}

// The rank's own handles are free, but the other ranks already wait.
TEST(TrainerInGroup, WeightsThatAnotherTrainerUpdatesEndTheStepOfAll) {
  const std::string text = text_file("group.txt", 3000);
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    GroupRank mine(text);
    const auto other = hold<HeldTrainer>(st_trainer_create, mine.run.model, mine.run.recipe, mine.run.data);
    ASSERT_TRUE(works(mine.join(own)));
    ASSERT_TRUE(works(mine.step()));
    if (rank == 0) {
      EXPECT_TRUE(fails(ST_RANK_FAILED, mine.step(), {"rank 1", "not finished its update"}));
      return;
    }
    int32_t done = 0;
    while (done == 0 && mine.set_bias(0) != ST_BUSY) ASSERT_TRUE(works(st_trainer_advance(other, 0, nullptr, 0, &done, nullptr)));
    ASSERT_EQ(done, 0);
    EXPECT_TRUE(fails(ST_BUSY, mine.step(), {"not finished its update"}));
    while (done == 0) ASSERT_TRUE(works(st_trainer_advance(other, 0, nullptr, 0, &done, nullptr)));
  });
}

TEST(TrainerInGroup, RefusesAnotherNumberOfRanks) {
  const std::string text = text_file("group.txt", 3000);
  const ThreadRanks ranks(2);
  ranks.each([&](int, st_communicator* own) {
    GroupRank mine(text, {{"ranks", "3"}});
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, mine.join(own), {"has ranks 3", "communicator has 2"}));
  });
}

}  // namespace

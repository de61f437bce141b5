// Trainers that are ranks in separate processes, one of which is killed or stopped: at its start, in its forward, in an exchange, in a
// save. Checks what st_trainer_step reports on the others, how soon it returns, and that their processes continue.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "forked_ranks.h"
#include "shared_job.h"
#include "squared_text.h"

namespace st {
namespace {

using namespace st::test;

/// Throws the error of a C call as an Error, for say_outcome().
void must(st_status status) {
  if (status == ST_OK) return;
  Error error(static_cast<Code>(status), st_last_error());
  auto info = filled(st_error_info_init);
  if (st_last_error_info(&info) == ST_OK) {
    error.place.rank = info.rank;
    error.place.collective = info.collective == nullptr ? "" : info.collective;
  }
  throw error;
}

enum class Moment { start, forward, exchange, save };
const char* name_of(Moment moment) {
  constexpr const char* kNames[] = {"start", "forward", "exchange", "save"};
  return kNames[static_cast<int>(moment)];
}

/// A process that is one rank of a training. "now" is sent at the chosen moment, by the victim or by the rank that keeps it waiting.
struct Rank {
  std::string job;
  int rank = 0, size = 3, victim = 0;
  Moment moment = Moment::forward;
  int64_t deadline_milliseconds = 20000;
  int signal_to_self = SIGKILL;

  void live(const ForkedRanks::Say& say) const {
    constexpr int kCalls = 5;  // forwards before the moment
    int calls = 0;
    HostSquare square;
    const SquaredText run(&square);
    auto options = filled(st_communicator_options_init);
    options.deadline_milliseconds = deadline_milliseconds;
    HeldCommunicator group;
    must(st_communicator_processes(run.context, job.c_str(), rank, size, &options, group.out()));
    HeldRecipe recipe;
    HeldTrainer trainer;
    must(st_recipe_create(R"({"batch": 2, "micro_batches": 6, "warmup": 0, "threads": 1})", recipe.out()));
    square.forward = [&]() -> st_status {
      if (++calls != kCalls) return ST_OK;
      if (moment == Moment::forward && rank == victim) {
        say(text("now ", static_cast<int64_t>(os::seconds() * 1e6)));
        raise(signal_to_self);
      }
      if (moment == Moment::exchange && rank == (victim + 1) % size) {  // the victim waits for this rank
        say("now");
        sleep_for(0.3);
      }
      return ST_OK;
    };
    if (moment == Moment::start && rank == victim) {
      say(text("now ", static_cast<int64_t>(os::seconds() * 1e6)));
      raise(signal_to_self);
    }
    say_outcome(say, [&] {
      must(st_trainer_create_in_group(run.model, recipe, run.data, group, trainer.out()));
      for (int step = 1;; ++step) {
        must(st_trainer_step(trainer, 0, nullptr, nullptr));
        if (moment == Moment::save && rank == victim && step == 2) save_on(run.context, trainer, say);
      }
    });
    trainer.reset();
    group.reset();
    must(st_trainer_step(run.trainer, 0, nullptr, nullptr));  // the process continues and trains alone
    say("lives");
  }

  std::string folder() const { return text(testing::TempDir(), "dying_trainers_", std::hash<std::string>()(job)); }

  void save_on(st_context* context, st_trainer* trainer, const ForkedRanks::Say& say) const {
    HeldCheckpoint checkpoint;
    must(st_checkpoint_create(context, folder().c_str(), nullptr, checkpoint.out()));
    must(st_trainer_save(trainer, checkpoint, nullptr, nullptr));
    say("now");
    for (;;) must(st_trainer_save(trainer, checkpoint, nullptr, nullptr));
  }
};

/// Checks the outcome of each survivor and that it continues; returns the longest time from `killed` to an outcome.
double expect_named(ForkedRanks& ranks, const Rank& each, Code code, double killed) {
  double longest = 0;
  for (int rank = 0; rank < each.size; ++rank) {
    if (rank == each.victim) continue;
    const Outcome outcome = outcome_from(ranks.next_line(rank));
    EXPECT_EQ(outcome.code, code) << outcome.message;
    EXPECT_EQ(outcome.rank, each.victim) << outcome.message;
    EXPECT_NE(outcome.message.find(text("rank ", each.victim, " (", os::host_name(), ", process ", ranks.process_of(each.victim), ")")),
              std::string::npos)
        << outcome.message;
    EXPECT_NE(outcome.message.find("last collectives"), std::string::npos) << outcome.message;
    longest = std::max(longest, outcome.when - killed);
    EXPECT_EQ(ranks.next_line(rank), "lives");
  }
  return longest;
}

/// Expects the committed checkpoint, whatever happened to the save. In a child, because a process that has used the library cannot fork
/// ranks.
void expect_whole_checkpoint(const Rank& each) {
  ForkedRanks reader(1, [&](int, const ForkedRanks::Say& say) {
    HeldContext context;
    HeldCheckpoint left;
    const char* list = "";
    must(st_context_create(nullptr, context.out()));
    must(st_checkpoint_create(context, each.folder().c_str(), nullptr, left.out()));
    must(st_checkpoint_list(left, &list));
    say(list);
    must(st_checkpoint_verify(left, nullptr, &list));
    say(list);
  });
  const std::string list = reader.next_line(0), newest = reader.next_line(0);
  EXPECT_NE(list.find("\"problem\":null"), std::string::npos) << list;
  EXPECT_EQ(list.find("\"problem\":\""), std::string::npos) << list;
  EXPECT_NE(newest.find("\"problems\":[]"), std::string::npos) << newest;
  std::filesystem::remove_all(each.folder());
}

double seconds_in(const std::string& now) { return static_cast<double>(std::stoll(now.substr(4))) * 1e-6; }

TEST(DyingTrainers, AKillAtEachMomentIsNamedByEveryStepWithinASecond) {
  std::random_device device;
  std::mt19937 random(device());
  for (const Moment moment : {Moment::start, Moment::forward, Moment::exchange, Moment::save})
    for (const int victim : {0, 2}) {
      SCOPED_TRACE(text("rank ", victim, " is killed in ", name_of(moment)));
      Rank each{.job = own_job(text(name_of(moment), victim)), .victim = victim, .moment = moment};
      std::filesystem::remove_all(each.folder());
      ForkedRanks ranks(each.size, [&](int rank, const ForkedRanks::Say& say) {
        Rank mine = each;
        mine.rank = rank;
        mine.live(say);
      });
      const bool kills_itself = moment == Moment::start || moment == Moment::forward;
      const std::string now = ranks.next_line(moment == Moment::exchange ? (victim + 1) % each.size : victim);
      ASSERT_TRUE(now.starts_with("now")) << now;
      double killed = 0;
      if (kills_itself) {
        killed = seconds_in(now);
      } else {
        sleep_for(moment == Moment::exchange ? 0.05 : static_cast<double>(random() % 20'000) * 1e-6);
        killed = os::seconds();
        ranks.signal(victim, SIGKILL);
      }
      const double longest = expect_named(ranks, each, Code::rank_failed, killed);
      EXPECT_LT(longest, 1);
      std::printf("rank %d killed in %s: named on all survivors in %.0f ms\n", victim, name_of(moment), longest * 1e3);
      if (moment == Moment::save) expect_whole_checkpoint(each);
    }
}

TEST(DyingTrainers, AStoppedOneIsNamedByEveryStepAtTheDeadline) {
  Rank each{
      .job = own_job("stopped trainer"), .victim = 1, .moment = Moment::forward, .deadline_milliseconds = 1200, .signal_to_self = SIGSTOP};
  ForkedRanks ranks(each.size, [&](int rank, const ForkedRanks::Say& say) {
    Rank mine = each;
    mine.rank = rank;
    mine.live(say);
  });
  const std::string now = ranks.next_line(each.victim);
  ASSERT_TRUE(now.starts_with("now")) << now;
  const double longest = expect_named(ranks, each, Code::timeout, seconds_in(now));
  EXPECT_GT(longest, 0.6);  // their wait may have begun before the stop
  EXPECT_LT(longest, 1.2 + 0.5);
  std::printf("stopped with a deadline of 1.2 s: named on all survivors in %.0f ms\n", longest * 1e3);
}

}  // namespace
}  // namespace st

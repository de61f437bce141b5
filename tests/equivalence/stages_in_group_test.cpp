// Pipeline stages on ranks of a host's group: each model holds the parameters of its own stage, and all results are bitwise those of one
// rank (traps.md, T17).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/memory_account.h"
#include "checkpoint/checkpoint_manager.h"
#include "plan/wire_bytes.h"
#include "rank_group.h"
#include "rank_training.h"
#include "resumed_by.h"
#include "saved_trainer.h"
#include "shown_to_host.h"
#include "staged_training.h"
#include "thrown_error.h"

namespace st {
namespace {

int size_of(const Topology& t) { return static_cast<int>(t.stages * t.data); }

/// Calls part(trainer, communicator) on each rank of the topology.
void each_rank_of(const Case& c, const Topology& t, bool is_late, const std::function<void(Trainer&, Communicator&)>& part) {
  each_of_group(size_of(t), [&](int, Communicator& own) {
    const Training training = staged(c, t);
    const auto trainer = in_group(training, own, model_of(training, is_late), training.data());
    part(*trainer, own);
  });
}

TEST(StagesInGroup, LeaveTheBitsOfOneRank) {
  const Case seven{.name = "", .keys = {}, .micro_batches = 7};  // the last round is not whole
  const Outcome alone = outcome_of(*staged(seven, {}).trainer());
  for (const Topology& t :
       {Topology{.stages = 2}, Topology{.stages = 3, .schedule = "zb-h1"}, Topology{.stages = 4, .schedule = "interleaved"},
        Topology{.stages = 2, .data = 2}, Topology{.stages = 2, .data = 2, .zero = 1, .schedule = "zb-v"},
        Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "gpipe"}, Topology{.stages = 2, .data = 3, .zero = 3},
        Topology{.stages = 3, .data = 2, .zero = 3, .schedule = "interleaved"}})
    each_rank_of(seven, t, t.zero % 2 == 0, [&](Trainer& trainer, Communicator&) { EXPECT_EQ(outcome_of(trainer), alone) << text_of(t); });
}

TEST(StagesInGroup, LeaveTheBitsOfOneRankByRecipe) {
  for (const Case& c :
       {Case{.name = "fp16", .keys = skipping_fp16()},
        Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}, {"optimizer", "\"muon\""}, {"dropout", "0.1"}}},
        Case{.name = "frozen", .keys = {{"groups", R"([{"pattern": "block.0.*", "frozen": true}])"}, {"ema_decay", "0.9"}}},
        Case{.name = "offload", .keys = {{"offload", "\"optimizer\""}, {"gradient_dtype", "\"bf16\""}, {"replica_check", "2"}}},
        Case{.name = "noise", .keys = {{"gradient_noise_scale", "true"}, {"find_nan", "true"}}},
        Case{.name = "recompute", .keys = {{"recompute", "\"auto\""}}}}) {
    const Outcome alone = outcome_of(*staged(c, {}).trainer());
    expect_skips_and_updates(c, alone);
    for (const Topology& t : {Topology{.stages = 2, .data = 2, .zero = 1, .schedule = "zb-h1"}, Topology{.stages = 3},
                              Topology{.stages = 2, .data = 2, .zero = 3, .schedule = "zb-v"}})
      each_rank_of(c, t, true,
                   [&](Trainer& trainer, Communicator&) { EXPECT_EQ(outcome_of(trainer), alone) << c.name << ", " << text_of(t); });
  }
}

/// Evaluation, averages, gradients and weights of every stage are read on every rank.
TEST(StagesInGroup, ShowWhatOneRankDoes) {
  const Case c{.name = "", .keys = {{"ema_decay", "0.5"}}, .micro_batches = 3};
  const ShownToHost expected = shown_to_host(*staged(c, {}).trainer(), nullptr);
  for (const int64_t zero : {0, 1, 3})
    each_rank_of(c, {.stages = 2, .data = 2, .zero = zero}, zero > 0, [&](Trainer& trainer, Communicator& own) {
      const ShownToHost shown = shown_to_host(trainer, &own);
      EXPECT_EQ(shown.losses, expected.losses) << "zero " << zero;
      EXPECT_TRUE(shown.values == expected.values) << "zero " << zero;
      EXPECT_EQ(shown.weights, expected.weights) << "zero " << zero;
      EXPECT_EQ(shown.state, expected.state) << "zero " << zero;
    });
}

/// T22: saved on one topology, in a group or on threads, loaded on another.
TEST(StagesInGroup, GoOnWhereAnotherTopologyWasSaved) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}};
  const Outcome whole = outcome_of(*staged(c, {}).trainer());
  const ScratchFolder folder("stages_in_group_test");
  const std::vector<Topology> all = {{.stages = 2, .schedule = "zb-h1"},
                                     {.stages = 2, .data = 2},
                                     {.stages = 2, .data = 2, .zero = 1, .schedule = "interleaved"},
                                     {.stages = 3, .data = 2, .zero = 3}};
  const auto resumed_has_bits = [&](Trainer& trainer, const std::string& from, const Outcome& before) {
    trainer.step();  // its own state gives way
    resume_from(from, trainer);
    Outcome after = outcome_of(trainer, 2);
    after.told.insert(after.told.begin(), before.told.begin(), before.told.end());
    EXPECT_EQ(after, whole) << from;
  };
  for (size_t from = 0; from < all.size(); ++from) {
    const std::string run = folder / std::to_string(from), saved = run + "/step-00000002";
    Outcome first;
    each_rank_of(c, all[from], true, [&](Trainer& trainer, Communicator& own) {
      const Outcome before = outcome_of(trainer, 2);
      if (own.rank() == 0) first = before;
      CheckpointManager manager(run, {}, trainer.model().context().memory(), {},
                                own.rank() == 0 ? CheckpointManager::Place::of_folder : CheckpointManager::Place::beside);
      manager.save_now(content_of(trainer, {}), trainer.workers());
    });
    resumed_has_bits(*staged(c, {.data = 2, .zero = 2}).trainer(), saved, first);
    resumed_has_bits(*staged(c, {.stages = 3}).trainer(), saved, first);
    for (const size_t number : resumed_by(from, all.size())) {
      const Topology& to = all[number];
      each_rank_of(c, to, false, [&](Trainer& trainer, Communicator&) { resumed_has_bits(trainer, saved, first); });
    }
  }
  const std::string of_threads = folder / "threads";
  const auto threads = staged(c, {.stages = 2, .data = 2, .zero = 2}).trainer();
  const Outcome before = outcome_of(*threads, 2);
  save(*threads, of_threads);
  each_rank_of(c, all.back(), false, [&](Trainer& trainer, Communicator&) { resumed_has_bits(trainer, of_threads, before); });
}

CountedBytes bytes_of(const Model& model, Arena arena) {
  return model.context().memory()->account().uses().of[static_cast<size_t>(role_of(arena))];
}

/// T6, T8: a stage's arenas hold its own parameters alone; with late parameters it never held more.
TEST(StagesInGroup, SendAndAllocateWhatTheirPlansSay) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}, .micro_batches = 6};
  for (const Topology& t : {Topology{.stages = 3}, Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "zb-v"},
                            Topology{.stages = 2, .data = 2, .zero = 3}}) {
    std::atomic<int64_t> elements = 0, whole = 0;  // held by all ranks; of them, of parameters that a stage's data ranks all have
    each_rank_of(c, t, true, [&](Trainer& trainer, Communicator&) {
      trainer.step();
      const int64_t before = trainer.sent_bytes()[0];
      trainer.step();
      EXPECT_EQ(trainer.sent_bytes()[0] - before, wire_bytes(trainer.plan(), c.micro_batches).all()) << text_of(t);
      const Model& model = trainer.model();
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed})
        EXPECT_EQ(bytes_of(model, arena).now, trainer.plan().memory.of(arena)) << name_of(arena) << ", " << text_of(t);
      EXPECT_EQ(bytes_of(model, Arena::parameters).peak, trainer.plan().memory.of(Arena::parameters)) << text_of(t);
      for (const SlotId id : model.parameters()) {
        elements += model.piece(id).elements;
        if (!trainer.plan().program.slot(id).type.layout.is_flat()) whole += model.piece(id).elements;
      }
    });
    EXPECT_EQ(elements - whole + whole / t.data, model_of(staged(c, {}), true)->elements()) << text_of(t);
    EXPECT_EQ(whole == 0, t.zero == 3) << text_of(t);
  }
}

/// The rows of a data rank's micro-batches, two each, of a step on the first `rows`.
class RowsOfRank {
 public:
  RowsOfRank(int64_t rows, int64_t rank, int64_t ranks) {
    const TokenRows all(12, kTokens, kVocabulary);
    for (int64_t first = 2 * rank; first < rows; first += 2 * ranks)
      for (int64_t row = first; row < std::min(first + 2, rows); ++row, ++rows_) {
        const std::vector<HostView> views = all.rows(row, 1);
        for (size_t field = 0; field < 2; ++field) {
          const auto* from = static_cast<const int32_t*>(views[field].data);
          values_[field].insert(values_[field].end(), from, from + kTokens);
        }
      }
  }
  std::vector<HostView> views() const {
    return {plain_view("tokens", DType::i32, {rows_, kTokens}, values_[0].data()),
            plain_view("targets", DType::i32, {rows_, kTokens}, values_[1].data())};
  }

 private:
  int64_t rows_ = 0;
  std::array<std::vector<int32_t>, 2> values_;
};

/// Rows come to each rank; all stages of a data rank get the same.
TEST(StagesInGroup, OnRowsOfTheHost) {
  const Case c{.name = "", .keys = {}, .micro_batches = 6};
  const Outcome alone = outcome_of_rows(*staged(c, {}).trainer(false), {12, 11, 5, 1});
  each_of_group(4, [&](int rank, Communicator& own) {
    const auto trainer = in_group(staged(c, {.stages = 2, .data = 2, .zero = 1}), own);
    Outcome outcome;
    const auto step = [&](int64_t rows) { return trainer->step(RowsOfRank(rows, rank % 2, 2).views()); };
    for (const int64_t rows : {12, 11, 5, 1}) add(outcome, step(rows));
    outcome.state = trainer->state_digest();
    EXPECT_EQ(outcome, alone);
    const Error error = error_of([&] { step(rank == 3 ? 11 : 12); });
    EXPECT_TRUE(
        is_error(error, Code::rank_mismatch, {"rank 3", "was given 5 rows", "12 rows of all ranks is 6", "stage 1 of data rank 1"}));
    step(12);
  });
}

TEST(StagesInGroup, ThatFailOnOneEndOnAll) {
  std::atomic<int> named = 0;
  each_of_group(4, [&](int rank, Communicator& own) {
    Training training = staged({.name = "", .keys = {}}, {.stages = 2, .data = 2});
    std::atomic<bool> fails = false;
    Recipe recipe = training.recipe;
    recipe.device = training.device;
    Trainer trainer(training.model(), recipe, std::make_shared<HookedRows>([&] {
                      if (fails) fail(Code::callback, "the rows are not there");
                    }),
                    PlanOptions(), &own);
    trainer.step();
    fails = rank == 2;
    const Error error = error_of([&] {
      try {
        trainer.step();
      } catch (const std::exception& why) {
        own.abort(why.what());  // as its caller must
        throw;
      }
    });
    named += error.message().find("the rows are not there") != std::string::npos ? 1 : 0;
  });
  EXPECT_EQ(named, 4);
}

TEST(StagesInGroup, RefuseWhatDoesNotFit) {
  each_of_group(3, [](int, Communicator& own) {
    Training training = staged({.name = "", .keys = {}}, {.stages = 2});
    training.recipe.ranks = 1;
    EXPECT_TRUE(is_error(error_of([&] { in_group(training, own); }), Code::invalid_argument,
                         {"3 ranks are not a multiple of 2 stages", "2 x 1 = 2"}));
  });
  for (const char* differing : {"stages", "schedule", "stage_starts"})
    each_of_group(4, [&](int rank, Communicator& own) {
      Training training = staged({.name = "", .keys = {}}, {.stages = 2, .data = 2});
      if (rank == 3)
        training.recipe.set(differing, differing == std::string("stages")     ? "4"
                                       : differing == std::string("schedule") ? "\"gpipe\""
                                                                              : "\"block.4\"");
      EXPECT_TRUE(is_error(error_of([&] { in_group(training, own); }), Code::rank_mismatch, {"rank 3", "has ", differing})) << differing;
    });
}

}  // namespace
}  // namespace st

// ZeRO-1 and -2 in a host's group with stages or tensor ranks, 16-bit weights and a context with late parameters: each rank has only its
// shards of the fp32 masters of its stage and tensor pieces, and all results are bitwise those of ranks that are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include "base/memory_account.h"
#include "changed_weight.h"
#include "checkpoint/checkpoint_manager.h"
#include "ir/cuts.h"
#include "plan/wire_bytes.h"
#include "rank_group.h"
#include "rank_training.h"
#include "resumed_by.h"
#include "saved_trainer.h"
#include "shown_to_host.h"
#include "split_training.h"

namespace st {
namespace {

constexpr int64_t kOwnTokens = 8;  // of split()'s models

Training split_by(const Case& c, const Degrees& d, const char* schedule) {
  Training made = split(c, d);
  made.recipe.schedule = schedule;
  return made;
}

/// Calls part(trainer, communicator) on each rank, whose model has only shards.
void each_rank_with_shards(const Case& c, const Degrees& d, const std::function<void(Trainer&, Communicator&)>& part,
                           const char* schedule = "1f1b") {
  each_of_group(static_cast<int>(d.ranks()), [&](int, Communicator& own) {
    const Training training = split_by(c, d, schedule);
    const auto trainer = in_group(training, own, model_of(training, true), training.data());
    const auto has_shards = [&](const Slot& slot) { return slot.role == Role::parameter && slot.type.layout.is_flat(); };
    EXPECT_EQ(std::ranges::any_of(trainer->plan().program.slots, has_shards), d.zero > 0) << text_of(d);
    part(*trainer, own);
  });
}

int64_t data_rank_of(const Degrees& d, const Communicator& own) {
  const Mesh mesh{.data = static_cast<int32_t>(d.data), .tensor = static_cast<int32_t>(d.tensor), .stage = static_cast<int32_t>(d.stages)};
  return position_of(mesh, own.rank()).data;
}

/// A data rank's rows of a step on `rows`: those of its micro-batches of two.
class RowsOfDataRank {
 public:
  RowsOfDataRank(int64_t rows, int64_t ranks, int64_t rank) {
    const TokenRows all(rows, kOwnTokens, kVocabulary);
    for (int64_t row = 0; row < rows; ++row) {
      if (row / 2 % ranks != rank) continue;
      const std::vector<HostView> views = all.rows(row, 1);
      for (size_t field = 0; field < 2; ++field) {
        const auto* from = static_cast<const int32_t*>(views[field].data);
        values_[field].insert(values_[field].end(), from, from + kOwnTokens);
      }
      ++count_;
    }
  }
  std::vector<HostView> views() const {
    return {plain_view("tokens", DType::i32, {count_, kOwnTokens}, values_[0].data()),
            plain_view("targets", DType::i32, {count_, kOwnTokens}, values_[1].data())};
  }

 private:
  int64_t count_ = 0;
  std::array<std::vector<int32_t>, 2> values_;
};

/// Steps with short micro-batches (the first step is only a short one), on the data, and after weights that the host changed.
Outcome outcome_of_all_kinds(Trainer& trainer, int64_t ranks, int64_t rank) {
  Outcome outcome;
  const auto step = [&](int64_t rows) { add(outcome, trainer.step(RowsOfDataRank(rows, ranks, rank).views())); };
  for (const int64_t rows : {1, 11, 4, 5}) step(rows);
  add(outcome, trainer.step());
  set_near(trainer.model(), "block.0.mlp.expand.weight", 0.01F);
  set_near(trainer.model(), "block.2.attention.qkv.weight", -0.02F);
  set_near(trainer.model(), "token_embedding.weight", -0.02F);
  step(3);
  add(outcome, trainer.step());
  outcome.state = trainer.state_digest();
  return outcome;
}

TEST(SplitMasters, LeaveTheBitsOfThreads) {
  const Case optimizers{
      .name = "optimizers",
      .keys = {{"precision", "\"bf16\""}, {"groups", kThreeOptimizers}, {"dropout", "0.1"}, {"find_nan", "true"}, {"bucket", "20000"}}};
  const Case skips{.name = "skips",
                   .keys = {{"precision", "\"fp16\""}, {"loss_scale_initial", "8388608"}, {"gradient_noise_scale", "true"}},
                   .micro_batches = 7};  // the last round is not whole
  const Case frozen{.name = "frozen",
                    .keys = {{"precision", "\"bf16\""},
                             {"residual_dtype", "\"bf16\""},
                             {"groups", R"([{"pattern": "block.0.*", "frozen": true}])"},
                             {"ema_decay", "0.9"},
                             {"gradient_dtype", "\"bf16\""},
                             {"replica_check", "2"},
                             {"recompute", "\"blocks\""}},
                    .micro_batches = 6};
  struct Group {
    Case of;
    Degrees d;
    const char* schedule = "1f1b";
  };
  for (const auto& [c, d, schedule] :
       {Group{optimizers, {.data = 2, .zero = 1, .stages = 2}, "zb-v"}, Group{optimizers, {.tensor = 2, .data = 3, .zero = 2}},
        Group{skips, {.data = 3, .zero = 2, .stages = 2}, "interleaved"}, Group{skips, {.tensor = 2, .data = 2, .zero = 1, .stages = 2}},
        Group{frozen, {.data = 2, .zero = 1, .stages = 3}, "gpipe"},
        Group{frozen, {.tensor = 2, .data = 2, .zero = 2, .stages = 2}, "zb-h1"}}) {
    const Outcome threads = outcome_of_all_kinds(*split(c, {.tensor = d.tensor}).trainer(), 1, 0);
    if (c.name == "skips") {
      EXPECT_TRUE(threads.skipped > 0 && threads.skipped < 7) << threads.skipped;
    }
    each_rank_with_shards(
        c, d,
        [&, &of = d, &name = c.name](Trainer& trainer, Communicator& own) {
          EXPECT_EQ(outcome_of_all_kinds(trainer, of.data, data_rank_of(of, own)), threads) << name << ", " << text_of(of);
        },
        schedule);
  }
}

/// Evaluations, averages and gradients of whole parameters on every rank; some weights are frozen.
TEST(SplitMasters, ShowWhatThreadsDo) {
  const Case c{
      .name = "",
      .keys = {{"precision", "\"bf16\""}, {"ema_decay", "0.5"}, {"groups", R"([{"pattern": "block.0.attention.*", "frozen": true}])"}},
      .micro_batches = 3};
  for (const Degrees& d : {Degrees{.data = 2, .zero = 2, .stages = 2}, Degrees{.tensor = 2, .data = 2, .zero = 1},
                           Degrees{.tensor = 2, .data = 2, .zero = 2, .stages = 2}}) {
    const ShownToHost expected = shown_to_host(*split(c, {.tensor = d.tensor}).trainer(), nullptr, "block.0.attention.");
    each_rank_with_shards(c, d, [&](Trainer& trainer, Communicator& own) {
      const ShownToHost shown = shown_to_host(trainer, &own, "block.0.attention.");
      EXPECT_EQ(shown.losses, expected.losses) << text_of(d);
      EXPECT_TRUE(shown.values == expected.values) << text_of(d);
      EXPECT_EQ(shown.weights, expected.weights) << text_of(d);
      EXPECT_EQ(shown.state, expected.state) << text_of(d);
    });
  }
}

/// T22: saved from shards, loaded into shards of other topologies, and into none.
TEST(SplitMasters, GoOnWhereAnotherTopologyWasSaved) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"ema_decay", "0.9"}, {"groups", kThreeOptimizers}}};
  const ScratchFolder folder("split_masters_test");
  const std::vector<Degrees> all = {{.data = 2, .zero = 1, .stages = 2},
                                    {.tensor = 2, .data = 2, .zero = 2},
                                    {.tensor = 2, .data = 2, .zero = 1, .stages = 2},
                                    {.data = 3, .zero = 2},
                                    {.data = 3, .zero = 2, .stages = 2}};
  for (size_t from = 0; from < all.size(); ++from) {
    const std::string run = folder / std::to_string(from), saved = run + "/step-00000002";
    const auto undisturbed = split(c, {.tensor = all[from].tensor}).trainer();
    outcome_of(*undisturbed, 2);
    const std::string state = undisturbed->state_digest();
    const Outcome next = outcome_of(*undisturbed, 2);
    each_rank_with_shards(c, all[from], [&](Trainer& trainer, Communicator& own) {
      outcome_of(trainer, 2);
      CheckpointManager manager(run, {}, trainer.model().context().memory(), {},
                                own.rank() == 0 ? CheckpointManager::Place::of_folder : CheckpointManager::Place::beside);
      CheckpointContent content = content_of(trainer, {});
      if (trainer.exchanges_ranges()) exchange_ranges(trainer, content);
      manager.save_now(content, trainer.workers());
    });
    EXPECT_EQ(CheckpointReader(saved).digest(), state) << text_of(all[from]);
    const auto resumes = [&](Trainer& trainer, const Degrees& to) {
      trainer.step();  // its own state gives way
      resume_from(saved, trainer);
      EXPECT_EQ(trainer.state_digest(), state) << text_of(all[from]) << ", then " << text_of(to);
      if (to.tensor != all[from].tensor) return;
      EXPECT_EQ(outcome_of(trainer, 2), next) << text_of(all[from]) << ", then " << text_of(to);
    };
    const Degrees threads{.tensor = all[from].tensor, .data = 2, .zero = 2};
    resumes(*split(c, threads).trainer(), threads);
    for (const size_t number : resumed_by(from, all.size()))
      each_rank_with_shards(c, all[number], [&](Trainer& trainer, Communicator&) { resumes(trainer, all[number]); });
  }
}

/// T6, T8: parameters never take more than the plan's shards, which are those of the rank's stage and pieces; copies are gathered again
/// only after the host has changed a weight.
TEST(SplitMasters, SendAndAllocateWhatTheirPlansSay) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}, .micro_batches = 6};
  for (const Degrees& d : {Degrees{.data = 3, .zero = 1, .stages = 2}, Degrees{.tensor = 2, .data = 2, .zero = 2},
                           Degrees{.tensor = 2, .data = 2, .zero = 1, .stages = 2}}) {
    std::mutex one;
    int64_t shards = 0, whole = 0, held = 0;
    each_rank_with_shards(c, d, [&](Trainer& trainer, Communicator&) {
      Model& model = trainer.model();
      const Program& program = trainer.plan().program;
      const auto sent_by_step = [&] {
        const int64_t before = trainer.sent_bytes()[0];
        trainer.step();
        return trainer.sent_bytes()[0] - before;
      };
      sent_by_step();
      const WireBytes wire = wire_bytes(trainer.plan(), c.micro_batches);
      EXPECT_EQ(sent_by_step(), wire.all()) << text_of(d);
      EXPECT_GT(wire.copies, 0) << text_of(d);
      set_near(model, "block.1.mlp.expand.weight", 0.1F);  // on a rank of another stage too: all ranks gather then
      EXPECT_EQ(sent_by_step(), wire.all() + wire.copies) << text_of(d);
      EXPECT_EQ(sent_by_step(), wire.all()) << text_of(d);
      const auto account = [&](Arena arena) { return model.context().memory()->account().uses().of[static_cast<size_t>(role_of(arena))]; };
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed})
        EXPECT_EQ(account(arena).now, trainer.plan().memory.of(arena)) << name_of(arena) << ", " << text_of(d);
      EXPECT_EQ(account(Arena::parameters).peak, trainer.plan().memory.of(Arena::parameters)) << text_of(d);
      const std::lock_guard lock(one);
      for (const SlotId id : model.parameters()) {
        const Slot& slot = program.slot(id);
        held += held_by(program, slot, program.mesh_rank()).elements;
        if (is_here(program, slot)) (slot.type.layout.is_flat() ? shards : whole) += own_type(program, slot).shape.elements();
      }
    });
    EXPECT_EQ(held, model_of(split(c, d), true)->elements()) << "each element is one rank's to save";
    EXPECT_GT(shards, whole / d.data) << "most of a model is weights that only products use";
  }
}

/// A step that find_nan ends leaves shards and copies as they were.
TEST(SplitMasters, AreWholeAfterANanThatWasFound) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"find_nan", "true"}}};
  for (const Degrees& d : {Degrees{.data = 2, .zero = 1, .stages = 2}, Degrees{.tensor = 2, .data = 2, .zero = 2}}) {
    const auto set = [](Model& model, bool is_broken) {
      std::vector<float> gamma(64, 1.0F);
      if (is_broken) gamma[5] = std::numeric_limits<float>::infinity();
      model.set(model.parameter_named("block.2.mlp_norm.gamma"), plain_view("", DType::f32, {64}, gamma.data()));
    };
    const auto threads = split(c, {.tensor = d.tensor}).trainer();
    threads->step();
    set(threads->model(), false);
    const std::string before = threads->state_digest();
    const Outcome after = outcome_of(*threads, 2);
    each_rank_with_shards(c, d, [&](Trainer& trainer, Communicator&) {
      trainer.step();
      set(trainer.model(), true);
      const Error error = error_of([&] { trainer.step(); });
      EXPECT_EQ(error.code(), Code::not_finite) << error.message();
      EXPECT_EQ(error.place.tensor, "block.2.mlp_norm.gamma") << error.message();
      set(trainer.model(), false);
      EXPECT_EQ(trainer.state_digest(), before) << text_of(d);
      EXPECT_EQ(outcome_of(trainer, 2), after) << text_of(d);
    });
  }
}

TEST(SplitMasters, AreOnlyWhereTheyAreAskedForOnAllRanks) {
  const Case bf16{.name = "", .keys = {{"precision", "\"bf16\""}}}, fp32{.name = "", .keys = {}};
  struct Asked {
    Case of;
    Degrees d;
    int late_ranks;
    Code code;
    bool are_shards;
  };
  for (const Degrees& d : {Degrees{.data = 2, .zero = 1, .stages = 2}, Degrees{.tensor = 2, .data = 2, .zero = 2}})
    for (const Asked& asked : {Asked{bf16, d, 4, Code::ok, true},
                               {bf16, d, 0, Code::ok, false},
                               {fp32, d, 4, Code::ok, false},
                               {bf16, {.tensor = d.tensor, .data = 2, .stages = d.stages}, 4, Code::ok, false},    // zero 0
                               {bf16, {.tensor = 2, .data = 1, .zero = d.zero, .stages = 2}, 4, Code::ok, false},  // one data rank
                               {bf16, d, 1, Code::rank_mismatch, false}})
      each_of_group(4, [&](int rank, Communicator& own) {
        const Training training = split(asked.of, asked.d);
        std::unique_ptr<Trainer> trainer;
        const auto model = model_of(training, rank < asked.late_ranks);
        EXPECT_EQ(code_of([&] { trainer = in_group(training, own, model, training.data()); }), asked.code);
        if (trainer == nullptr) return;
        int64_t flat = 0;
        for (const Slot& slot : trainer->plan().program.slots) flat += slot.role == Role::parameter && slot.type.layout.is_flat() ? 1 : 0;
        EXPECT_EQ(flat > 0, asked.are_shards) << text_of(asked.d);
        if (!asked.are_shards) return;
        const RowsOfDataRank batch(4, 2, data_rank_of(asked.d, own));
        EXPECT_EQ(code_of([&] { trainer->forward(batch.views()); }), Code::unsupported);
      });
}

}  // namespace
}  // namespace st

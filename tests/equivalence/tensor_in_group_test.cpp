// Tensor ranks of a host's group: each model holds its pieces of the parameters, and all results are bitwise those of tensor ranks that are
// threads (traps.md, T18).
#include <gtest/gtest.h>

#include <atomic>

#include "base/memory_account.h"
#include "checkpoint/checkpoint_manager.h"
#include "plan/wire_bytes.h"
#include "rank_group.h"
#include "rank_training.h"
#include "resumed_by.h"
#include "saved_trainer.h"
#include "shown_to_host.h"
#include "split_training.h"
#include "thrown_error.h"

namespace st {
namespace {

/// Calls part(trainer, communicator) on each rank.
void each_rank_of(const Case& c, const Degrees& d, bool is_late, const std::function<void(Trainer&, Communicator&)>& part) {
  each_of_group(static_cast<int>(d.ranks()), [&](int, Communicator& own) {
    const Training training = split(c, d);
    const auto trainer = in_group(training, own, model_of(training, is_late), training.data());
    part(*trainer, own);
  });
}

TEST(TensorInGroup, LeavesTheBitsOfThreads) {
  const Case seven{.name = "", .keys = {{"dropout", "0.1"}}, .micro_batches = 7};  // the last round is not whole
  for (const int64_t tensor : {2, 4}) {
    const Outcome threads = outcome_of(*split(seven, {.tensor = tensor}).trainer());
    for (const Degrees& d : {Degrees{.tensor = tensor}, Degrees{.tensor = tensor, .data = 2, .zero = 1},
                             Degrees{.tensor = tensor, .stages = 2}, Degrees{.tensor = tensor, .data = 2, .zero = 3, .stages = 2}})
      each_rank_of(seven, d, d.zero % 2 == 0,
                   [&](Trainer& trainer, Communicator&) { EXPECT_EQ(outcome_of(trainer), threads) << text_of(d); });
  }
}

TEST(TensorInGroup, LeavesTheBitsOfThreadsByRecipe) {
  for (const Case& c :
       {Case{.name = "fp16", .keys = skipping_fp16()}, Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}, {"replica_check", "2"}}},
        Case{.name = "average", .keys = {{"ema_decay", "0.9"}, {"groups", R"([{"pattern": "block.0.*", "frozen": true}])"}}},
        Case{.name = "optimizers", .keys = {{"groups", kThreeOptimizers}, {"find_nan", "true"}, {"gradient_noise_scale", "true"}}},
        Case{.name = "recompute", .keys = {{"recompute", "\"auto\""}, {"offload", "\"optimizer\""}}}}) {
    const Outcome threads = outcome_of(*split(c, {.tensor = 2}).trainer());
    expect_skips_and_updates(c, threads);
    for (const Degrees& d : {Degrees{.tensor = 2, .data = 2, .zero = 2}, Degrees{.tensor = 2, .data = 2, .zero = 3},
                             Degrees{.tensor = 2, .data = 2, .zero = 0, .stages = 2}})
      each_rank_of(c, d, true,
                   [&](Trainer& trainer, Communicator&) { EXPECT_EQ(outcome_of(trainer), threads) << c.name << ", " << text_of(d); });
  }
}

TEST(TensorInGroup, ShowsWhatThreadsDo) {
  const Case c{.name = "", .keys = {{"ema_decay", "0.5"}}, .micro_batches = 3};
  const ShownToHost expected = shown_to_host(*split(c, {.tensor = 2}).trainer(), nullptr);
  for (const Degrees& d : {Degrees{.tensor = 2}, Degrees{.tensor = 2, .data = 2, .zero = 1}, Degrees{.tensor = 2, .data = 2, .zero = 3},
                           Degrees{.tensor = 2, .stages = 2}})
    each_rank_of(c, d, d.zero > 0, [&](Trainer& trainer, Communicator& own) {
      const ShownToHost shown = shown_to_host(trainer, &own);
      EXPECT_EQ(shown.losses, expected.losses) << text_of(d);
      EXPECT_TRUE(shown.values == expected.values) << text_of(d);
      EXPECT_EQ(shown.weights, expected.weights) << text_of(d);
      EXPECT_EQ(shown.state, expected.state) << text_of(d);
    });
}

/// T22: a checkpoint holds whole tensors, whoever has pieces of them.
TEST(TensorInGroup, GoesOnWhereAnotherTopologyWasSaved) {
  const Case c{.name = "", .keys = {{"ema_decay", "0.9"}, {"precision", "\"bf16\""}, {"groups", kThreeOptimizers}}};
  const ScratchFolder folder("tensor_in_group_test");
  const std::vector<Degrees> all = {{.tensor = 4},
                                    {.tensor = 2, .data = 2, .zero = 1},
                                    {.tensor = 2, .stages = 2},
                                    {.tensor = 2, .data = 3, .zero = 3},
                                    {.data = 2, .zero = 2}};
  for (size_t from = 0; from < all.size(); ++from) {
    const std::string run = folder / std::to_string(from), saved = run + "/step-00000002";
    std::string state;
    each_rank_of(c, all[from], true, [&](Trainer& trainer, Communicator& own) {
      outcome_of(trainer, 2);
      const std::string digest = trainer.state_digest();
      if (own.rank() == 0) state = digest;
      CheckpointManager manager(run, {}, trainer.model().context().memory(), {},
                                own.rank() == 0 ? CheckpointManager::Place::of_folder : CheckpointManager::Place::beside);
      CheckpointContent content = content_of(trainer, {});
      if (trainer.exchanges_ranges()) exchange_ranges(trainer, content);
      manager.save_now(content, trainer.workers());
    });
    EXPECT_EQ(CheckpointReader(saved).digest(), state);
    const auto threads = split(c, {.tensor = 2, .zero = 2}).trainer();
    resume_from(saved, *threads);
    EXPECT_EQ(threads->state_digest(), state);
    const auto undisturbed = split(c, {.tensor = all[from].tensor}).trainer();
    outcome_of(*undisturbed, 2);
    const Outcome next = outcome_of(*undisturbed, 2);
    for (const size_t number : resumed_by(from, all.size())) {
      const Degrees& to = all[number];
      each_rank_of(c, to, false, [&](Trainer& trainer, Communicator&) {
        trainer.step();  // its own state gives way
        resume_from(saved, trainer);
        EXPECT_EQ(trainer.state_digest(), state) << text_of(all[from]) << ", then " << text_of(to);
        if (to.tensor == all[from].tensor) {
          EXPECT_EQ(outcome_of(trainer, 2), next) << text_of(all[from]) << ", then " << text_of(to);
        }
      });
    }
  }
}

/// T6, T8: a rank's arenas hold its pieces alone; with late parameters it never held more.
TEST(TensorInGroup, SendsAndAllocatesWhatPlansSay) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}, .micro_batches = 6};
  const auto bytes_of_arena = [](const Model& model, Arena arena) {
    return model.context().memory()->account().uses().of[static_cast<size_t>(role_of(arena))];
  };
  for (const Degrees& d : {Degrees{.tensor = 4}, Degrees{.tensor = 2, .data = 2, .zero = 2}, Degrees{.tensor = 2, .stages = 2}})
    each_rank_of(c, d, true, [&](Trainer& trainer, Communicator&) {
      trainer.step();
      const int64_t before = trainer.sent_bytes()[0];
      trainer.step();
      EXPECT_EQ(trainer.sent_bytes()[0] - before, wire_bytes(trainer.plan(), c.micro_batches).all()) << text_of(d);
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed})
        EXPECT_EQ(bytes_of_arena(trainer.model(), arena).now, trainer.plan().memory.of(arena)) << name_of(arena) << ", " << text_of(d);
      EXPECT_EQ(bytes_of_arena(trainer.model(), Arena::parameters).peak, trainer.plan().memory.of(Arena::parameters)) << text_of(d);
    });
}

TEST(TensorInGroup, ReadsItsPartOfWeights) {
  const Case c{.name = "", .keys = {}};
  const auto one = split(c, {}).trainer();
  one->step();
  std::string bytes;
  one->model().write([&](std::span<const std::byte> part) { bytes.append(reinterpret_cast<const char*>(part.data()), part.size()); });
  const ScratchFolder folder("tensor_in_group_weights");
  one->model().write(folder / "weights.safetensors");
  save(*one, folder / "saved");
  const std::string digest = one->model().digest();
  each_rank_of(c, {.tensor = 2, .data = 2, .zero = 3}, true, [&](Trainer& trainer, Communicator& own) {
    Model& model = trainer.model();
    const auto digest_of = [&] {
      std::string made;
      ShardedModelCall::make(&own, [&](ShardedModelCall* all) { made = model.digest(all); });
      return made;
    };
    EXPECT_NE(digest_of(), digest);
    ReadReport report;
    size_t at = 0;
    model.read(
        [&](std::span<std::byte> room) {
          const size_t count = std::min(room.size(), bytes.size() - at);
          bytes.copy(reinterpret_cast<char*>(room.data()), count, at);
          at += count;
          return count;
        },
        {}, report);
    EXPECT_EQ(digest_of(), digest);
    trainer.step();
    model.read(folder / "weights.safetensors", {}, report);
    EXPECT_EQ(digest_of(), digest);
    trainer.step();
    model.load(CheckpointReader(folder / "saved"), {}, report);
    EXPECT_EQ(digest_of(), digest);
    EXPECT_EQ(report.read, std::ssize(model.parameters()));
  });
}

TEST(TensorInGroup, RefusesWhatDiffers) {
  each_of_group(4, [&](int rank, Communicator& own) {
    Training training = split({.name = "", .keys = {}}, {.tensor = 2, .data = 2});
    if (rank == 3) training.recipe.tensor = 4;
    EXPECT_TRUE(is_error(error_of([&] { in_group(training, own); }), Code::rank_mismatch, {"rank 3", "has tensor 4", "rank 0 has 2"}));
  });
}

}  // namespace
}  // namespace st

// ZeRO-3 in a host's group: each rank's model has only its shards of the parameters, and all results are bitwise those of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/memory_account.h"
#include "plan/wire_bytes.h"
#include "rank_group.h"
#include "rank_training.h"
#include "shown_to_host.h"

namespace st {
namespace {

Training alone(const Case& c) { return training_of(c, 1); }

std::unique_ptr<Trainer> with_pieces(Training training, std::shared_ptr<Model> model, Communicator& own, int64_t zero = 3) {
  training.recipe.zero = zero;
  return in_group(training, own, std::move(model), training.data());
}

TEST(PiecesInGroup, LeaveTheBitsOfOneRank) {
  const Case bf16{.name = "", .keys = {{"precision", "\"bf16\""}, {"optimizer", "\"adafactor\""}}};
  const Case recomputed{.name = "", .keys = {{"recompute", "\"auto\""}, {"bucket", "20000"}}, .half_budget = true};
  // Ranks without rows, and skipped steps.
  const Case fp16{.name = "", .keys = skipping_fp16("2097152"), .micro_batches = 2};
  struct Group {
    Case of;
    int size;
  };
  for (const auto& [c, size] : {Group{{.name = "", .keys = {{"dropout", "0.1"}}}, 2}, {bf16, 3}, {recomputed, 3}, {fp16, 3}}) {
    const Outcome one = outcome_of(*alone(c).trainer());
    expect_skips_and_updates(c, one);
    Training of_threads = training_of(c, size);
    of_threads.recipe.zero = 3;
    const int64_t budget = half_budget(of_threads);
    each_of_group(size, [&, &of = c](int, Communicator& own) {
      const auto model = model_of(alone(of), own.size() == 2);
      Training training = alone(of);
      if (of.half_budget) training.recipe.recompute_budget = budget;
      const auto trainer = with_pieces(training, model, own);
      EXPECT_EQ(outcome_of(*trainer), one) << own.size() << " ranks";
      EXPECT_TRUE(model->is_sharded());
    });
  }
}

// Some parameters are frozen and have no average.
TEST(PiecesInGroup, ShowWhatOneRankDoes) {
  const Case c{.name = "",
               .keys = {{"ema_decay", "0.5"}, {"groups", R"([{"pattern": "block.0.attention.*", "frozen": true}])"}},
               .micro_batches = 3};
  const ShownToHost expected = shown_to_host(*alone(c).trainer(), nullptr, "block.0.attention.");
  each_of_group(3, [&](int, Communicator& own) {
    const auto trainer = with_pieces(alone(c), model_of(alone(c), true), own);
    const ShownToHost shown = shown_to_host(*trainer, &own, "block.0.attention.");
    EXPECT_EQ(shown.losses, expected.losses);
    EXPECT_TRUE(shown.values == expected.values);
    EXPECT_EQ(shown.weights, expected.weights);
    EXPECT_EQ(shown.state, expected.state);
  });
}

// Each rank reads the whole stream or file and keeps its shards.
TEST(PiecesInGroup, ReadTheirPartOfWeights) {
  const Case c{.name = "", .keys = {}};
  const auto one = alone(c).trainer();
  one->step();
  std::string bytes;
  one->model().write([&](std::span<const std::byte> part) { bytes.append(reinterpret_cast<const char*>(part.data()), part.size()); });
  const auto fresh = alone(c).trainer();
  const auto read_into = [&](Model& model) {
    size_t at = 0;
    ReadReport report;
    model.read(
        [&](std::span<std::byte> room) {
          const size_t count = std::min(room.size(), bytes.size() - at);
          std::memcpy(room.data(), bytes.data() + at, count);
          at += count;
          return count;
        },
        {}, report);
  };
  read_into(fresh->model());
  const Outcome expected = outcome_of(*fresh);
  each_of_group(3, [&](int, Communicator& own) {
    const auto trainer = with_pieces(alone(c), model_of(alone(c), true), own);
    read_into(trainer->model());
    EXPECT_EQ(outcome_of(*trainer), expected);
  });
}

CountedBytes bytes_of(const Model& model, Arena arena) {
  return model.context().memory()->account().uses().of[static_cast<size_t>(role_of(arena))];
}

// T8; with late parameters, never more than the shards.
TEST(PiecesInGroup, TakeTheBytesThatArePlanned) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}};
  for (const bool is_late : {false, true}) {
    std::atomic<int64_t> elements = 0;
    each_of_group(3, [&](int, Communicator& own) {
      const auto model = model_of(alone(c), is_late);
      EXPECT_EQ(bytes_of(*model, Arena::parameters).now == 0, is_late);
      const auto trainer = with_pieces(alone(c), model, own);
      trainer->step();
      static_cast<void>(trainer->evaluate(std::make_shared<Sequences>(5, 7, 70)));
      const MemoryLayout& planned = trainer->plan().memory;
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed})
        EXPECT_EQ(bytes_of(*model, arena).now, planned.of(arena)) << name_of(arena);
      if (is_late) {
        EXPECT_EQ(bytes_of(*model, Arena::parameters).peak, planned.of(Arena::parameters));
      }
      for (const SlotId id : model->parameters()) elements += model->piece(id).elements;
      EXPECT_LT(planned.of(Arena::parameters), 4 * model->elements() / 2);
    });
    EXPECT_EQ(elements, model_of(alone(c), true)->elements());
  }
}

// T6, plus the messages before a step, which the plan does not count. The last micro-batch of seven is rank 0's.
TEST(PiecesInGroup, SendTheBytesThatArePlanned) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"bucket", "20000"}}, .micro_batches = 7};
  for (const int64_t zero : {0, 1, 2, 3})
    each_of_group(3, [&](int rank, Communicator& own) {
      const auto trainer = with_pieces(alone(c), model_of(alone(c), false), own, zero);
      trainer->step();  // includes the first comparison of weights
      const int64_t before = own.sent_bytes();
      trainer->step();
      const int64_t told = (own.size() - 1) * static_cast<int64_t>(sizeof(RankReport));
      EXPECT_EQ(own.sent_bytes() - before, wire_bytes(trainer->plan(), 7).all() + told) << "zero " << zero << ", rank " << rank;
    });
}

TEST(PiecesInGroup, OfModelsThatDifferAreRefusedOnAll) {
  for (const bool is_late : {false, true})
    each_of_group(2, [&](int rank, Communicator& own) {
      const Training training = alone({.name = "", .keys = {}});
      const auto model = model_of(training, is_late, 1 + static_cast<uint64_t>(rank));
      EXPECT_EQ(code_of([&] { with_pieces(training, model, own); }), Code::rank_mismatch);
      EXPECT_FALSE(model->is_sharded());
    });
}

TEST(PiecesInGroup, OfLateModelsAreComparedByWhatTheyAreMadeOf) {
  for (const bool differ : {true, false})
    each_of_group(2, [&](int rank, Communicator& own) {
      const Training training = alone({.name = "", .keys = {}});
      ContextOptions options{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = {}};
      options.late_parameters = true;
      Program program = build_gpt(training.options);
      for (Slot& slot : program.slots)
        if (slot.name == "token_embedding.weight")
          slot.init = {.kind = Init::values,
                       .values = std::vector<float>(static_cast<size_t>(slot.type.shape.elements()), differ && rank == 1 ? 0.5F : 0.25F)};
      const auto model = std::make_shared<Model>(std::make_shared<Context>(std::move(options)), std::move(program), 1);
      if (!differ && rank == 0) static_cast<void>(model->digest());  // makes the parameters, whole, and changes nothing else
      EXPECT_EQ(code_of([&] { with_pieces(training, model, own); }), differ ? Code::rank_mismatch : Code::ok);
      EXPECT_EQ(model->is_sharded(), !differ);
    });
}

TEST(PiecesInGroup, RefuseWhatNeedsAllOfThem) {
  const Case c{.name = "", .keys = {}};
  each_of_group(2, [&](int, Communicator& own) {
    const auto model = model_of(alone(c), false);
    {
      Recipe recipe = alone(c).recipe;
      recipe.device = "cpu";
      const Trainer other(model, recipe, alone(c).data());
      EXPECT_EQ(code_of([&] { model->keep_pieces(model->program()); }), Code::busy);
    }
    auto trainer = with_pieces(alone(c), model, own);
    const Outcome first = outcome_of(*trainer, 1);
    trainer.reset();
    std::vector<float> values(kVocabulary * kWidth);
    const HostView view = plain_view("", DType::f32, {kVocabulary, kWidth}, values.data());
    const SlotId id = model->parameter_named("token_embedding.weight");
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { model->get(id, view); }, [&] { static_cast<void>(model->digest()); }, [&] { static_cast<void>(model->clone()); },
             [&] { model->write([](std::span<const std::byte>) {}); }, [&] { alone(c).model()->blend(*model, 1); },
             [&] {
               Recipe recipe = alone(c).recipe;
               recipe.device = "cpu";
               const Trainer whole(model, recipe, nullptr);
             }})
      EXPECT_EQ(code_of(call), Code::wrong_state);
    // Training continues on the same shards.
    trainer = with_pieces(alone(c), model, own);
    EXPECT_EQ(trainer->steps(), 0);
    trainer->step();
  });
}

}  // namespace
}  // namespace st

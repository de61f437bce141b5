// ZeRO-1 and -2 in a host's group with 16-bit weights and a context with late parameters: each rank has only its shards of the fp32
// masters, and all results are bitwise those of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/memory_account.h"
#include "changed_weight.h"
#include "ir/cuts.h"
#include "plan/wire_bytes.h"
#include "rank_group.h"
#include "rank_training.h"
#include "saved_trainer.h"

namespace st {
namespace {

Training alone(const Case& c) { return training_of(c, 1); }

std::unique_ptr<Trainer> with_masters(const Case& c, int64_t zero, std::shared_ptr<Model> model, Communicator& own) {
  Training training = alone(c);
  training.recipe.zero = zero;
  return in_group(training, own, std::move(model), training.data());
}

/// A rank's rows of a step: of all `rows`, those of its micro-batches of two.
class Rows {
 public:
  Rows(int64_t rows, int64_t ranks, int64_t rank, int from) {
    for (int64_t row = 0; row < rows; ++row) {
      if (row / 2 % ranks != rank) continue;
      for (int64_t t = 0; t < 7; ++t) {
        const int64_t at = row * 5 + t * 3 + from;
        tokens_.push_back(static_cast<int32_t>(at % 17));
        targets_.push_back(static_cast<int32_t>((at + 3) % 17));
      }
    }
  }
  std::vector<HostView> views() {
    const auto rows = std::ssize(tokens_) / 7;
    return {plain_view("tokens", DType::i32, {rows, 7}, tokens_.data()), plain_view("targets", DType::i32, {rows, 7}, targets_.data())};
  }

 private:
  std::vector<int32_t> tokens_, targets_;
};

/// Steps with short micro-batches (the first step is only a short one), a weight changed by the host, and steps on the data.
Outcome run(Trainer& trainer, int64_t ranks, int64_t rank) {
  Outcome told;
  const auto step = [&](int64_t rows) {
    Rows batch(rows, ranks, rank, static_cast<int>(rows));
    add(told, trainer.step(batch.views()));
  };
  for (const int64_t rows : {1, 11, 4, 5}) step(rows);
  add(told, trainer.step());
  set_near(trainer.model(), "block.0.mlp.expand.weight", 0.01F);
  set_near(trainer.model(), "token_embedding.weight", -0.02F);
  step(3);
  add(told, trainer.step());
  told.state = trainer.state_digest();
  return told;
}

TEST(MasterPieces, LeaveTheBitsOfOneRank) {
  const Case bf16{.name = "", .keys = {{"precision", "\"bf16\""}, {"dropout", "0.1"}}, .micro_batches = 6};
  const Case whole{.name = "", .keys = {{"precision", "\"bf16\""}, {"optimizer", "\"adafactor\""}, {"overlap", "\"off\""}}};
  const Case skips{.name = "", .keys = skipping_fp16(), .micro_batches = 6};
  struct Group {
    Case of;
    int size;
    int64_t zero;
  };
  for (const auto& [c, size, zero] : {Group{bf16, 2, 1}, {bf16, 3, 2}, {whole, 3, 1}, {skips, 2, 2}, {skips, 3, 1}}) {
    const Outcome one = run(*alone(c).trainer(), 1, 0);
    if (c.keys.front().second == "\"fp16\"") {
      EXPECT_TRUE(one.skipped > 0 && one.skipped < 7) << one.skipped;
    }
    each_of_group(size, [&, &of = c, stage = zero](int rank, Communicator& own) {
      const auto model = model_of(alone(of), true);
      const auto trainer = with_masters(of, stage, model, own);
      EXPECT_EQ(run(*trainer, own.size(), rank), one) << own.size() << " ranks, zero " << stage;
      EXPECT_TRUE(model->is_sharded());
    });
  }
}

// Averages and evaluations use sharded and whole parameters.
TEST(MasterPieces, ShowWhatOneRankDoes) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"ema_decay", "0.5"}}, .micro_batches = 3};
  const auto data = std::make_shared<Sequences>(5, 7, 70);
  const auto act = [&](Trainer& trainer) {
    std::vector<std::vector<float>> told;
    const auto look = [&] {
      told.push_back({static_cast<float>(trainer.evaluate(data).loss), static_cast<float>(trainer.evaluate_average(data).loss)});
      for (const char* name : {"token_embedding.weight", "block.1.mlp.expand.weight"}) {
        const Shape& shape = trainer.model().slot(trainer.model().parameter_named(name)).type.shape;
        for (const bool is_average : {true, false}) {
          std::vector<float>& values = told.emplace_back(static_cast<size_t>(shape.elements()));
          const HostView view = plain_view("", DType::f32, shape, values.data());
          is_average ? trainer.average(name, view) : trainer.gradient(name, view);
        }
      }
    };
    trainer.step();
    trainer.step();
    look();
    trainer.use_average();
    trainer.step();
    look();
    return told;
  };
  const auto expected = act(*alone(c).trainer());
  each_of_group(2, [&](int, Communicator& own) {
    const auto told = act(*with_masters(c, 2, model_of(alone(c), true), own));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(told[i] == expected[i]) << i << ": " << told[i][0] << ", " << expected[i][0];
  });
}

// T8 and T6 for a group, and the table: 12 P / N for parameters that only products use.
TEST(MasterPieces, TakeTheBytesThatArePlanned) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}, .micro_batches = 3};
  for (const int64_t zero : {1, 2}) {
    std::mutex one;
    int64_t masters = 0, cut = 0, gathered = 0, wholes = 0;
    each_of_group(3, [&](int, Communicator& own) {
      const auto model = model_of(alone(c), true);
      const auto trainer = with_masters(c, zero, model, own);
      const MemoryLayout& planned = trainer->plan().memory;
      const Program& program = trainer->plan().program;
      const auto sent_by = [&](const auto& call) {
        const int64_t before = own.sent_bytes();
        call();
        return own.sent_bytes() - before;
      };
      const auto step = [&] { trainer->step(); };
      step();
      const WireBytes wire = wire_bytes(trainer->plan(), trainer->recipe().step_micro_batches());
      const auto starts = static_cast<int64_t>(2 * sizeof(RankReport));
      EXPECT_EQ(sent_by(step), wire.all() + starts);
      set_near(*model, "block.0.mlp.expand.weight", 0.1F);
      EXPECT_EQ(sent_by(step), wire.all() + wire.copies + starts);
      const auto account = [&](Arena arena) { return model->context().memory()->account().uses().of[static_cast<size_t>(role_of(arena))]; };
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed})
        EXPECT_EQ(account(arena).now, planned.of(arena)) << name_of(arena);
      EXPECT_EQ(account(Arena::parameters).peak, planned.of(Arena::parameters));
      int64_t own_masters = 0, own_cut = 0, own_whole = 0;
      for (const SlotId id : model->parameters()) {
        const Slot& slot = program.slot(id);
        (slot.type.layout.is_flat() ? own_cut : own_whole) += slot.type.shape.elements();
        if (slot.type.layout.is_flat()) own_masters += own_type(program, slot).shape.elements();
      }
      EXPECT_GT(own_cut, 10 * own_whole / 2) << "most of a model is products'";
      const std::lock_guard lock(one);
      masters += own_masters;
      gathered += wire.all_gather;
      cut = own_cut;
      wholes = own_whole;
    });
    EXPECT_EQ(masters, cut);
    // 16 bits for parameters with copies (the tied embedding has one too, and is whole), fp32 for those that some node reads in fp32.
    const int64_t tied = kVocabulary * kWidth;
    EXPECT_EQ(gathered, 2 * (2 * (cut + tied) + 4 * wholes)) << "zero " << zero;
  }
}

// A checkpoint is resumed on sharded masters and continues from there.
TEST(MasterPieces, GoOnFromACheckpoint) {
  const ScratchFolder folder("master_pieces");
  const Case c{.name = "", .keys = {{"precision", "\"fp16\""}}, .micro_batches = 4};
  const auto one = alone(c).trainer();
  one->step();
  save(*one, folder / "1");
  const Outcome expected = outcome_of(*one, 2);
  each_of_group(2, [&](int, Communicator& own) {
    const auto trainer = with_masters(c, 1, model_of(alone(c), true), own);
    for (int again = 0; again < 2; ++again) {
      resume_from(folder / "1", *trainer);
      EXPECT_EQ(outcome_of(*trainer, 2), expected);
    }
  });
}

TEST(MasterPieces, AreOnlyWhereTheyAreAskedForOnAllRanks) {
  const Case bf16{.name = "", .keys = {{"precision", "\"bf16\""}}}, fp32{.name = "", .keys = {}};
  struct Asked {
    Case of;
    int late_ranks;
    Code code;
    bool are_pieces;
  };
  for (const Asked& asked :
       {Asked{bf16, 2, Code::ok, true}, {bf16, 0, Code::ok, false}, {fp32, 2, Code::ok, false}, {bf16, 1, Code::rank_mismatch, false}})
    each_of_group(2, [&](int rank, Communicator& own) {
      const auto model = model_of(alone(asked.of), rank < asked.late_ranks);
      std::unique_ptr<Trainer> trainer;
      EXPECT_EQ(code_of([&] { trainer = with_masters(asked.of, 1, model, own); }), asked.code);
      EXPECT_EQ(model->is_sharded(), asked.are_pieces);
      if (!asked.are_pieces) return;
      Rows batch(4, 2, rank, 0);
      EXPECT_EQ(code_of([&] { trainer->forward(batch.views()); }), Code::unsupported);
    });
}

}  // namespace
}  // namespace st

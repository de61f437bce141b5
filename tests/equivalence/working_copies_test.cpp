// Working copies that the last update left give the same bits as working copies made anew, and a stale copy is never used.
#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "backend/kernel_side.h"
#include "cpu_classes.h"
#include "token_rows.h"
#include "training.h"

namespace st {
namespace {

constexpr int64_t kContext = 7, kVocabulary = 61, kWidth = 39;
constexpr int64_t kRows = 2, kMicroBatches = 3;

std::vector<HostView> rows(int64_t count) {
  static const TokenRows all(kRows * kMicroBatches, kContext, kVocabulary);
  return all.first(count);
}

/// Counts as a change of the weights without changing any, so that kept copies are made again.
void touch(const Model& model) { const WeightsGate::Writer writer(model.gate()); }

struct Case {
  std::string precision, optimizer;
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.precision << ' ' << one.optimizer; }

class WorkingCopies : public ::testing::TestWithParam<Case> {
 protected:
  std::shared_ptr<Model> model(int threads = 2) const {
    return Training{.device = "cpu",
                    .threads = threads,
                    .options = {.layers = 2, .width = kWidth, .heads = 3, .context = kContext, .vocabulary = kVocabulary}}
        .model();
  }

  std::unique_ptr<Trainer> trainer(const std::shared_ptr<Model>& of, const std::string& groups = "[]") const {
    Recipe recipe;
    recipe.set("optimizer", '"' + GetParam().optimizer + '"');
    recipe.set("groups", groups);
    recipe.precision = GetParam().precision;
    recipe.batch = kRows;
    recipe.accumulate = kMicroBatches;
    recipe.warmup = 0;
    return std::make_unique<Trainer>(of, recipe, nullptr);
  }

  /// The results of `run` without touch() and with touch() before each step.
  template <class Run>
  void expect_same(const Run& run) const {
    const std::string kept = run([](const Model&) {}), anew = run(touch);
    EXPECT_EQ(kept, anew);
  }
};

TEST_P(WorkingCopies, LeaveEveryBitForAnyThreadsAndKernels) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    const auto run = [&](int threads, bool touches) {
      const auto it = trainer(model(threads));
      for (int step = 0; step < 4; ++step) {
        if (touches) touch(it->model());
        it->step(rows(kRows * kMicroBatches));
      }
      return it->state_digest();
    };
    const std::string anew = run(1, true);
    for (const int threads : {1, 2, 3}) EXPECT_EQ(run(threads, false), anew) << name << ", " << threads << " threads";
  }
}

/// Spoils every working copy of an executor.
void spoil(const Trainer& trainer) {
  const Program& program = trainer.plan().program;
  for (size_t slot = 0; slot < program.slots.size(); ++slot)
    if (program.slots[slot].role == Role::working)
      std::memset(as<std::byte>(trainer.executor().slot(static_cast<SlotId>(slot))), 0x11,
                  static_cast<size_t>(program.slots[slot].type.bytes()));
}

TEST_P(WorkingCopies, AreKeptFromAnUpdateToTheNextStep) {
  const auto run = [&](bool spoils, bool touches) {
    const auto it = trainer(model());
    it->step(rows(kRows * kMicroBatches));
    if (spoils) spoil(*it);
    if (touches) touch(it->model());
    it->step(rows(kRows * kMicroBatches));
    return it->state_digest();
  };
  const std::string whole = run(false, false);
  EXPECT_NE(run(true, false), whole) << "they were made anew";
  EXPECT_EQ(run(true, true), whole) << "they were not, though a weight may have changed";
}

TEST_P(WorkingCopies, AreThoseOfWeightsThatTheHostWrote) {
  const std::string name = "block.0.mlp.expand.weight";
  std::vector<float> values(kWidth * 4 * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 100;
  for (const char* groups : {"[]", R"([{"pattern": "block.0.*", "frozen": true}])"})
    for (const int written_at : {0, 40, 100000})  // slices; within a step, and after it
      expect_same([&](const auto& before) {
        const auto it = trainer(model(), groups);
        for (int step = 0; step < 3; ++step) {
          before(it->model());
          int slices = 0;
          const auto write = [&] {
            it->model().set(it->model().parameter_named(name), plain_view(name, DType::f32, {kWidth, 4 * kWidth}, values.data()));
          };
          while (!it->advance(rows(kRows * kMicroBatches), 0))
            if (++slices == written_at) write();
          if (slices < written_at) write();
        }
        return it->state_digest();
      });
}

TEST_P(WorkingCopies, AreThoseOfAModelThatAnotherTrainerTrains) {
  expect_same([&](const auto& before) {
    const auto both = model();
    const auto one = trainer(both), other = trainer(both);
    for (int step = 0; step < 3; ++step)
      for (Trainer* each : {one.get(), other.get(), one.get()}) {
        before(*both);
        each->step(rows(kRows * kMicroBatches));
      }
    return one->state_digest() + other->state_digest();
  });
}

TEST_P(WorkingCopies, LeaveEveryBitOfStepsWithFewerRows) {
  expect_same([&](const auto& before) {
    const auto it = trainer(model(), R"([{"pattern": "block.1.*", "frozen": true}])");
    for (const int64_t count : {1, 6, 1, 5, 3, 6, 1, 2}) {
      before(it->model());
      it->step(rows(count));
    }
    return it->state_digest();
  });
}

TEST_P(WorkingCopies, AreThereAfterACancelledStep) {
  expect_same([&](const auto& before) {
    const auto it = trainer(model());
    for (int step = 0; step < 3; ++step) {
      before(it->model());
      it->step(rows(kRows * kMicroBatches));
      it->advance(rows(kRows * kMicroBatches), 0);
      it->cancel();
      EXPECT_THROW(it->advance(rows(kRows * kMicroBatches), 0), Error);
    }
    return it->state_digest();
  });
}

INSTANTIATE_TEST_SUITE_P(Recipes, WorkingCopies,
                         ::testing::Values(Case{"bf16", "adamw"}, Case{"bf16", "adamw-8bit"}, Case{"bf16", "sgd"}, Case{"bf16", "lion"},
                                           Case{"bf16", "rmsprop"}, Case{"bf16", "adagrad"}, Case{"bf16", "adafactor"},
                                           Case{"bf16", "muon"}, Case{"fp16", "adamw"}),
                         [](const auto& of) {
                           std::string name = of.param.precision + "_" + of.param.optimizer;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The first steps overflow: a skipped update leaves the existing copies.
TEST(WorkingCopiesOfSkippedSteps, AreThoseBefore) {
  const auto run = [](bool touches) {
    Recipe recipe;
    recipe.precision = "fp16";
    recipe.loss_scale_initial = 0x1p40;
    recipe.loss_scale_backoff_factor = 0x1p-8;
    recipe.batch = kRows;
    const auto it = Training{.device = "cpu", .threads = 2, .recipe = recipe}.trainer();
    int skipped = 0;
    for (int step = 0; step < 8; ++step) {
      if (touches) touch(it->model());
      skipped += it->step().skipped ? 1 : 0;
    }
    EXPECT_GT(skipped, 0);
    EXPECT_LT(skipped, 8);
    return it->state_digest();
  };
  EXPECT_EQ(run(false), run(true));
}

}  // namespace
}  // namespace st

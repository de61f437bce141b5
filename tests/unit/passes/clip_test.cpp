#include "passes/clip.h"

#include <cmath>

#include "passes/dropout.h"
#include "program_run.h"
#include "random_program.h"
#include "refusal.h"
#include "small_program.h"

namespace st {
namespace {

constexpr int64_t kBatch3 = 3, kContext = 5;  // of small_gpt()

struct Tokens {
  std::vector<int32_t> tokens, targets;
  Tokens() {
    for (int32_t i = 0; i < kBatch3 * kContext; ++i) {
      tokens.push_back(i * 7 % 17);
      targets.push_back(i % 4 == 1 ? -100 : i * 5 % 17);
    }
  }
  void bind(ProgramRun& run) const {
    run.bind("tokens", tokens.data());
    run.bind("targets", targets.data());
  }
};

Program clipped(double max_norm) {
  Program program = bind(small_gpt(), kBatch3);
  set_dropout(program, 0, 0);
  program = with_backward(std::move(program));
  clip(program, max_norm);
  return program;
}

TEST(Clip, AddsTheUsesOfATiedWeightInGraphOrder) {
  const Program program = clipped(1);
  const Graph& update = program.find(Phase::update)->graph;
  const SlotId first = program.slot_named("gradient.token_embedding.weight");
  const SlotId second = program.slot_named("gradient.token_embedding.weight.use1");
  int32_t added = -1, loaded = -1;
  for (int32_t n = 0; n < update.size(); ++n) {
    if (update[n].op == Op::accumulate) {
      EXPECT_EQ(added, -1) << "only one parameter is tied, and it has two uses";
      added = n;
      EXPECT_EQ(update[n].writes[0], first);
      EXPECT_EQ(update[update[n].in[0].node].reads[0], second);
    }
    if (update[n].op == Op::load && update[n].reads[0] == first) loaded = n;
  }
  EXPECT_GE(added, 0);
  EXPECT_GT(loaded, added) << "the norm is of the sum";
}

TEST(Clip, TheSumOfTheUsesIsWhatWasStoredForEach) {
  Program apart = clipped(1);
  apart.sections.pop_back();  // no update section: the uses stay separate
  ProgramRun uses(apart), both(clipped(1));
  const Tokens tokens;
  for (ProgramRun* run : {&uses, &both}) {
    tokens.bind(*run);
    run->run();
  }
  const auto embedding = uses.floats("gradient.token_embedding.weight"), head = uses.floats("gradient.token_embedding.weight.use1");
  const auto sum = both.floats("gradient.token_embedding.weight");
  double size = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(sum[i], embedding[i] + head[i]);
    size += std::abs(embedding[i]) + std::abs(head[i]);
  }
  EXPECT_GT(size, 0);
}

/// L2 norm of the gradient of the mean loss, summed here.
double norm_by_hand(ProgramRun& run) {
  double squares = 0;
  for (const Slot& slot : run.program().slots) {
    if (slot.role != Role::gradient || slot.name.find(".use") != std::string::npos) continue;
    for (const float g : run.floats(slot.name)) squares += static_cast<double>(g) * g;
  }
  return std::sqrt(squares) / (run.program().loss_seed * *run.data<double>("loss_count"));
}

TEST(Clip, ReportsTheNormOfTheMeanLossAndTheFactorThatBringsItToTheLimit) {
  const Tokens tokens;
  for (const double limit : {0.0, 0.01, 1e6}) {
    ProgramRun run(clipped(limit));
    tokens.bind(run);
    run.run();
    const double norm = *run.data<double>("grad_norm");
    EXPECT_NEAR(norm, norm_by_hand(run), 1e-12 * norm);
    EXPECT_GT(norm, 0.01);
    const double unscale = 1 / (run.program().loss_seed * *run.data<double>("loss_count"));
    const double clip_by = limit == 0 ? 1 : std::min(1.0, limit / (norm + 1e-6));
    EXPECT_EQ(*run.data<float>("factor"), static_cast<float>(clip_by * unscale)) << limit;
    EXPECT_FALSE(*run.data<bool>("skipped"));
  }
}

TEST(Clip, RefusesANegativeNormWithTheValue) {
  Program program = bind(small_gpt(), 1);
  EXPECT_TRUE(refuses({"-0.5"}, [&] { clip(program, -0.5); }));
}

}  // namespace
}  // namespace st

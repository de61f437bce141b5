#include "passes/round_gradients.h"

#include <cstring>

#include "base/f16_rows.h"
#include "base/half_lanes.h"
#include "ir/print.h"
#include "passes/accumulate.h"
#include "passes/clip.h"
#include "passes/data_parallel.h"
#include "passes/dropout.h"
#include "passes/zero_shard.h"
#include "program_run.h"
#include "small_program.h"

namespace st {
namespace {

constexpr int64_t kPieces = 3, kTokensOfPiece = 2 * 5;

Program with_gradients() {
  Program program = bind(small_gpt(), 2);
  set_dropout(program, 0, 0);
  return with_backward(std::move(program), kPieces);
}

struct Tokens {
  Tokens(ProgramRun& run, int64_t piece) {
    for (int64_t i = 0; i < kTokensOfPiece; ++i) {
      tokens.push_back(static_cast<int32_t>((piece * 5 + i * 3) % 17));
      targets.push_back(static_cast<int32_t>((piece * 7 + i * 3 + 1) % 17));
    }
    run.bind("tokens", tokens.data());
    run.bind("targets", targets.data());
  }
  std::vector<int32_t> tokens, targets;
};

void round(DType dtype, std::vector<float>& values) {
  for (float& value : values) {
    if (dtype == DType::bf16) {
      value = wide_of_bf16(bf16_from(value));
      continue;
    }
    uint16_t half = 0;
    narrow_f16(reinterpret_cast<const std::byte*>(&value), reinterpret_cast<std::byte*>(&half), 1);
    widen_f16(reinterpret_cast<const std::byte*>(&half), reinterpret_cast<std::byte*>(&value), 1);
  }
}

void add(std::vector<float>& sum, const std::vector<float>& values) {
  if (sum.empty()) sum.resize(values.size(), -0.0F);  // the first one writes
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

/// The sum of a tied weight's gradients as rules 1, 3 and 8 of traps.md define it.
std::vector<float> defined_sum(Reduce reduce, DType dtype) {
  std::vector<float> sum;
  for (const char* use : {"gradient.token_embedding.weight", "gradient.token_embedding.weight.use1"}) {
    std::vector<float> of_use;
    for (int64_t k = 0; k < kPieces; ++k) {
      ProgramRun alone(with_gradients());
      const Tokens bound(alone, k);
      alone.run();
      std::vector<float> piece = alone.floats(use);
      if (reduce == Reduce::micro) round(dtype, piece);
      add(of_use, piece);
    }
    add(sum, of_use);
  }
  round(dtype, sum);
  return sum;
}

/// The same, kept in the dtype: each addition is rounded.
std::vector<float> defined_narrow_sum(DType dtype) {
  std::vector<float> sum;
  for (const char* use : {"gradient.token_embedding.weight", "gradient.token_embedding.weight.use1"}) {
    std::vector<float> of_use;
    for (int64_t k = 0; k < kPieces; ++k) {
      ProgramRun alone(with_gradients());
      const Tokens bound(alone, k);
      alone.run();
      std::vector<float> piece = alone.floats(use);
      round(dtype, piece);
      add(of_use, piece);
      round(dtype, of_use);
    }
    add(sum, of_use);
    round(dtype, sum);
  }
  return sum;
}

std::vector<float> sum_of_passes(Reduce reduce, DType dtype, DType sums = DType::f32) {
  Program program = with_gradients();
  accumulate(program, kPieces);
  round_gradients(program, reduce, dtype, sums);
  verify(program, "round_gradients");
  round_gradient_sums(program, dtype);
  verify(program, "round_gradient_sums");
  clip(program, 1);
  verify(program, "clip");
  ProgramRun run(program, kPieces);
  std::optional<Tokens> bound;
  run.run([&](int64_t k) { bound.emplace(run, k); });
  const char* const name = "gradient.token_embedding.weight";
  EXPECT_EQ(program.slot(run.slot(name)).type.dtype, sums);
  return run.floats(name);
}

TEST(RoundGradients, RoundsEachMicroBatchAndThenTheSumOfAllUses) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    EXPECT_EQ(sum_of_passes(Reduce::micro, dtype), defined_sum(Reduce::micro, dtype)) << name_of(dtype);
    EXPECT_EQ(sum_of_passes(Reduce::step, dtype), defined_sum(Reduce::step, dtype)) << name_of(dtype);
    EXPECT_NE(defined_sum(Reduce::step, dtype), defined_sum(Reduce::micro, dtype)) << name_of(dtype);
  }
}

TEST(RoundGradients, KeepsSumsOf16BitsAndRoundsEachAddition) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::vector<float> defined = defined_narrow_sum(dtype);
    for (const Reduce reduce : {Reduce::micro, Reduce::step}) EXPECT_EQ(sum_of_passes(reduce, dtype, dtype), defined) << name_of(dtype);
    EXPECT_NE(defined_sum(Reduce::micro, dtype), defined) << name_of(dtype);
  }
}

TEST(RoundGradients, ToFp32DoesNothing) {
  Program program = with_gradients();
  const std::string before = print(program);
  round_gradients(program, Reduce::micro, DType::f32);
  round_gradient_sums(program, DType::f32);
  EXPECT_EQ(print(program), before);
}

Program exchanged(int64_t stage, Reduce reduce, int64_t rounds, DType sums) {
  Program program = with_backward(gpt_of_rank(3, 1), rounds * 3);
  accumulate(program, rounds);
  round_gradients(program, reduce, DType::bf16, sums);
  const auto choose = [](const Slot&, bool) { return OptimizerChoice{.op = Op::sgd, .attrs = make_attrs(Op::sgd, {})}; };
  if (stage == 0)
    data_parallel(program, reduce, 40000, true, DType::bf16);
  else
    zero_shard(program, stage, reduce, 40000, choose, true, DType::bf16);
  verify(program, "exchange");
  return program;
}

TEST(RoundGradients, RanksSendTheRoundedOnesAndConvertNoneBack) {
  for (const int64_t stage : {0, 1, 2})
    for (const int64_t rounds : {1, 2})
      for (const Reduce reduce : {Reduce::micro, Reduce::step})
        for (const DType sums : {DType::f32, DType::bf16}) {
          const Program program = exchanged(stage, reduce, rounds, sums);
          const Graph& backward = program.find(Phase::backward)->graph;
          size_t sent = 0;
          for (const Node* node : nodes_of(backward, Op::reduce_scatter)) {
            for (const Value gradient : node->in) {
              EXPECT_EQ(backward.type(gradient).dtype, DType::bf16);
              sent += node->when == When::rest ? 0 : 1;
            }
            for (const SlotId slot : node->writes) EXPECT_EQ(program.slot(slot).type.dtype, sums);
          }
          const auto casts = nodes_of(backward, Op::cast);
          EXPECT_EQ(casts.size(), sent) << "stage " << stage << ", " << rounds << " rounds";
          for (const Node* cast : casts) EXPECT_EQ(cast->out[0].dtype, DType::bf16);
        }
}

}  // namespace
}  // namespace st

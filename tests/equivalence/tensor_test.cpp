// Tensor ranks that are threads: results are those of one rank within rounding, and bitwise alike at each degree (traps.md, T18).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "models/layers.h"
#include "models/llama.h"
#include "passes/op_cost.h"
#include "plan/wire_bytes.h"
#include "rank_training.h"
#include "resumed_by.h"
#include "saved_trainer.h"
#include "split_training.h"
#include "thrown_error.h"

namespace st {
namespace {

/// Each step's loss, the first of what it tells, within a share of the other one.
void expect_losses_near(const Outcome& outcome, const Outcome& other, double share) {
  ASSERT_EQ(outcome.told.size(), other.told.size());
  for (size_t i = 0; i < other.told.size(); i += other.told.size() / kSteps) {
    const double loss = std::bit_cast<double>(other.told[i]);
    EXPECT_NEAR(std::bit_cast<double>(outcome.told[i]), loss, share * loss) << "step " << i;
  }
}

std::vector<double> losses_of(Trainer& trainer) {
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

TEST(TensorRanks, HaveTheLossesOfOneRankWithinRounding) {
  const Case plain{.name = "", .keys = {}, .micro_batches = 4};
  const std::vector<double> alone = losses_of(*split(plain, {}).trainer());
  for (const int64_t tensor : {2, 4}) {
    const std::vector<double> shared = losses_of(*split(plain, {.tensor = tensor}).trainer());
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(shared[i], alone[i], 1e-5 * alone[i]) << text_of(Degrees{.tensor = tensor}) << ", step " << i;
  }
}

TEST(TensorRanks, HaveOneStateAtEachDegree) {
  const Case seven{.name = "", .keys = {{"dropout", "0.1"}}, .micro_batches = 7};  // the last round is not whole
  for (const int64_t tensor : {2, 4}) {
    const Outcome first = outcome_of(*split(seven, {.tensor = tensor}).trainer());
    EXPECT_EQ(outcome_of(*split(seven, {.tensor = tensor}).trainer()), first) << "again";
    for (const Degrees& d : {Degrees{.tensor = tensor, .data = 2}, Degrees{.tensor = tensor, .data = 2, .zero = 1},
                             Degrees{.tensor = tensor, .data = 2, .zero = 2}, Degrees{.tensor = tensor, .data = 3, .zero = 3},
                             Degrees{.tensor = tensor, .stages = 2}, Degrees{.tensor = tensor, .data = 2, .zero = 1, .stages = 2},
                             Degrees{.tensor = tensor, .data = 2, .zero = 3, .stages = 2}})
      EXPECT_EQ(outcome_of(*split(seven, d).trainer()), first) << text_of(d);
  }
}

/// A table of tokens, two blocks of `block` and a head of `logits`, with the cross-entropy of the targets. Activations are [B, T, 32].
using Layer = std::function<Value(Builder& b, Value x)>;
Program two_blocks(const Layer& block, const Layer& logits) {
  Program program;
  program.sections.push_back({.graph = {}, .phase = Phase::forward});
  Builder b(program, 0);
  const Value tokens = b.input("tokens", DType::i32, {kBatch, 8}), targets = b.input("targets", DType::i32, {kBatch, 8});
  Value x = embedding_layer(b, "table", tokens, {.vocabulary = kVocabulary, .width = 32});
  for (int n = 0; n < 2; ++n) {
    b.enter(text("block.", n));
    x = block(b, x);
    b.leave();
  }
  b.enter("head");
  const auto loss = b.append(Op::cross_entropy, {logits(b, x), targets});
  b.leave();
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  return program;
}

/// A Llama made of layers: grouped heads with rotary positions, RMS norms, a gated MLP, whose two first products share the last one; a
/// table of its own for the output.
Program llama_of_layers() {
  const auto block = [](Builder& b, Value x) {
    const Value normed = norm_layer(b, "attention_norm", x, {.kind = "rms"});
    x = b.add(x, attention_layer(b, "attention", normed, {.heads = 8, .groups = 4, .rope = true, .bias = false}));
    const Value h = norm_layer(b, "mlp_norm", x, {.kind = "rms"});
    const Value gate = b(Op::silu, {linear_layer(b, "gate", h, {.outputs = 64, .bias = false})});
    const Value gated = b.mul(gate, linear_layer(b, "up", h, {.outputs = 64, .bias = false}));
    return b.add(x, linear_layer(b, "down", gated, {.outputs = 32, .bias = false}));
  };
  return two_blocks(block, [](Builder& b, Value x) {
    return linear_layer(b, "logits", norm_layer(b, "norm", x, {.kind = "rms"}), {.outputs = kVocabulary, .bias = false});
  });
}

Program builtin_llama() {
  return build_llama({.layers = 2, .width = 32, .heads = 8, .groups = 4, .context = 8, .vocabulary = kVocabulary, .ffn = 64});
}

using Keys = std::vector<std::pair<std::string, std::string>>;
std::unique_ptr<Trainer> trainer_of(Program model, const Degrees& d, const Keys& keys) {
  Recipe recipe{.device = "cpu", .batch = 2};
  for (const auto& [key, value] : keys) recipe.set(key, value);
  recipe.tensor = d.tensor;
  recipe.ranks = d.ranks();
  recipe.zero = d.zero;
  recipe.stages = d.stages;
  recipe.micro_batches = 4;
  recipe.threads = 1;
  return std::make_unique<Trainer>(std::make_shared<Model>(Training{.device = "cpu"}.context(), std::move(model), 1), recipe,
                                   std::make_shared<Sequences>(50, 8, kVocabulary));
}

class TensorRanksOfALlama : public testing::TestWithParam<Program (*)()> {};

TEST_P(TensorRanksOfALlama, ShareHeadsAndGates) {
  const auto outcome = [](const Degrees& d, const std::string& recompute = "none") {
    const auto owned = trainer_of(GetParam()(), d, {{"dropout", "0.1"}, {"recompute", "\"" + recompute + "\""}});
    Trainer& trainer = *owned;
    for (const SlotId id : trainer.model().parameters()) {  // no other weight is whole: a table, gates, heads
      const Slot& slot = trainer.plan().program.slot(id);
      EXPECT_EQ(slot.piece.is_cut(), d.tensor == 2 && slot.type.shape.rank() == 2) << slot.name;
      if (d.tensor != 2) break;
    }
    return outcome_of(trainer);
  };
  const Outcome alone = outcome({});
  for (const int64_t tensor : {1, 2, 4}) {  // 70 classes are not shared by 4
    const Outcome first = outcome({.tensor = tensor});
    expect_losses_near(first, alone, 1e-5);
    EXPECT_EQ(outcome({.tensor = tensor, .data = 2, .zero = 3, .stages = 2}), first) << tensor;
  }
  EXPECT_EQ(outcome({.tensor = 2}, "attention"), outcome({.tensor = 2}));
}

INSTANTIATE_TEST_SUITE_P(All, TensorRanksOfALlama, testing::Values(llama_of_layers, builtin_llama),
                         [](const auto& tested) { return tested.index == 0 ? std::string("of_layers") : "builtin"; });

/// Two products so wide that a rank's runs of the first weight are whole blocks of 8-bit moments at degrees 2 and 4.
Program wide_perceptron() {
  const auto block = [](Builder& b, Value x) {
    return b.add(x, linear_layer(b, "down", b(Op::gelu, {linear_layer(b, "up", x, {.outputs = 1024})}), {.outputs = 32}));
  };
  return two_blocks(block, [](Builder& b, Value x) { return linear_layer(b, "logits", x, {.outputs = kVocabulary}); });
}

/// Each rank has whole blocks of the moments: at every degree the same parameters have coded moments, and a checkpoint has all blocks.
TEST(TensorRanks, KeepWholeBlocksOf8BitMoments) {
  const auto trainer = [](const Degrees& d) { return trainer_of(wide_perceptron(), d, {{"optimizer", "\"adamw-8bit\""}}); };
  const ScratchFolder folder("tensor_8bit_test");
  const auto alone = trainer({});
  const Outcome whole = outcome_of(*alone);
  for (const int64_t tensor : {2, 4}) {
    const auto split = trainer({.tensor = tensor});
    EXPECT_GE(split->plan().program.slot_named("moment1_scale.block.0.up.weight"), 0);
    const Outcome first = outcome_of(*split);
    expect_losses_near(first, whole, 1e-5);
    EXPECT_EQ(outcome_of(*trainer({.tensor = tensor, .data = 2, .zero = 2})), first) << tensor;
    EXPECT_EQ(outcome_of(*trainer({.tensor = tensor, .data = 2, .zero = 3, .stages = 2})), first) << tensor;
    const std::string saved = folder / std::to_string(tensor);
    save(*split, saved);
    EXPECT_EQ(resume_from(saved, *alone).read, std::ssize(alone->state_tensors()));
    EXPECT_EQ(alone->state_digest(), split->state_digest());
    const auto again = trainer({.tensor = 6 - tensor});
    resume_from(saved, *again);
    EXPECT_EQ(again->state_digest(), split->state_digest());
  }
}

/// 14 rows of a micro-batch are not cut by 4: then what lies between the products is whole on each rank. Nor are those of a short one.
TEST(TensorRanks, TakeAnyNumberOfRows) {
  const Case c{.name = "", .keys = {{"dropout", "0.1"}}, .micro_batches = 6};
  const auto outcome = [&](const Degrees& d) {
    Training training = split(c, d);
    training.options.context = kTokens;
    return outcome_of_rows(*training.trainer(false), {12, 11, 5, 1});
  };
  const Outcome alone = outcome({});
  for (const int64_t tensor : {2, 4}) {
    const Outcome first = outcome({.tensor = tensor});
    expect_losses_near(first, alone, 1e-5);
    EXPECT_EQ(outcome({.tensor = tensor, .data = 2, .zero = 2}), first) << tensor;
  }
}

class TensorRanksByRecipe : public testing::TestWithParam<Case> {};

TEST_P(TensorRanksByRecipe, AreNearOneRankAndAlikeAtOneDegree) {
  const Case& c = GetParam();
  const Outcome alone = outcome_of(*split(c, {}).trainer());
  const Outcome two = outcome_of(*split(c, {.tensor = 2}).trainer());
  expect_skips_and_updates(c, two);
  const bool is_low = !c.keys.empty() && c.keys[0].first == "precision";
  expect_losses_near(two, alone, is_low ? 2e-3 : 1e-5);  // 16-bit operands round once more on each rank
  for (const Degrees& d : {Degrees{.tensor = 2, .data = 2, .zero = 2}, Degrees{.tensor = 2, .data = 2, .zero = 3, .stages = 2}})
    EXPECT_EQ(outcome_of(*split(c, d).trainer()), two) << c.name << ", " << text_of(d);
}

INSTANTIATE_TEST_SUITE_P(All, TensorRanksByRecipe,
                         testing::Values(Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}}},
                                         Case{.name = "attention", .keys = {{"precision", "\"bf16\""}, {"recompute", "\"attention\""}}},
                                         Case{.name = "fp16", .keys = skipping_fp16()}, Case{.name = "ragged", .keys = {}, .ignored = true},
                                         Case{.name = "recompute", .keys = {{"recompute", "\"full\""}}},
                                         Case{.name = "all_bf16", .keys = all_in_bf16("\"blocks\"")},
                                         Case{.name = "average", .keys = {{"ema_decay", "0.9"}, {"optimizer", "\"lion\""}}},
                                         Case{.name = "groups",
                                              .keys = {{"groups", R"([{"pattern": "*.bias", "weight_decay_scale": 0, "clip": 0.1}])"}}},
                                         Case{.name = "frozen", .keys = {{"groups", R"([{"pattern": "block.0.*", "frozen": true}])"}}},
                                         Case{.name = "muon", .keys = {{"optimizer", "\"muon\""}, {"lr", "0.01"}}},
                                         Case{.name = "adafactor", .keys = {{"optimizer", "\"adafactor\""}}},
                                         Case{.name = "offload", .keys = {{"offload", "\"optimizer\""}, {"gradient_dtype", "\"bf16\""}}},
                                         Case{.name = "one_micro_batch", .keys = {}, .micro_batches = 1}),
                         [](const auto& instance) { return instance.param.name; });

/// Moments, momenta and variances, each where one rank has it.
TEST(TensorRanks, KeepTheOptimizersStateOfOneRankWithinRounding) {
  const auto states = [](const Degrees& d) {
    const auto trainer = split({.name = "", .keys = {{"groups", kThreeOptimizers}}}, d).trainer();
    trainer->step();
    std::map<std::string, std::vector<float>> all;
    for (const StateTensor& tensor : trainer->state_tensors()) {
      if (tensor.role != Role::optimizer) continue;
      std::vector<float>& values = all[tensor.name];
      values.resize(static_cast<size_t>(tensor.type.shape.elements()));
      tensor.to_host(trainer->model().context().backend(), 0, std::as_writable_bytes(std::span(values)));
    }
    return all;
  };
  const auto alone = states({});
  EXPECT_TRUE(alone.contains("column_variance.block.2.attention.qkv.weight") && alone.contains("momentum.block.1.mlp.expand.weight"));
  for (const Degrees& d : {Degrees{.tensor = 2}, Degrees{.tensor = 4, .data = 2, .zero = 2}}) {
    const auto shared = states(d);
    ASSERT_EQ(shared.size(), alone.size());
    for (const auto& [name, want] : alone) {
      const std::vector<float>& got = shared.at(name);
      ASSERT_EQ(got.size(), want.size()) << name;
      double difference = 0, size = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        difference += (got[i] - want[i]) * (got[i] - want[i]);
        size += want[i] * want[i];
      }
      EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(size)) << name << ", " << text_of(d);
    }
  }
}

/// T22: a checkpoint holds whole tensors, whatever the degree.
TEST(TensorRanks, GoOnWhereAnotherDegreeWasSaved) {
  const Case c{.name = "", .keys = {{"ema_decay", "0.9"}, {"groups", kThreeOptimizers}}};
  const ScratchFolder folder("tensor_test");
  const std::vector<Degrees> all = {
      {}, {.tensor = 2}, {.tensor = 4, .data = 2, .zero = 2}, {.tensor = 2, .data = 2, .zero = 3, .stages = 2}};
  for (size_t from = 0; from < all.size(); ++from) {
    const std::string saved = folder / std::to_string(from);
    const auto trainer = split(c, all[from]).trainer();
    outcome_of(*trainer, 2);
    const std::string state = trainer->state_digest();
    save(*trainer, saved);
    for (const size_t number : resumed_by(from, all.size())) {
      const Degrees& to = all[number];
      const auto resumed = split(c, to).trainer();
      resumed->step();  // its own state gives way
      const ResumeReport report = resume_from(saved, *resumed);
      EXPECT_EQ(report.read, std::ssize(resumed->state_tensors()));
      EXPECT_EQ(resumed->state_digest(), state) << text_of(all[from]) << ", then " << text_of(to);
      if (to.tensor != all[from].tensor) continue;
      const auto undisturbed = split(c, to).trainer();
      outcome_of(*undisturbed, 2);
      EXPECT_EQ(outcome_of(*resumed, 2), outcome_of(*undisturbed, 2)) << text_of(all[from]) << ", then " << text_of(to);
    }
  }
}

/// The host reads and writes whole parameters, gradients and averages.
TEST(TensorRanks, ShowWhatTheHostKnowsOfOneRank) {
  const Case c{.name = "", .keys = {{"ema_decay", "0.5"}}};
  const auto alone = split(c, {}).trainer(), shared = split(c, {.tensor = 2, .data = 2, .zero = 1}).trainer();
  for (Trainer* trainer : {alone.get(), shared.get()}) {
    trainer->step();
    const SlotId id = trainer->model().parameter_named("block.1.attention.qkv.weight");
    const Shape& shape = trainer->model().slot(id).type.shape;
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1e-3F * static_cast<float>(i % 100);
    trainer->model().set(id, plain_view("", DType::f32, shape, values.data()));
    trainer->step();
  }
  const auto values_of = [](const Slot& slot, const auto& get) {
    std::vector<float> values(static_cast<size_t>(slot.type.shape.elements()));
    get(plain_view("", DType::f32, slot.type.shape, values.data()));
    return values;
  };
  // All parameters together: the gradient of a key's bias is rounding alone.
  std::array<double, 3> differences{}, sizes{};
  const auto compare = [&](size_t what, const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      differences[what] += (a[i] - b[i]) * (a[i] - b[i]);
      sizes[what] += b[i] * b[i];
    }
  };
  for (const SlotId id : alone->model().parameters()) {
    const Slot& slot = alone->model().slot(id);
    const auto read = [&](Trainer& trainer, const auto& get) { return values_of(slot, [&](const HostView& to) { get(trainer, to); }); };
    const auto weight = [&](Trainer& trainer, const HostView& to) { trainer.model().get(id, to); };
    const auto gradient = [&](Trainer& trainer, const HostView& to) { trainer.gradient(slot.name, to); };
    const auto average = [&](Trainer& trainer, const HostView& to) { trainer.average(slot.name, to); };
    compare(0, read(*shared, weight), read(*alone, weight));
    compare(1, read(*shared, gradient), read(*alone, gradient));
    compare(2, read(*shared, average), read(*alone, average));
  }
  for (size_t what = 0; what < 3; ++what) EXPECT_LE(std::sqrt(differences[what]), 1e-5 * std::sqrt(sizes[what])) << what;
  const auto data = std::make_shared<Sequences>(5, 8, 70);
  EXPECT_NEAR(shared->evaluate(data).loss, alone->evaluate(data).loss, 1e-5);
  EXPECT_NEAR(shared->evaluate_average(data).loss, alone->evaluate_average(data).loss, 1e-5);
}

/// T6, T8, and Megatron-LM's point: each rank has 1 / degree of the arithmetic of the products.
TEST(TensorRanks, SendAndComputeWhatTheirPlansSay) {
  const Case c{.name = "", .keys = {{"groups", kThreeOptimizers}}, .micro_batches = 4};
  const auto products_of = [](const Plan& plan) {
    double flop = 0;
    for (const Section& section : plan.program.sections)
      for (int32_t n = 0; n < section.graph.size(); ++n)
        if (const Op op = section.graph[n].op; op == Op::matmul || op == Op::linear || op == Op::fused_linear)
          flop += cost_of(section.graph, section.graph[n]).flops;
    return flop;
  };
  const double alone = products_of(split(c, {}).trainer()->plan());
  for (const Degrees& d : {Degrees{.tensor = 2}, Degrees{.tensor = 4}, Degrees{.tensor = 2, .data = 2, .zero = 2, .stages = 1}}) {
    const auto trainer = split(c, d).trainer();
    trainer->step();
    const std::vector<int64_t> before = trainer->sent_bytes();
    trainer->step();
    const std::vector<int64_t> after = trainer->sent_bytes();
    for (size_t rank = 0; rank < after.size(); ++rank) {
      const Plan& plan = *trainer->plans()[rank];
      EXPECT_EQ(after[rank] - before[rank], wire_bytes(plan, c.micro_batches).all()) << "rank " << rank << ", " << text_of(d);
      EXPECT_EQ(products_of(plan), alone / static_cast<double>(d.tensor)) << text_of(d);
    }
  }
}

/// An infinity in rank 1's piece of a weight: the error names the weight and the index that one rank would, and rank 1.
TEST(TensorRanks, NameTheFirstValueThatIsNotFinite) {
  const auto found = [](const Degrees& d) {
    const auto trainer = split({.name = "", .keys = {{"find_nan", "true"}}}, d).trainer();
    const SlotId id = trainer->model().parameter_named("block.1.mlp.expand.weight");
    const Shape& shape = trainer->model().slot(id).type.shape;
    std::vector<float> values(static_cast<size_t>(shape.elements()), 0.01F);
    values[static_cast<size_t>(3 * shape.last() - 5)] = std::numeric_limits<float>::infinity();
    trainer->model().set(id, plain_view("", DType::f32, shape, values.data()));
    const std::string before = trainer->state_digest();
    const Error error = error_of([&] { trainer->step(); });
    EXPECT_EQ(error.code(), Code::not_finite) << error.message();
    EXPECT_EQ(trainer->state_digest(), before);
    return error;
  };
  const std::string weight = "its operand block.1.mlp.expand.weight was not finite before: inf at [2, 251]";
  EXPECT_TRUE(is_error(found({}), Code::not_finite, {weight, "in block.1.mlp (forward, micro-batch 0"}));
  for (const Degrees& d : {Degrees{.tensor = 2}, Degrees{.tensor = 2, .data = 2, .zero = 1}, Degrees{.tensor = 2, .stages = 2}}) {
    const Error error = found(d);
    EXPECT_TRUE(is_error(error, Code::not_finite, {weight, "in block.1.mlp (forward, micro-batch 0"})) << text_of(d);
    EXPECT_EQ(error.place.tensor, "block.1.mlp.expand.weight");
    EXPECT_EQ(
        position_of({.data = static_cast<int32_t>(d.data), .tensor = 2, .stage = static_cast<int32_t>(d.stages)}, error.place.rank).tensor,
        1)
        << error.message();
  }
}

TEST(TensorRanks, MeasureTheGradientNoiseScale) {
  const auto scales = [](const Degrees& d) {
    Training training = split({.name = "", .keys = {{"gradient_noise_scale", "true"}}}, d);
    training.options.context = kTokens;
    const auto trainer = training.trainer(false);
    const TokenRows rows(16, kTokens, kVocabulary);
    std::vector<double> all;
    for (const int64_t given : {16, 13, 3, 1, 16}) all.push_back(trainer->step(rows.first(given)).gradient_noise_scale);
    return std::pair(all, trainer->state_digest());
  };
  const std::vector<double> alone = scales({}).first;
  EXPECT_GT(alone.front(), 0);
  const auto two = scales({.tensor = 2});
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(two.first[i], alone[i], 1e-4 * alone[i]) << "step " << i;
  for (const Degrees& d : {Degrees{.tensor = 2, .data = 2, .zero = 1}, Degrees{.tensor = 2, .stages = 2},
                           Degrees{.tensor = 2, .data = 3, .zero = 3, .stages = 2}})
    EXPECT_EQ(scales(d), two) << text_of(d);
}

TEST(TensorRanks, WhoseRowsFailOnOneRankFailOnceAndGoOn) {
  Training training = split({.name = "", .keys = {}}, {.tensor = 2, .data = 2, .zero = 1});
  training.options.context = kTokens;  // of HookedRows
  const Outcome whole = outcome_of(*training.trainer());
  std::atomic<int> fills = 0;
  const auto trainer = trainer_of(training, [&] {
    if (fills.fetch_add(1) == 13) fail(Code::callback, "the rows are not there");
  });
  const Outcome outcome = outcome_with_a_failure(
      *trainer, [](const Error& error) { EXPECT_TRUE(is_error(error, Code::callback, {"the rows are not there"})); });
  EXPECT_EQ(outcome, whole);
  const auto cancelled = training.trainer();
  cancelled->cancel();
  EXPECT_TRUE(is_error(error_of([&] { cancelled->step(); }), Code::cancelled));
  EXPECT_EQ(outcome_of(*cancelled), whole);
}

TEST(TensorRanks, RefuseWhatTheyCannotDo) {
  const auto refused = [](const Degrees& d, std::vector<std::pair<std::string, std::string>> keys) {
    return error_of([&] { split({.name = "", .keys = std::move(keys)}, d).trainer(); });
  };
  EXPECT_TRUE(
      is_error(refused({.tensor = 3}, {}), Code::invalid_argument, {"block.0.attention", "4 heads cannot be cut into 3 equal parts"}));
  EXPECT_TRUE(is_error(refused({.tensor = 2}, {{"optimizer", "\"adamw-8bit\""}}), Code::unsupported,
                       {"adamw-8bit cannot update \"token_embedding.weight\" in 2 pieces", "runs of 2240 elements", "blocks of 256"}));
  Training odd = split({.name = "", .keys = {}}, {.tensor = 2, .stages = 2});
  odd.recipe.ranks = 6;
  EXPECT_TRUE(is_error(error_of([&] { odd.trainer(); }), Code::invalid_argument,
                       {"6 ranks are not a multiple of 2 stages x 2 tensor ranks", "2 x 1 x 2 = 4"}));
}

}  // namespace
}  // namespace st

// Prints, as JSON, the final state of each of several short trainings on this kernel class, and hashes of the executed plan: of its program
// and the order of its nodes, and of what its instructions say. states_test.py compares them with states.json.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <regex>

#include "backend/backend.h"
#include "base/digest.h"
#include "ir/print.h"
#include "models/mlp.h"
#include "rank_training.h"
#include "saved_trainer.h"

namespace st {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

struct Golden {
  std::string state, plan, instructions;
};

/// A hash of what one rank executes. Leaves out bytes and tiles, which may depend on the processor's caches, and the layouts of types: the
/// first digests are older.
std::string hash_of(const Plan& plan) {
  Digest digest;
  digest.update(std::regex_replace(print(plan.program), std::regex(R"(\{data:[^}]*\})"), ""));
  for (const Instruction& at : plan.instructions) digest.update_sized(text(at.section, " ", at.node, " ", at.micro_batch));
  return digest.hex();
}

/// A hash of what instructions say about how, where and for what they run.
std::string hash_of_instructions(const Plan& plan) {
  Digest digest;
  for (const Instruction& at : plan.instructions) {
    for (const auto field : {at.exchange, static_cast<int32_t>(at.kind), static_cast<int32_t>(at.ranks), static_cast<int32_t>(at.makes)})
      digest.update_sized(text(field));
  }
  for (const ExchangePlan& of : plan.exchanges) {
    digest.update_sized(text(of.label, " ", name_of(of.op), " ", of.dtype, " ", of.adds, " ", of.terms));
    for (const ExchangePlan::Tensor& tensor : of.tensors)
      digest.update_sized(text(tensor.operand, " ", tensor.cut_like, " ", tensor.bytes, " ", tensor.first, " ", tensor.grain));
  }
  return digest.hex();
}

Golden golden_of_trained(Trainer& trainer) {
  return {trainer.state_digest(), hash_of(trainer.plan()), hash_of_instructions(trainer.plan())};
}

Golden golden_of(Trainer& trainer, int steps = kSteps) {
  for (int i = 0; i < steps; ++i) trainer.step();
  return golden_of_trained(trainer);
}

Training gpt(const Keys& keys, int64_t ranks = 1, bool ignored = false) {
  return training_of({.name = "", .keys = keys, .micro_batches = 5, .ignored = ignored, .width = 66}, ranks);
}

Golden of_gpt(const Keys& keys, int64_t ranks = 1, bool ignored = false) { return golden_of(*gpt(keys, ranks, ignored).trainer()); }

Golden of_zero(Keys keys, const char* zero, int64_t ranks = 3) {
  keys.emplace_back("zero", zero);
  return of_gpt(keys, ranks);
}

Golden of_mlp(const char* precision, MlpOptions options) {
  Recipe recipe{.device = "cpu", .batch = 6};
  recipe.set("precision", precision);
  recipe.set("warmup", "2");
  const bool has_classes = options.loss == "cross_entropy";
  std::vector<float> x(6 * 5), values(6 * 3);
  std::vector<int32_t> classes = {0, 2, 1, 1, 0, 2};
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) * 0.25F - 0.75F;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4) * 0.5F;
  const auto model = std::make_shared<Model>(gpt({}).context(), build_mlp(options), 1);
  Trainer trainer(model, recipe, nullptr);
  const HostView y = has_classes ? plain_view("y", DType::i32, {6}, classes.data()) : plain_view("y", DType::f32, {6, 3}, values.data());
  for (int i = 0; i < kSteps; ++i) trainer.step(std::vector{plain_view("x", DType::f32, {6, 5}, x.data()), y});
  return golden_of_trained(trainer);
}

/// A loss that the host computes: half the square of every logit.
Golden of_own_loss(const char* precision) {
  const auto trainer = gpt({{"precision", precision}, {"micro_batches", "0"}}).trainer(false);
  const TokenRows rows(64, kTokens, kVocabulary);
  for (int step = 0; step < 3; ++step) {
    for (int64_t k = 0; k < 2; ++k) {
      const std::vector<HostView> batch = rows.rows(4 * step + 2 * k, 2);
      std::vector<HostView> gradients;
      for (const HostView& output : trainer->forward(std::span(batch).first(1)))
        if (output.dtype == DType::f32) gradients.push_back(output);
      trainer->backward(gradients);
    }
    trainer->apply();
  }
  return golden_of_trained(*trainer);
}

Golden of_offload(const char* what, const char* zero) {
  const std::string folder = text("\"", std::filesystem::current_path().string(), "\"");
  return of_gpt({{"offload", what}, {"offload_folder", folder}, {"zero", zero}}, 2);
}

/// Saved by three ranks at stage 2 after two steps, and continued by two at stage 1.
Golden of_resume() {
  const ScratchFolder folder("golden_states");
  const auto first = gpt({{"zero", "2"}}, 3).trainer(), second = gpt({{"zero", "1"}}, 2).trainer();
  losses_of(*first, 2);
  save(*first, folder / "1");
  resume_from(folder / "1", *second);
  return golden_of(*second, kSteps - 2);
}

const std::string kBf16 = "\"bf16\"";

Keys optimizer(const std::string& name, Keys more = {}) {
  more.emplace_back("optimizer", text("\"", name, "\""));
  return more;
}

Keys schedule(const std::string& name, Keys more = {}) {
  more.emplace_back("lr_schedule", text("\"", name, "\""));
  more.emplace_back("lr_steps", "5");
  more.emplace_back("warmup", "1");
  return more;
}

const std::vector<std::pair<std::string, std::function<Golden()>>> kTrainings = {
    {"fp32", [] { return of_gpt({}); }},
    {"bf16",
     [] {
       return of_gpt({{"precision", kBf16}});
     }},
    {"fp16 that skips", [] { return of_gpt(skipping_fp16()); }},
    {"bf16 with fp32 scopes",
     [] {
       return of_gpt({{"precision", kBf16}, {"fp32_scopes", "\"block.0.*\""}});
     }},
    {"ignored targets", [] { return of_gpt({}, 1, true); }},
    {"adam",
     [] {
       return of_gpt(optimizer("adam", {{"weight_decay", "0.1"}}));
     }},
    {"adamw-8bit", [] { return of_gpt(optimizer("adamw-8bit")); }},
    {"sgd with Nesterov's momentum",
     [] {
       return of_gpt(optimizer("sgd", {{"momentum", "0.9"}, {"nesterov", "true"}}));
     }},
    {"adafactor", [] { return of_gpt(optimizer("adafactor")); }},
    {"lion", [] { return of_gpt(optimizer("lion")); }},
    {"rmsprop, centered",
     [] {
       return of_gpt(optimizer("rmsprop", {{"centered", "true"}}));
     }},
    {"adagrad", [] { return of_gpt(optimizer("adagrad")); }},
    {"muon", [] { return of_gpt(optimizer("muon")); }},
    {"muon in bf16",
     [] {
       return of_gpt(optimizer("muon", {{"precision", kBf16}}));
     }},
    {"groups",
     [] {
       return of_gpt({{"groups", R"([{"pattern": "block.0.*", "lr_scale": 2}, {"pattern": "*", "weight_decay_scale": 0}])"}});
     }},
    {"clip by value",
     [] {
       return of_gpt({{"clip", "0"}, {"clip_value", "0.001"}});
     }},
    {"moving average",
     [] {
       return of_gpt({{"ema_decay", "0.9"}});
     }},
    {"dropout",
     [] {
       return of_gpt({{"dropout", "0.1"}});
     }},
    {"label smoothing and z-loss",
     [] {
       return of_gpt({{"label_smoothing", "0.1"}, {"z_loss", "0.001"}});
     }},
    {"cosine",
     [] {
       return of_gpt(schedule("cosine", {{"lr_min", "0.0001"}}));
     }},
    {"wsd",
     [] {
       return of_gpt(schedule("wsd", {{"lr_decay_steps", "3"}}));
     }},
    {"one cycle", [] { return of_gpt(schedule("one_cycle")); }},
    {"2 ranks", [] { return of_gpt({}, 2); }},
    {"3 ranks in bf16",
     [] {
       return of_gpt({{"precision", kBf16}}, 3);
     }},
    {"5 ranks with small buckets",
     [] {
       return of_gpt({{"bucket", "4096"}}, 5);
     }},
    {"2 ranks, reduced once a step",
     [] {
       return of_gpt({{"reduce", "\"step\""}}, 2);
     }},
    {"3 ranks, reduced once a step",
     [] {
       return of_gpt({{"reduce", "\"step\""}}, 3);
     }},
    {"zero 1", [] { return of_zero({}, "1"); }},
    {"zero 2", [] { return of_zero({}, "2"); }},
    {"zero 3", [] { return of_zero({}, "3"); }},
    {"zero 1 with adamw-8bit", [] { return of_zero(optimizer("adamw-8bit"), "1"); }},
    {"zero 2 with muon", [] { return of_zero(optimizer("muon"), "2"); }},
    {"zero 2 with adafactor", [] { return of_zero(optimizer("adafactor"), "2"); }},
    {"zero 2 in bf16",
     [] {
       return of_zero({{"precision", kBf16}}, "2");
     }},
    {"zero 3 in fp16", [] { return of_zero(skipping_fp16(), "3"); }},
    {"recompute blocks with dropout",
     [] {
       return of_gpt({{"recompute", "\"blocks\""}, {"dropout", "0.1"}});
     }},
    {"recompute attention in bf16",
     [] {
       return of_gpt({{"recompute", "\"attention\""}, {"precision", kBf16}});
     }},
    {"recompute full with zero 3",
     [] {
       return of_zero({{"recompute", "\"full\""}}, "3", 2);
     }},
    {"offload of the optimizer", [] { return of_offload("\"optimizer\"", "0"); }},
    {"offload of the parameters with zero 1", [] { return of_offload("\"parameters\"", "1"); }},
    {"own loss", [] { return of_own_loss("\"fp32\""); }},
    {"own loss in bf16", [] { return of_own_loss(kBf16.c_str()); }},
    {"resume on other ranks and another stage", of_resume},
    {"mlp, values",
     [] {
       return of_mlp("\"fp32\"", {.inputs = 5, .hidden = {9, 4}, .outputs = 3});
     }},
    {"mlp, classes in bf16",
     [] { return of_mlp(kBf16.c_str(), {.inputs = 5, .hidden = {8}, .outputs = 3, .activation = "relu", .loss = "cross_entropy"}); }},
};

}  // namespace
}  // namespace st

int main() try {
  std::printf("{\"class\": \"%s\", \"trainings\": {", std::string(st::make_cpu_backend()->kernel_class()).c_str());
  const char* separator = "\n";
  for (const auto& [name, train] : st::kTrainings) {
    const st::Golden golden = train();
    std::printf("%s  \"%s\": [\"%s\", \"%s\", \"%s\"]", separator, name.c_str(), golden.state.c_str(), golden.plan.c_str(),
                golden.instructions.c_str());
    separator = ",\n";
  }
  std::printf("}}\n");
} catch (const st::Error& error) {
  std::fprintf(stderr, "golden_states: %s\n", error.message().c_str());
  return error.code() == st::Code::unavailable ? 77 : 1;
}

// A rank of a group with everything that its trainer needs, on a thread of the test.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "small_run.h"
#include "thread_ranks.h"

namespace st::test {

inline constexpr const char* kGroupRecipe = R"({"batch": 2, "micro_batches": 7, "warmup": 2, "dropout": 0.1, "threads": 1})";

/// One rank's own context, model, data and trainer. `changed`: recipe keys that differ from kGroupRecipe.
struct GroupRank {
  explicit GroupRank(const std::string& text, const std::map<std::string, std::string>& changed = {},
                     const st_context_options* options = nullptr) {
    EXPECT_TRUE(works(st_context_create(options, run.context.out())));
    EXPECT_TRUE(works(st_model_builtin(run.context, "gpt", kSmallGpt, 1, run.model.out())));
    EXPECT_TRUE(works(st_recipe_create(kGroupRecipe, run.recipe.out())));
    if (!text.empty()) {
      EXPECT_TRUE(works(st_data_files(run.context, text.c_str(), R"({"context": 8})", run.data.out())));
    }
    for (const auto& [key, value] : changed) EXPECT_TRUE(works(st_recipe_set(run.recipe, key.c_str(), value.c_str())));
  }
  st_status join(st_communicator* own) { return st_trainer_create_in_group(run.model, run.recipe, run.data, own, trainer.out()); }
  st_status step() { return st_trainer_step(trainer, 0, nullptr, nullptr); }
  st_status set_bias(float value) {
    std::vector<float> values(static_cast<size_t>(width()), value);
    const int64_t dims[1] = {width()};
    const st_view view{ST_F32, 1, dims, nullptr, values.data(), width() * 4};
    return st_model_set(run.model, kBias, &view);
  }
  std::string digest() const { return text_of(st_trainer_digest_collective, trainer); }

  static constexpr const char* kBias = "final_norm.beta";
  /// A SmallRun's objects but for its trainer.
  struct {
    HeldContext context;
    HeldModel model;
    HeldRecipe recipe;
    HeldData data;
  } run;
  HeldTrainer trainer;

 private:
  int64_t width() const {
    for (int64_t i = 0;; ++i) {
      auto info = filled(st_parameter_info_init);
      if (st_model_parameter(run.model, i, &info) != ST_OK) return 0;
      if (info.name == std::string(kBias)) return info.dims[0];
    }
  }
};

/// A consumer of bytes; `user` is a std::string.
inline st_status append_bytes(void* user, const void* bytes, int64_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), static_cast<size_t>(count));
  return ST_OK;
}

using Keys = std::map<std::string, std::string>;

/// Options of a context whose models allocate parameters late: with zero 1 and 2 in 16-bit precision the ranks shard the masters.
inline const st_context_options* late_parameters() {
  static const st_context_options options = [] {
    auto made = filled(st_context_options_init);
    made.late_parameters = 1;
    return made;
  }();
  return &options;
}

/// With its trainer, which may hold shards of the state or the parameters. `own` null: a trainer without a group.
struct JoinedRank : GroupRank {
  JoinedRank(const std::string& text, const Keys& keys, st_communicator* own, bool is_late = false)
      : GroupRank(text, keys, is_late ? late_parameters() : nullptr) {
    EXPECT_TRUE(works(own != nullptr ? join(own) : st_trainer_create(run.model, run.recipe, run.data, trainer.out())));
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(works(step()));
  }

  static constexpr const char* kWeight = "token_embedding.weight";
};

/// The digest after the same steps on one rank.
inline std::string digest_alone(const std::string& text, int steps) {
  const SmallRun run(text, nullptr, kGroupRecipe);
  for (int i = 0; i < steps; ++i) EXPECT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  return run.digest();
}

}  // namespace st::test

// Calls that read weights and state come in pairs: the local one refuses at once what other ranks have, and names the collective one; the
// collective one gives each rank what one rank would have. Here a rank is a thread with its own context.
#include <algorithm>
#include <barrier>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint_folder.h"
#include "group_rank.h"
#include "sanitized.h"

namespace {

using namespace st::test;

constexpr const char* kNorm = "final_norm.beta";

/// Either half of the pairs.
struct Calls {
  decltype(&st_model_get) get;
  decltype(&st_model_digest) model_digest;
  decltype(&st_model_clone) clone;
  decltype(&st_model_write) write;
  decltype(&st_predictor_create) predictor;
  decltype(&st_trainer_evaluate) evaluate, evaluate_average;
  decltype(&st_trainer_gradient) gradient, average;
  decltype(&st_trainer_digest) digest;
};
constexpr Calls kLocal = {.get = st_model_get,
                          .model_digest = st_model_digest,
                          .clone = st_model_clone,
                          .write = st_model_write,
                          .predictor = st_predictor_create,
                          .evaluate = st_trainer_evaluate,
                          .evaluate_average = st_trainer_evaluate_average,
                          .gradient = st_trainer_gradient,
                          .average = st_trainer_average,
                          .digest = st_trainer_digest};
constexpr Calls kCollective = {.get = st_model_get_collective,
                               .model_digest = st_model_digest_collective,
                               .clone = st_model_clone_collective,
                               .write = st_model_write_collective,
                               .predictor = st_predictor_create_collective,
                               .evaluate = st_trainer_evaluate_collective,
                               .evaluate_average = st_trainer_evaluate_average_collective,
                               .gradient = st_trainer_gradient_collective,
                               .average = st_trainer_average_collective,
                               .digest = st_trainer_digest_collective};

struct Reader : JoinedRank {
  Reader(const std::string& text, Keys keys, st_communicator* own) : JoinedRank(text, with_average(std::move(keys)), own) {}

  const std::vector<std::string>& names() const {
    int64_t count = 0;
    EXPECT_TRUE(works(st_model_parameter_count(run.model, &count)));
    for (int64_t i = std::ssize(names_); i < count; ++i)
      names_.emplace_back(filled(st_parameter_info_init, st_model_parameter, run.model, i).name);
    return names_;
  }
  template <class Get, class Handle>
  st_status read(Get get, Handle* from, const std::string& name, std::vector<float>& values) const {
    const std::vector<std::string>& all = names();
    const auto info = filled(st_parameter_info_init, st_model_parameter, run.model, std::ranges::find(all, name) - all.begin());
    int64_t elements = 1;
    for (int32_t d = 0; d < info.rank; ++d) elements *= info.dims[d];
    values.assign(static_cast<size_t>(elements), -1);
    const st_view to{ST_F32, info.rank, info.dims, nullptr, values.data(), elements * 4};
    return get(from, name.c_str(), &to);
  }
  double loss(decltype(&st_trainer_evaluate) evaluate) const {
    auto report = filled(st_evaluation_init);
    EXPECT_TRUE(works(evaluate(trainer, run.data, &report)));
    return report.loss;
  }

 private:
  static Keys with_average(Keys keys) {
    keys["ema_decay"] = "0.5";
    return keys;
  }

  mutable std::vector<std::string> names_;  // asked for once
};

/// What a host reads of a run.
struct Values {
  std::string state, weights, stream, of_clone;
  std::vector<std::vector<float>> parameters, averages, gradients;
  double loss = 0, average_loss = 0;
  bool operator==(const Values&) const = default;
};

Values values_of(const Reader& rank, const Calls& calls) {
  Values all;
  st_model* const model = rank.run.model;
  all.state = text_of(calls.digest, rank.trainer);
  all.weights = text_of(calls.model_digest, model);
  EXPECT_TRUE(works(calls.write(model, append_bytes, &all.stream)));
  all.of_clone = text_of(st_model_digest, hold<HeldModel>(calls.clone, model));  // a clone is whole
  for (const std::string& name : rank.names()) {
    EXPECT_TRUE(works(rank.read(calls.get, model, name, all.parameters.emplace_back())));
    EXPECT_TRUE(works(rank.read(calls.average, static_cast<st_trainer*>(rank.trainer), name, all.averages.emplace_back())));
    EXPECT_TRUE(works(rank.read(calls.gradient, static_cast<st_trainer*>(rank.trainer), name, all.gradients.emplace_back())));
  }
  all.loss = rank.loss(calls.evaluate);
  all.average_loss = rank.loss(calls.evaluate_average);
  HeldPredictor predictor;
  EXPECT_TRUE(works(calls.predictor(model, nullptr, predictor.out())));
  EXPECT_TRUE(works(st_predictor_refresh(predictor)));
  return all;
}

TEST(CollectiveCalls, GiveEveryRankTheValuesOfOneUnderEveryRecipe) {
  const std::string text = text_file("collective.txt", 600);
  Reader alone(text, {}, nullptr);
  alone.steps(2);
  const Values expected = values_of(alone, kLocal);
  EXPECT_EQ(expected.of_clone, expected.weights);
  EXPECT_EQ(values_of(alone, kCollective), expected) << "without a group they are the local calls";
  for (const auto& [size, keys] :
       {std::pair{1, Keys{{"zero", "3"}}}, {2, Keys{}}, {3, Keys{{"zero", "1"}}}, {3, Keys{{"zero", "3"}}}, {2, Keys{{"stages", "2"}}}}) {
    if (st::kThreadSanitized && !keys.contains("stages") && (size < 3 || keys.at("zero") != "3"))
      continue;  // their threads do less of the same
    ThreadRanks(size).each([&, &keys = keys](int, st_communicator* own) {
      Reader mine(text, keys, own);
      mine.steps(2);
      EXPECT_EQ(values_of(mine, kCollective), expected);
      EXPECT_EQ(text_of(st_trainer_digest, mine.trainer), expected.state) << "the last digest of all ranks";
    });
  }
}

/// Each is refused before any other rank could answer: none calls anything meanwhile.
void expect_refused_at_once(const Keys& keys, const std::string& key, bool are_weights_sharded) {
  SCOPED_TRACE(key);
  const std::string text = text_file("collective.txt", 600);
  const CheckpointFolder folder;
  std::barrier others_wait(2);
  ThreadRanks(2).each([&](int rank, st_communicator* own) {
    Reader mine(text, keys, own);
    mine.steps(1);
    if (rank == 0) others_wait.arrive_and_wait();
    st_model* const model = mine.run.model;
    st_trainer* const trainer = mine.trainer;
    const auto refused = [&](const char* call, st_status status) {
      EXPECT_TRUE(
          fails(ST_WRONG_STATE, status,
                {std::string(call) + ": ", std::string(call) + "_collective on all ranks", key, "rank " + std::to_string(rank) + " of 2"}));
    };
    const char* hex = nullptr;
    std::vector<float> values;
    std::string stream;
    HeldModel clone;
    HeldPending pending;
    HeldPredictor predictor;
    HeldCheckpoint checkpoint;
    auto report = filled(st_evaluation_init);
    const std::string weights = folder.path() + ".safetensors";
    if (are_weights_sharded) {
      refused("st_model_get", mine.read(st_model_get, model, JoinedRank::kWeight, values));
      refused("st_model_digest", st_model_digest(model, &hex));
      refused("st_model_clone", st_model_clone(model, clone.out()));
      refused("st_model_write", st_model_write(model, append_bytes, &stream));
      refused("st_model_write_file", st_model_write_file(model, weights.c_str(), nullptr));
      refused("st_model_write_file", st_model_write_file(model, weights.c_str(), pending.out()));
      refused("st_predictor_create", st_predictor_create(model, nullptr, predictor.out()));
      refused("st_trainer_evaluate", st_trainer_evaluate(trainer, mine.run.data, &report));
      EXPECT_TRUE(stream.empty());
      EXPECT_FALSE(std::filesystem::exists(weights));
    } else {
      EXPECT_TRUE(works(mine.read(st_model_get, model, JoinedRank::kWeight, values)));
      EXPECT_TRUE(works(st_model_digest(model, &hex)));
      EXPECT_TRUE(works(st_predictor_create(model, nullptr, predictor.out())));
      EXPECT_TRUE(works(st_trainer_evaluate(trainer, mine.run.data, &report)));
    }
    refused("st_trainer_gradient", mine.read(st_trainer_gradient, trainer, JoinedRank::kWeight, values));
    refused("st_trainer_average", mine.read(st_trainer_average, trainer, JoinedRank::kWeight, values));
    refused("st_trainer_evaluate_average", st_trainer_evaluate_average(trainer, mine.run.data, &report));
    ASSERT_TRUE(works(st_checkpoint_create(mine.run.context, (folder.path() + std::to_string(rank)).c_str(), nullptr, checkpoint.out())));
    refused("st_trainer_save", st_trainer_save(trainer, checkpoint, nullptr, nullptr));
    refused("st_trainer_save", st_trainer_save(trainer, checkpoint, nullptr, pending.out()));
    refused("st_trainer_save_every", st_trainer_save_every(trainer, checkpoint, 1, 0));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_digest(trainer, &hex), {"st_trainer_digest: ", "st_trainer_digest_collective", key}));
    const CheckpointFolder logs;
    ASSERT_TRUE(works(st_trainer_log(trainer, (logs.path() + ".log").c_str())));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_log_end(trainer, 0), {"st_trainer_log_end: ", "st_trainer_digest_collective"}));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_write_report(trainer, (logs.path() + ".html").c_str(), nullptr),
                      {"st_trainer_write_report: ", "st_trainer_digest_collective"}));
    if (rank == 1) others_wait.arrive_and_wait();
    mine.steps(1);  // nothing has been disturbed
    mine.digest();
    EXPECT_TRUE(works(st_trainer_log_end(trainer, 0)));
  });
}

TEST(CollectiveCalls, TheLocalOnesRefuseShardedWeightsAtOnceAndNameThem) {
  expect_refused_at_once({{"zero", "3"}}, "(zero 3)", true);
  expect_refused_at_once({{"tensor", "2"}}, "(tensor 2)", true);
}

TEST(CollectiveCalls, TheLocalOnesNameTheSettingsForWhichMastersAreSharded) {
  const std::string text = text_file("collective.txt", 600);
  ThreadRanks(2).each([&](int, st_communicator* own) {
    const JoinedRank mine(text, {{"zero", "2"}, {"precision", "\"bf16\""}}, own, true);
    const char* hex = nullptr;
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_model_digest(mine.run.model, &hex), {"(zero 2, bf16, late_parameters)"}));
  });
}

TEST(CollectiveCalls, TheLocalOnesRefuseShardedStateAtOnceAndReadWholeWeights) {
  expect_refused_at_once({{"zero", "1"}}, "(zero 1)", false);
  expect_refused_at_once({{"zero", "2"}}, "(zero 2)", false);
}

/// A parameter is on one stage, which reads it alone.
TEST(CollectiveCalls, TheLocalOneReadsTheParametersThatARankHasWhole) {
  const std::string text = text_file("collective.txt", 600);
  std::vector<std::vector<std::string>> read(2);
  ThreadRanks(2).each([&](int rank, st_communicator* own) {
    Reader mine(text, {{"stages", "2"}}, own);
    mine.steps(1);
    for (const std::string& name : mine.names()) {
      std::vector<float> alone, together;
      const st_status status = mine.read(st_model_get, static_cast<st_model*>(mine.run.model), name, alone);
      if (status == ST_OK)
        read[static_cast<size_t>(rank)].push_back(name);
      else
        EXPECT_TRUE(fails(ST_WRONG_STATE, status, {name, "stages 2", "st_model_get_collective"}));
      ASSERT_TRUE(works(mine.read(st_model_get_collective, static_cast<st_model*>(mine.run.model), name, together)));
      if (status == ST_OK) {
        EXPECT_EQ(alone, together) << name;
      }
    }
  });
  EXPECT_FALSE(read[0].empty());
  EXPECT_FALSE(read[1].empty());
  EXPECT_EQ(std::ranges::count(read[0], std::string(kNorm)), 0);
  EXPECT_EQ(std::ranges::count(read[1], std::string(kNorm)), 1);
}

TEST(CollectiveCalls, NameTheRankThatDoesNotComeAtTheDeadline) {
  const std::string text = text_file("collective.txt", 600);
  const std::vector<std::function<st_status(const Reader&)>> calls = {
      [](const Reader& mine) {
        std::vector<float> values;
        return mine.read(st_model_get_collective, static_cast<st_model*>(mine.run.model), JoinedRank::kWeight, values);
      },
      [](const Reader& mine) {
        HeldPredictor predictor;
        return st_predictor_create_collective(mine.run.model, nullptr, predictor.out());
      },
      [](const Reader& mine) {
        auto report = filled(st_evaluation_init);
        return st_trainer_evaluate_collective(mine.trainer, mine.run.data, &report);
      },
      [](const Reader& mine) {
        const char* hex = nullptr;
        return st_trainer_digest_collective(mine.trainer, &hex);
      }};
  for (const auto& call : calls) {
    std::barrier ends(3);
    ThreadRanks(3, 2000).each([&](int rank, st_communicator* own) {
      Reader mine(text, {{"zero", "3"}}, own);
      if (rank != 1) {
        EXPECT_TRUE(fails(ST_TIMEOUT, call(mine), {"rank 1"}));
      }
      ends.arrive_and_wait();
    });
  }
}

/// Also where each rank has the whole state: then rank 0 writes it.
TEST(CollectiveCalls, SaveOneCheckpointUnderEveryRecipe) {
  const std::string text = text_file("collective.txt", 600);
  for (const Keys& keys : {Keys{}, Keys{{"zero", "2"}}}) {
    if (st::kThreadSanitized && keys.empty()) continue;
    const CheckpointFolder folder;
    ThreadRanks(3).each([&](int rank, st_communicator* own) {
      Reader mine(text, keys, own);
      HeldCheckpoint checkpoint;
      auto options = filled(st_checkpoint_options_init);
      options.read_only = rank == 0 ? 0 : 1;
      const auto open = [&] { ASSERT_TRUE(works(st_checkpoint_create(mine.run.context, folder.c_str(), &options, checkpoint.out()))); };
      if (rank == 0) open();
      ASSERT_TRUE(works(st_communicator_barrier(own, "the folder is there", nullptr)));
      if (rank != 0) open();
      for (const bool waits : {true, false}) {
        mine.steps(1);
        HeldPending pending;
        ASSERT_TRUE(works(st_trainer_save_collective(mine.trainer, checkpoint, nullptr, waits ? nullptr : pending.out())));
        if (!waits) {
          EXPECT_TRUE(works(st_pending_wait(pending, -1)));
        }
        EXPECT_EQ(text_of(st_checkpoint_hash, checkpoint, nullptr), mine.digest());
      }
      ASSERT_TRUE(works(st_trainer_save_every_collective(mine.trainer, checkpoint, 1, 0)));
      mine.steps(1);
      EXPECT_TRUE(works(st_checkpoint_wait(checkpoint, -1)));
      ASSERT_TRUE(works(st_trainer_save_every_collective(mine.trainer, nullptr, 0, 0)));
      ASSERT_TRUE(works(st_communicator_barrier(own, "all have saved", nullptr)));
      EXPECT_EQ(text_of(st_checkpoint_hash, checkpoint, nullptr), mine.digest());
      EXPECT_TRUE(works(st_trainer_resume(mine.trainer, checkpoint, nullptr, nullptr, nullptr)));
    });
  }
}

}  // namespace

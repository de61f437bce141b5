// Operations that need whole parameters of a sharded model (with zero 3, for example): collective calls that give each rank the bits of a
// single rank. Here a rank is a thread with its own context.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "checkpoint_folder.h"
#include "group_rank.h"
#include "sanitized.h"

namespace {

using namespace st::test;

/// The weights, and their results for some rows.
struct Shown {
  std::string digest, stream;
  std::vector<double> values;
  std::vector<std::vector<float>> logits;  // for one row, for two
  std::vector<int32_t> text;
  bool operator==(const Shown&) const = default;
};

std::string digest_of(st_model* model) { return text_of(st_model_digest_collective, model); }

st_status get(st_model* model, const char* name, std::vector<double>& values, int64_t rows) {
  const int64_t dims[2] = {rows, static_cast<int64_t>(values.size()) / std::max<int64_t>(rows, 1)};
  const st_view view{ST_F64, 2, dims, nullptr, values.data(), static_cast<int64_t>(values.size() * sizeof(double))};
  return st_model_get_collective(model, name, &view);
}

std::vector<float> logits_of(st_predictor* predictor, int64_t rows) {
  std::vector<int32_t> tokens(static_cast<size_t>(rows * kSmallContext));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % 50);
  std::vector<float> logits(tokens.size() * 256);
  const int64_t in[2] = {rows, kSmallContext}, out[3] = {rows, kSmallContext, 256};
  const st_named_view inputs[] = {{"tokens", {ST_I32, 2, in, nullptr, tokens.data(), static_cast<int64_t>(tokens.size() * 4)}}};
  const st_named_view outputs[] = {{"logits", {ST_F32, 3, out, nullptr, logits.data(), static_cast<int64_t>(logits.size() * 4)}}};
  EXPECT_TRUE(works(st_predictor_run(predictor, 1, inputs, 1, outputs)));
  return logits;
}

void make_predictor(st_model* model, int32_t shared, HeldPredictor& predictor) {
  auto options = filled(st_predictor_options_init);
  options.shared = shared;
  ASSERT_TRUE(works(st_predictor_create_collective(model, &options, predictor.out())));
}

Shown shown(st_model* model, size_t weights) {
  Shown all{.digest = digest_of(model), .stream = {}, .values = std::vector<double>(weights), .logits = {}, .text = {}};
  EXPECT_TRUE(works(st_model_write_collective(model, append_bytes, &all.stream)));
  EXPECT_TRUE(works(get(model, JoinedRank::kWeight, all.values, 256)));
  for (const int32_t shared : {0, 1}) {
    HeldPredictor predictor;
    make_predictor(model, shared, predictor);
    for (const int64_t rows : {1, 2}) all.logits.push_back(logits_of(predictor, rows));
    const Written more = written(predictor);
    EXPECT_TRUE(works(more.status));
    all.text.insert(all.text.end(), more.tokens.begin(), more.tokens.end());
  }
  return all;
}

TEST(ModelInPieces, IsReadByAllRanksTogetherWithTheBitsOfOne) {
  const std::string text = text_file("zero.txt", 3000);
  for (const auto& [size, keys] : {std::pair{2, Keys{{"zero", "3"}}},
                                   {3, Keys{{"zero", "3"}, {"precision", "\"bf16\""}}},
                                   {2, Keys{{"zero", "2"}, {"precision", "\"fp16\""}}}}) {
    if (st::kSanitized && !keys.contains("precision")) continue;  // the others have masters, too
    if (st::kThreadSanitized && size == 2) continue;
    JoinedRank alone(text, keys, nullptr, true);
    const size_t weights = 256 * 16;
    alone.steps(2);
    const Shown expected = shown(alone.run.model, weights);
    EXPECT_FALSE(expected.text.empty());
    alone.steps(1);
    const Shown later = shown(alone.run.model, weights);
    const CheckpointFolder folder;
    std::filesystem::create_directory(folder.path());
    const ThreadRanks ranks(size);
    ranks.each([&, &keys = keys](int rank, st_communicator* own) {
      JoinedRank mine(text, keys, own, true);
      mine.steps(2);
      st_model* const model = mine.run.model;
      EXPECT_EQ(shown(model, weights), expected);
      HeldPredictor snapshot;
      make_predictor(model, 0, snapshot);
      mine.steps(1);
      const int64_t rows = 1 + rank % 2;  // each rank has its own rows
      EXPECT_EQ(logits_of(snapshot, rows), expected.logits[static_cast<size_t>(rows - 1)]);
      EXPECT_TRUE(works(st_predictor_refresh(snapshot)));
      EXPECT_EQ(logits_of(snapshot, rows), later.logits[static_cast<size_t>(rows - 1)]);
      mine.trainer.reset();  // the communicator stays
      EXPECT_EQ(shown(model, weights), later);
      const auto whole = hold<HeldModel>(st_model_clone_collective, model);
      if (rank == 0) {
        EXPECT_EQ(shown(whole, weights), later);
      }
      for (const bool waits : {false, true}) {
        const std::string path = folder.in(waits ? "waited" : "pending");
        HeldPending pending;
        ASSERT_TRUE(works(st_model_write_file_collective(model, (path + std::to_string(rank)).c_str(), waits ? nullptr : pending.out())));
        if (!waits) {
          EXPECT_TRUE(works(st_pending_wait(pending, -1)));
        }
        EXPECT_EQ(std::filesystem::exists(path + std::to_string(rank)), rank == 0);
        if (rank != 0) continue;
        ASSERT_TRUE(works(st_model_read_file(alone.run.model, (path + "0").c_str(), nullptr, nullptr)));
        EXPECT_EQ(digest_of(alone.run.model), later.digest);
      }
    });
  }
}

TEST(ModelInPieces, ToldOnAllWhatOneRefusesTrainingGoesOn) {
  const std::string text = text_file("zero.txt", 3000);
  const std::string alone = digest_alone(text, 2);
  const CheckpointFolder folder;
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    JoinedRank mine(text, {{"zero", "3"}}, own, true);
    mine.steps(1);
    st_model* const model = mine.run.model;
    std::vector<double> values(rank == 1 ? 256 : 256 * 16);
    EXPECT_TRUE(
        fails(ST_INVALID_ARGUMENT, get(model, JoinedRank::kWeight, values, 256), {rank == 1 ? "the view's is [256, 1]" : "rank 1"}));
    EXPECT_TRUE(fails(ST_NOT_FOUND, get(model, "no such", values, 256), {"no such"}));
    const char* hex = nullptr;
    HeldModel clone;
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, rank == 2 ? st_model_digest_collective(model, &hex) : st_model_clone_collective(model, clone.out()),
                      {"rank 2", "digest", "clone"}));
    // A stream that fails on one rank, and a file that cannot be written: the other ranks' exchange still completes.
    struct Sink {
      bool breaks;
      int64_t bytes;
    } sink{rank == 1, 0};
    const auto write = [](void* user, const void*, int64_t count) -> st_status {
      Sink& to = *static_cast<Sink*>(user);
      to.bytes += count;
      return to.breaks ? ST_IO : ST_OK;
    };
    EXPECT_TRUE(fails(ST_CALLBACK, st_model_write_collective(model, write, &sink), {"write returned"}));
    EXPECT_TRUE(
        fails(ST_NOT_FOUND, st_model_write_file_collective(model, folder.in("no/such/folder").c_str(), nullptr), {"no/such/folder"}));
    // One rank ends its text; all have equally many tokens.
    HeldPredictor predictor;
    make_predictor(model, 0, predictor);
    struct Text {
      int64_t most, tokens;
    } told{rank == 1 ? 3 : 100, 0};
    const auto on_token = [](void* user, int32_t) -> st_status {
      Text& of = *static_cast<Text*>(user);
      return ++of.tokens == of.most ? ST_CANCELLED : ST_OK;
    };
    const int32_t prompt[] = {1, 2, rank};
    EXPECT_TRUE(works(st_predictor_generate(predictor, 3, prompt, nullptr, on_token, &told)));
    EXPECT_EQ(told.tokens, 3);
    EXPECT_TRUE(
        fails(ST_INVALID_ARGUMENT, st_predictor_generate(predictor, rank == 0 ? 0 : 3, prompt, nullptr, on_token, &told), {"prompt"}));
    mine.steps(1);
    EXPECT_EQ(mine.digest(), alone);
  });
}

TEST(ModelInPieces, WithoutItsCommunicatorIsNotToBeRead) {
  const std::string text = text_file("zero.txt", 3000);
  ThreadRanks ranks(2);
  std::vector<std::unique_ptr<JoinedRank>> all(2);
  ranks.each([&](int rank, st_communicator* own) {
    all[static_cast<size_t>(rank)] = std::make_unique<JoinedRank>(text, Keys{{"zero", "3"}}, own, true);
    all[static_cast<size_t>(rank)]->trainer.reset();
  });
  ranks.ranks.clear();
  const char* hex = nullptr;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_model_digest_collective(all[0]->run.model, &hex), {"rank 0 of 2", "communicator"}));
  HeldPredictor predictor;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_predictor_create_collective(all[1]->run.model, nullptr, predictor.out()), {"rank 1 of 2"}));
}

}  // namespace

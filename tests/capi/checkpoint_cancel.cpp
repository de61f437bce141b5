// st_context_cancel ends the calls of a checkpoint and leaves nothing half done.
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "checkpoint_folder.h"

namespace {

using namespace st::test;
using Clock = std::chrono::steady_clock;

constexpr int64_t kBytes = int64_t{16} << 20;
constexpr double kSlow = 1e6;  // bytes per second: a save at this rate would take 16 seconds

class CheckpointCancel : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context_.out())));
    std::iota(values_.begin(), values_.end(), static_cast<unsigned char>(0));
  }
  void open(double bytes_per_second) {
    auto options = filled(st_checkpoint_options_init);
    options.bytes_per_second = bytes_per_second;
    checkpoint_.reset();
    ASSERT_TRUE(works(st_checkpoint_create(context_, folder_.c_str(), &options, checkpoint_.out())));
  }
  st_status save(int64_t step, st_pending** pending = nullptr) {
    const st_named_view view = {"values", {ST_U8, 1, dims_, nullptr, values_.data(), kBytes}};
    return st_checkpoint_save(checkpoint_, step, 1, &view, nullptr, pending);
  }
  std::string names() { return text_of(st_checkpoint_list, checkpoint_); }
  /// Cancels repeatedly from before the call until it has ended. Repeats a call that completed between two cancels.
  st_status cancelled(const std::function<st_status()>& call) {
    std::atomic<bool> ended{false};
    std::thread other([&] {
      while (!ended) st_context_cancel(context_);
    });
    st_status status = ST_OK;
    for (int i = 0; i < 100 && status == ST_OK; ++i) status = call();
    ended = true;
    other.join();
    return status;
  }
  /// Cancels once, after the call has begun to write.
  st_status cancelled_after(std::chrono::milliseconds time, const std::function<st_status()>& call) {
    Clock::time_point asked;
    std::thread other([&] {
      std::this_thread::sleep_for(time);
      asked = Clock::now();
      EXPECT_EQ(st_context_cancel(context_), ST_OK);
    });
    const st_status status = call();
    const auto ended = Clock::now();
    other.join();
    EXPECT_LT(ended - asked, std::chrono::seconds(2));  // about 20 ms; more on a busy machine
    return status;
  }

  CheckpointFolder folder_;
  HeldContext context_;
  HeldCheckpoint checkpoint_;
  const int64_t dims_[1] = {kBytes};
  std::vector<unsigned char> values_ = std::vector<unsigned char>(kBytes);
};

TEST_F(CheckpointCancel, EndsASaveThatIsWaitedFor) {
  open(0);
  ASSERT_TRUE(works(save(1)));
  open(kSlow);
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled_after(std::chrono::milliseconds(100), [&] { return save(2); }), {"cancelled"}));
  EXPECT_EQ(names(), R"([{"name":"step-00000001","step":1,"problem":null}])");
  EXPECT_FALSE(std::filesystem::exists(folder_.in("step-00000002.part")));
  open(0);
  EXPECT_TRUE(works(save(2))) << "the cancel is consumed";
}

// The save in the background continues.
TEST_F(CheckpointCancel, EndsASaveThatWaitsForAPlaceInTheQueue) {
  open(static_cast<double>(kBytes));  // a second for each
  HeldPending first, second;
  ASSERT_TRUE(works(save(1, first.out())));
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled_after(std::chrono::milliseconds(50), [&] { return save(2, second.out()); }), {"cancelled"}));
  EXPECT_EQ(second, nullptr);
  EXPECT_TRUE(works(st_pending_wait(first, -1)));
  EXPECT_EQ(names(), R"([{"name":"step-00000001","step":1,"problem":null}])");
}

// The save in the background continues.
TEST_F(CheckpointCancel, EndsASaveThatWaitsForAnother) {
  open(static_cast<double>(kBytes));  // a second for each
  HeldPending first;
  ASSERT_TRUE(works(save(1, first.out())));
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled_after(std::chrono::milliseconds(50), [&] { return save(2); }), {"cancelled"}));
  EXPECT_TRUE(works(st_pending_wait(first, -1)));
  EXPECT_EQ(names(), R"([{"name":"step-00000001","step":1,"problem":null}])");
}

TEST_F(CheckpointCancel, EndsAReshardAndTheFolderIsGone) {
  open(0);
  ASSERT_TRUE(works(save(1)));
  open(kSlow);
  const CheckpointFolder there;
  for (const int32_t shards : {0, 2}) {
    const auto reshard = [&] { return st_checkpoint_reshard(checkpoint_, nullptr, there.c_str(), shards); };
    EXPECT_TRUE(fails(ST_CANCELLED, cancelled_after(std::chrono::milliseconds(100), reshard), {"cancelled"}));
    EXPECT_FALSE(std::filesystem::exists(there.path()));
  }
}

TEST_F(CheckpointCancel, EndsReadingAndNoViewHasChanged) {
  open(0);
  ASSERT_TRUE(works(save(1)));
  const std::vector<unsigned char> saved = values_, other(kBytes, 7);
  const st_named_view view = {"values", {ST_U8, 1, dims_, nullptr, values_.data(), kBytes}};
  auto overwrite = filled(st_read_options_init);
  overwrite.overwrite = 1;
  const auto load = [&](const st_read_options* options) {
    values_ = other;
    return st_checkpoint_load(checkpoint_, nullptr, 1, &view, options, nullptr);
  };
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled([&] { return load(nullptr); }), {"step-00000001", "cancelled"}));
  EXPECT_EQ(values_, other);
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled([&] { return load(&overwrite); }), {"cancelled"}));
  const char* text = "";
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled([&] { return st_checkpoint_verify(checkpoint_, nullptr, &text); }), {"cancelled"}));
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled([&] { return st_checkpoint_hash(checkpoint_, nullptr, &text); }), {"cancelled"}));
  const CheckpointFolder file;
  const auto write = [&] { return st_checkpoint_export(checkpoint_, nullptr, file.c_str(), 0); };
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled([&] {
                      std::filesystem::remove(file.path());
                      return write();
                    }),
                    {"cancelled"}));
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  EXPECT_TRUE(works(write()));
  EXPECT_TRUE(works(load(nullptr)));
  EXPECT_EQ(values_, saved);
}

TEST_F(CheckpointCancel, EndsTheLoadOfAModelAndItsWeightsAreWhatTheyWere) {
  HeldModel saved, loaded;
  const auto begin = [&](int64_t seed, HeldModel& model) {
    model.reset();
    ASSERT_TRUE(works(st_model_builtin(context_, "mlp", R"({"inputs":512,"hidden":[512,512],"outputs":512})", seed, model.out())));
  };
  const auto digest = [](st_model* of) { return text_of(st_model_digest, of); };
  const auto load = [&] { return st_model_load(loaded, checkpoint_, nullptr, nullptr, nullptr); };
  begin(1, saved);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch":1,"optimizer":"sgd"})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, saved, recipe, nullptr);
  open(0);
  ASSERT_TRUE(works(st_trainer_save(trainer, checkpoint_, nullptr, nullptr)));

  begin(2, loaded);
  const std::string before = digest(loaded);
  EXPECT_TRUE(fails(ST_CANCELLED, cancelled([&] {
                      begin(2, loaded);
                      return load();
                    }),
                    {"cancelled"}));
  EXPECT_EQ(digest(loaded), before);
  EXPECT_TRUE(works(load()));
  EXPECT_EQ(digest(loaded), digest(saved));
}

}  // namespace

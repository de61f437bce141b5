// Work that continues after its call: its results, its error, and waiting for it.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

std::string digest_of(st_model* model) { return text_of(st_model_digest, model); }

std::string new_file(const std::string& name) {
  const std::string path = file_of(name, "");
  std::filesystem::remove(path);
  return path;
}

/// A host whose free blocks while the gate is shut, on any thread but the one that created this. So a piece of work that is almost done
/// does not end.
class Gate {
 public:
  st_context_options options() {
    auto made = filled(st_context_options_init);
    made.alloc = [](void*, size_t bytes, size_t align) { return std::aligned_alloc(align, (bytes + align - 1) / align * align); };
    made.free = [](void* user, void* memory) {
      static_cast<const Gate*>(user)->pass();
      std::free(memory);
    };
    made.memory_user = this;
    return made;
  }
  void shut() { open_ = false; }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  void pass() const {
    if (std::this_thread::get_id() != maker_) open_.wait(false);
  }
  const std::thread::id maker_ = std::this_thread::get_id();
  std::atomic<bool> open_{true};
};

class Pendings : public testing::Test {
 protected:
  void SetUp() override {
    const auto options = gate_.options();
    ASSERT_TRUE(works(st_context_create(&options, context_.out())));
    ASSERT_TRUE(works(st_model_builtin(context_, "mlp", R"({"hidden": [8]})", 1, model_.out())));
  }
  void TearDown() override { gate_.open(); }
  void change_the_weights() {
    const auto other = hold<HeldModel>(st_model_builtin, context_, "mlp", R"({"hidden": [8]})", 2);
    ASSERT_TRUE(works(st_model_blend(model_, other, 1)));
  }

  Gate gate_;
  HeldContext context_;
  HeldModel model_;
  HeldPending pending_;
};

TEST_F(Pendings, WriteTheWeightsAsTheyWereWhenTheCallReturned) {
  const std::string path = new_file("pending.safetensors"), before = digest_of(model_);
  gate_.shut();
  ASSERT_TRUE(works(st_model_write_file(model_, path.c_str(), pending_.out())));
  change_the_weights();
  gate_.open();
  ASSERT_TRUE(works(st_pending_wait(pending_, -1)));
  EXPECT_NE(digest_of(model_), before);
  ASSERT_TRUE(works(st_model_read_file(model_, path.c_str(), nullptr, nullptr)));
  EXPECT_EQ(digest_of(model_), before);
}

TEST_F(Pendings, OutliveTheirModelAndContext) {
  const std::string path = new_file("pending_alone.safetensors"), before = digest_of(model_);
  ASSERT_TRUE(works(st_model_write_file(model_, path.c_str(), pending_.out())));
  model_.reset();
  context_.reset();
  ASSERT_TRUE(works(st_pending_wait(pending_, -1)));
  ASSERT_TRUE(works(st_context_create(nullptr, context_.out())));
  const auto again = hold<HeldModel>(st_model_builtin, context_, "mlp", R"({"hidden": [8]})", 3);
  ASSERT_TRUE(works(st_model_read_file(again, path.c_str(), nullptr, nullptr)));
  EXPECT_EQ(digest_of(again), before);
}

TEST_F(Pendings, AreWaitedForAsLongAsIsSaidAndBySeveral) {
  const std::string path = new_file("pending_late.safetensors");
  int32_t done = -1;
  gate_.shut();
  ASSERT_TRUE(works(st_model_write_file(model_, path.c_str(), pending_.out())));
  EXPECT_TRUE(fails(ST_TIMEOUT, st_pending_wait(pending_, 0), {"still running after 0 ms", "call again"}));
  EXPECT_TRUE(fails(ST_TIMEOUT, st_pending_wait(pending_, 20), {"st_pending_wait", "20 ms"}));
  EXPECT_TRUE(works(st_pending_poll(pending_, &done)));
  EXPECT_EQ(done, 0);
  std::atomic<int> waiting{0}, good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      ++waiting;
      good += st_pending_wait(pending_, i == 0 ? INT64_MAX : -1) == ST_OK;
    });
  while (waiting < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(fails(ST_BUSY, st_pending_destroy(pending_), {"pending"}));
  gate_.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
  EXPECT_TRUE(works(st_pending_poll(pending_, &done)));
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(works(st_pending_wait(pending_, 0)));
}

TEST_F(Pendings, KeepTheirErrorAndTellItEachTime) {
  ASSERT_TRUE(works(st_model_write_file(model_, "/no/such/folder/w.safetensors", pending_.out())));
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(fails(ST_NOT_FOUND, st_pending_wait(pending_, -1), {"/no/such/folder"}));
    const auto info = last_error();
    EXPECT_EQ(info.status, ST_NOT_FOUND);
    ASSERT_NE(info.file, nullptr);
    EXPECT_NE(std::string(info.file).find("/no/such/folder"), std::string::npos) << info.file;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_pending_poll(pending_, nullptr), {"done is NULL"}));  // another error in between
  }
  std::string message;
  std::thread([&] {  // an error belongs to the thread that asks
    EXPECT_EQ(st_pending_wait(pending_, -1), ST_NOT_FOUND);
    message = st_last_error();
  })
      .join();
  EXPECT_NE(message.find("/no/such/folder"), std::string::npos) << message;
}

TEST_F(Pendings, AreDestroyedWhenTheirWorkIsDone) {
  const std::string path = new_file("pending_destroyed.safetensors");
  for (int i = 0; i < 20; ++i) {
    std::filesystem::remove(path);
    ASSERT_TRUE(works(st_model_write_file(model_, path.c_str(), pending_.out())));
    pending_.reset();
    ASSERT_TRUE(std::filesystem::exists(path)) << i;
  }
}

TEST_F(Pendings, AreNotMadeByACallThatFails) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_write_file(model_, nullptr, pending_.out()), {"path is NULL"}));
  EXPECT_EQ(static_cast<st_pending*>(pending_), nullptr);
}

}  // namespace

#include "checkpoint/checkpoint_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/os/machine.h"
#include "checkpoint/checkpoint_reader.h"
#include "failing_disk.h"
#include "formula_checkpoint.h"
#include "thrown_error.h"

namespace st {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kElements = 3 << 20;  // 12 MiB of f32: several tasks of a snapshot and windows of a write

/// A folder, and a state that is a function of the step.
class Manager : public testing::Test {
 protected:
  Manager() : scratch_("manager"), path_((scratch_ / "run").string()) {}

  CheckpointManager make(ManagerOptions options = {}) { return {path_, std::move(options), memory_, {}}; }

  static float value_at(int64_t step, int64_t i) { return static_cast<float>(step * 1000 + i % 1000); }

  /// The state at that step: one borrowed tensor, one from a function, one that is empty.
  CheckpointContent content(int64_t step, int64_t elements = 5000) {
    weights_.resize(static_cast<size_t>(elements));
    float* at = weights_.data();
    for (int64_t i = 0; i < elements; ++i) *at++ = value_at(step, i);
    CheckpointContent content;
    content.step = step;
    content.tensors.push_back(
        {"weight", TensorKind::parameter, DType::f32, {elements}, std::as_bytes(std::span<const float>(weights_)), {}});
    content.tensors.push_back({"none", TensorKind::host, DType::f32, {0}, {}, {}});
    content.tensors.push_back({"moment", TensorKind::optimizer, DType::i64, {100}, {}, [step](int64_t first, std::span<std::byte> out) {
                                 EXPECT_EQ(first % 64, 0);
                                 for (size_t i = 0; i < out.size(); i += 8) {
                                   const int64_t value = step + first / 8 + static_cast<int64_t>(i / 8);
                                   std::memcpy(out.data() + i, &value, 8);
                                 }
                               }});
    return content;
  }

  /// Expects a valid checkpoint with every value that of `step`.
  void expect_whole(const std::string& name, int64_t step) {
    const CheckpointReader reader(path_ + "/" + name);
    EXPECT_TRUE(reader.verify(workers_).empty());
    EXPECT_EQ(reader.manifest().step, step);
    const LogicalTensor& weight = *reader.manifest().find("weight");
    std::vector<float> values(static_cast<size_t>(weight.shape.elements()));
    reader.read(weight, 0, weight.shape.elements(), std::as_writable_bytes(std::span(values)));
    const float* at = values.data();
    for (int64_t i = 0; i < weight.shape.elements(); ++i, ++at)
      if (*at != value_at(step, i)) FAIL() << name << " " << i << " is " << *at;
    std::vector<int64_t> moments(100);
    reader.read(*reader.manifest().find("moment"), 0, 100, std::as_writable_bytes(std::span(moments)));
    for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(moments[static_cast<size_t>(i)], step + i);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const CheckpointEntry& entry : RunFolder(path_).list()) all.push_back(entry.name);
    return all;
  }

  TestFolder scratch_;
  std::string path_;
  std::shared_ptr<MemorySource> memory_ = std::make_shared<MemorySource>();
  Workers workers_{2};
  std::vector<float> weights_;
};

using Names = std::vector<std::string>;

/// A write of 12 MiB then takes about a quarter of a second.
WriteOptions slowly() { return {.file_bytes = int64_t{4} << 30, .bytes_per_second = 48e6}; }

/// Blocks the saving thread after a commit until the gate is opened.
class Gate {
 public:
  Logger logger() {
    return {.write = [](void* gate, int32_t, const char*, const char*) { static_cast<Gate*>(gate)->open_.wait(false); },
            .user = this,
            .level = LogLevel::info};
  }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

TEST_F(Manager, SavesWhatThereWasWhenItWasAsked) {
  Gate gate;
  CheckpointManager manager(path_, {.retention = {}, .best = "", .write = slowly(), .queue = 0}, memory_, gate.logger());
  const auto pending = manager.save(content(7, kElements), workers_);
  std::ranges::fill(weights_, -1.0F);  // the next step runs while the files are written
  EXPECT_FALSE(pending->is_done());
  gate.open();
  pending->wait(-1);
  expect_whole("step-00000007", 7);
  EXPECT_EQ(manager.saved_step(), 7);
  EXPECT_EQ(manager.folder().latest()->name, "step-00000007");
}

TEST_F(Manager, SavesNowWithoutASnapshot) {
  CheckpointManager manager = make();
  manager.save_now(content(8, kElements), workers_);
  expect_whole("step-00000008", 8);
  EXPECT_EQ(memory_->account().bytes(), 0);
}

TEST_F(Manager, KeepsTheLastAndCountsUpAfterARollback) {
  CheckpointManager manager = make({.retention = {.last = 2}, .best = "", .write = {}, .queue = 0});
  for (const int64_t step : {10, 20, 30, 15}) manager.save(content(step), workers_);
  ASSERT_TRUE(manager.wait(-1));
  EXPECT_EQ(names(), (Names{"step-00000015", "step-00000030"}));
  EXPECT_FALSE(manager.take_error());
}

TEST_F(Manager, KeepsTheBestByMetadataOrTrainingStateAlsoInTheNextProcess) {
  const auto with_loss = [&](int64_t step, const std::string& loss) {
    CheckpointContent made = content(step);
    if (step % 2 == 0)
      made.metadata["loss"] = loss;
    else
      made.training = text("{\"loss\":", loss, "}");
    return made;
  };
  const ManagerOptions options{.retention = {.last = 1, .every = 0, .best = 2}, .best = "loss", .write = {}, .queue = 0};
  {
    CheckpointManager manager = make(options);
    manager.save_now(with_loss(1, "0.5"), workers_);
    manager.save_now(with_loss(2, "0.25"), workers_);
    manager.save_now(with_loss(3, "3"), workers_);
    manager.save_now(with_loss(4, "nan"), workers_);
  }
  CheckpointManager manager = make(options);
  manager.adopt_earlier();
  manager.save_now(with_loss(5, "0.4"), workers_);
  EXPECT_EQ(names(), (Names{"step-00000005", "step-00000002"})) << "5 is better than 1";
  manager.save_now(content(6), workers_);
  EXPECT_EQ(names(), (Names{"step-00000006", "step-00000005", "step-00000002"}));
}

TEST_F(Manager, KeepsTheLastWhoseWeightsAreFiniteAlsoInTheNextProcess) {
  const ManagerOptions options{.retention = {.last = 1}, .best = "", .write = {}, .queue = 0};
  const auto diverged = [&](int64_t step, float value) {
    CheckpointContent made = content(step);
    weights_.back() = value;
    return made;
  };
  {
    CheckpointManager manager = make(options);
    manager.save_now(content(1), workers_);
    manager.save_now(content(2), workers_);
    manager.save_now(diverged(3, std::nanf("")), workers_);
    EXPECT_EQ(names(), (Names{"step-00000003", "step-00000002"}));
  }
  CheckpointManager manager = make(options);
  manager.adopt_earlier();
  manager.save(diverged(4, -std::numeric_limits<float>::infinity()), workers_)->wait(-1);
  ASSERT_TRUE(manager.wait(-1));
  EXPECT_EQ(names(), (Names{"step-00000004", "step-00000002"}));
  manager.save_now(content(5), workers_);
  EXPECT_EQ(names(), Names{"step-00000005"});
  CheckpointContent skipping = content(6);  // finite weights that give no finite loss
  skipping.training = R"({"loss":null})";
  manager.save_now(skipping, workers_);
  EXPECT_EQ(names(), (Names{"step-00000006", "step-00000005"}));
}

TEST_F(Manager, KeepsWhatWasThereUntilItsRunGoesOn) {
  const ManagerOptions options{.retention = {.last = 1}, .best = "", .write = {}, .queue = 0};
  make(options).save_now(content(9), workers_);
  CheckpointManager manager = make(options);
  for (const int64_t step : {1, 2}) manager.save_now(content(step), workers_);
  EXPECT_EQ(names(), (Names{"step-00000002", "step-00000009"}));
  manager.adopt_earlier();
  manager.save_now(content(3), workers_);
  EXPECT_EQ(names(), Names{"step-00000003"});
}

TEST_F(Manager, ACorruptOneDoesNotPushOutAWholeOne) {
  {
    CheckpointManager manager = make();
    for (const int64_t step : {1, 2, 3}) manager.save_now(content(step), workers_);
  }
  put_file(fs::path(path_) / "step-00000002" / "manifest.json", "{}");
  CheckpointManager manager = make({.retention = {.last = 2}, .best = "", .write = {}, .queue = 0});
  manager.mark_corrupt("step-00000003");  // as by a reader of its data
  manager.adopt_earlier();
  manager.save_now(content(4), workers_);
  EXPECT_EQ(names(), (Names{"step-00000004", "step-00000003", "step-00000002", "step-00000001"}));
  manager.save_now(content(5), workers_);
  EXPECT_EQ(names(), (Names{"step-00000005", "step-00000004"}));
}

TEST_F(Manager, NeverRemovesAFolderWithoutAManifest) {
  put_file((fs::create_directories(path_ + "/step-00000001"), fs::path(path_) / "step-00000001" / "model.safetensors"), "being copied");
  CheckpointManager manager = make({.retention = {.last = 1}, .best = "", .write = {}, .queue = 0});
  for (const int64_t step : {2, 3, 4}) manager.save_now(content(step), workers_);
  EXPECT_EQ(names(), (Names{"step-00000004", "step-00000001"}));
}

TEST_F(Manager, LeavesOneThatIsReadUntilTheNextSave) {
  CheckpointManager manager = make({.retention = {.last = 1}, .best = "", .write = {}, .queue = 0});
  manager.save_now(content(1), workers_);
  {
    const CheckpointReader reader(path_ + "/step-00000001");
    manager.save_now(content(2), workers_);
    EXPECT_EQ(names(), (Names{"step-00000002", "step-00000001"}));
    EXPECT_TRUE(reader.verify(workers_).empty());
  }
  manager.save_now(content(3), workers_);
  EXPECT_EQ(names(), Names{"step-00000003"});
}

TEST_F(Manager, TakesMemoryOnceForEachSaveThatMayBeUnderWay) {
  Gate gate;
  CheckpointManager manager(path_, {.retention = {}, .best = "", .write = {}, .queue = 1}, memory_, gate.logger());
  const int64_t bytes = kElements * 4 + 832;  // 100 i64, padded to a multiple of 64
  manager.prepare(content(0, kElements), workers_);
  EXPECT_EQ(memory_->account().bytes(), 2 * bytes);
  for (int64_t step = 1; step <= 4; ++step) {
    if (step == 3) gate.open();
    manager.save(content(step, kElements), workers_);
    EXPECT_LE(manager.progress().waiting, 1);
    EXPECT_EQ(memory_->account().bytes(), 2 * bytes);
  }
  manager.wait(-1);
  EXPECT_EQ(manager.progress().saved, 4);
  for (const int64_t step : {2, 3, 4}) expect_whole(text("step-0000000", step), step);
}

TEST_F(Manager, WithoutAQueueTheNextSaveWaitsForTheOneBefore) {
  Gate gate;
  CheckpointManager manager(path_, {.retention = {}, .best = "", .write = slowly(), .queue = 0}, memory_, gate.logger());
  manager.save(content(1, kElements), workers_);
  EXPECT_FALSE(manager.wait(0));
  const CheckpointContent next = content(2);
  std::atomic<bool> returned{false};
  std::thread other([&] {
    Workers alone(1);
    manager.save(next, alone);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  EXPECT_EQ(manager.progress().waiting, 0);
  gate.open();
  other.join();
  EXPECT_GE(manager.saved_step(), 1);
  EXPECT_TRUE(manager.wait(-1));
  const SaveProgress progress = manager.progress();
  EXPECT_EQ(progress.saved, 2);
  EXPECT_EQ(progress.bytes_all, 0);
  EXPECT_GT(progress.blocked_seconds, 0);
  EXPECT_GT(progress.write_seconds, 0);
}

TEST_F(Manager, WithoutMemoryForASnapshotItSavesWhileTheCallerWaits) {
  static std::atomic<int> refused{0};
  HostAllocator host;
  host.alloc = [](void*, size_t, size_t) -> void* { return ++refused, nullptr; };
  host.free = [](void*, void*) {};
  CheckpointManager manager(path_, {}, std::make_shared<MemorySource>(host), {});
  EXPECT_TRUE(is_error(error_of([&] { manager.save(content(1), workers_); }), Code::out_of_memory));
  EXPECT_EQ(refused, 1);
  manager.save_now(content(2), workers_);
  expect_whole("step-00000002", 2);
  EXPECT_EQ(names(), Names{"step-00000002"});
}

TEST_F(Manager, ATensorThatCannotBeCopiedLeavesNothing) {
  CheckpointManager manager = make();
  CheckpointContent bad = content(1);
  bad.tensors[2].copy = [](int64_t, std::span<std::byte>) { fail(Code::callback, "the host says no"); };
  EXPECT_THROW(manager.save(bad, workers_), Error);
  EXPECT_THROW(manager.save_now(bad, workers_), Error);
  EXPECT_TRUE(fs::is_empty(path_) || names().empty());
  EXPECT_TRUE(manager.folder().leftovers().empty());
  manager.save(content(2), workers_)->wait(-1);
  expect_whole("step-00000002", 2);
}

TEST_F(Manager, RefusesStateThatIsNoJsonObject) {
  CheckpointManager manager = make();
  CheckpointContent bad = content(1);
  bad.training = "[1]";
  EXPECT_THROW(manager.save(bad, workers_), Error);
  bad.training = "{";
  EXPECT_THROW(manager.save_now(bad, workers_), Error);
  EXPECT_EQ(manager.progress().failed, 0) << "they never began";
}

TEST_F(Manager, WaitsForItsSavesWhenItGoes) {
  {
    CheckpointManager manager = make({.retention = {}, .best = "", .write = slowly(), .queue = 2});
    for (const int64_t step : {1, 2, 3}) manager.save(content(step, kElements / 4), workers_);
  }
  EXPECT_EQ(names(), (Names{"step-00000003", "step-00000002", "step-00000001"}));
  EXPECT_NO_THROW(make()) << "its lock has gone too";
}

TEST_F(Manager, KeepsToNoCapWhenItGoes) {
  const double start = os::seconds();
  {
    CheckpointManager manager =
        make({.retention = {}, .best = "", .write = {.file_bytes = int64_t{4} << 30, .bytes_per_second = 1e5}, .queue = 1});
    for (int64_t step = 1; step <= 2; ++step) manager.save(content(step, kElements), workers_);
  }
  EXPECT_LT(os::seconds() - start, 60) << "two of two minutes each, by their cap";
  expect_whole("step-00000001", 1);
  expect_whole("step-00000002", 2);
}

TEST_F(Manager, SavesFromSeveralThreadsOneAfterTheOther) {
  CheckpointManager manager = make({.retention = {.last = 0}, .best = "", .write = {}, .queue = 1});
  const CheckpointContent ours = content(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Workers alone(1);
      for (int i = 0; i < 3; ++i) {
        if (t % 2 == 0)
          manager.save_now(ours, alone);
        else
          manager.save(ours, alone);
        manager.progress();
        manager.take_error();
      }
    });
  for (std::thread& thread : threads) thread.join();
  manager.wait(-1);
  EXPECT_EQ(manager.progress().saved, 12);
  EXPECT_EQ(names().size(), 12U);
  EXPECT_EQ(names().front(), "step-00000001.12");
}

/// A manager on a disk that fails.
class ManagerErrors : public Manager {
 protected:
  ManagerErrors() { failing_disk_watch((scratch_ / "").c_str(), nullptr); }
  ~ManagerErrors() override {
    failing_disk_fail(nullptr, "1", 0);
    failing_disk_watch(nullptr, nullptr);
  }
};

TEST_F(ManagerErrors, AreToldOnceToWhoWaitsOrToWhoAsks) {
  CheckpointManager manager = make();
  manager.save_now(content(1), workers_);
  failing_disk_fail("pwrite", "1+", ENOSPC);

  const auto waited = manager.save(content(2), workers_);
  EXPECT_THROW(waited->wait(-1), Error);
  EXPECT_THROW(waited->wait(-1), Error) << "each time";
  EXPECT_FALSE(manager.take_error());

  auto held = manager.save(content(3), workers_);
  manager.wait(-1);
  while (!held->is_done()) std::this_thread::yield();
  EXPECT_FALSE(manager.take_error()) << "who holds it can ask it";
  held.reset();
  const auto error = manager.take_error();
  ASSERT_TRUE(error);
  EXPECT_TRUE(is_error(*error, Code::io, {"No space left"}));
  EXPECT_NE(error->place.file.find("step-00000003.part"), std::string::npos);
  EXPECT_FALSE(manager.take_error()) << "once";
  EXPECT_EQ(manager.progress().failed, 2);

  failing_disk_fail(nullptr, "1", 0);
  manager.save(content(4), workers_)->wait(-1);
  EXPECT_EQ(names(), (Names{"step-00000004", "step-00000001"}));
  expect_whole("step-00000001", 1);
}

TEST_F(ManagerErrors, BehindTheCommitAreNoFailureOfTheSave) {
  CheckpointManager manager = make({.retention = {.last = 1}, .best = "", .write = {}, .queue = 0});
  manager.save_now(content(1), workers_);
  failing_disk_fail("rename", "3", EIO);  // the first is of the manifest, the second of the folder, the third of `latest`
  manager.save(content(2), workers_)->wait(-1);
  const auto error = manager.take_error();
  ASSERT_TRUE(error);
  EXPECT_NE(error->message().find("latest"), std::string::npos) << error->message();
  EXPECT_EQ(manager.progress().failed, 0);
  EXPECT_EQ(manager.saved_step(), 2);
  EXPECT_EQ(names(), (Names{"step-00000002", "step-00000001"}));
  failing_disk_fail(nullptr, "1", 0);
  manager.save_now(content(3), workers_);
  EXPECT_EQ(names(), Names{"step-00000003"}) << "removal is made up for";
}

}  // namespace
}  // namespace st

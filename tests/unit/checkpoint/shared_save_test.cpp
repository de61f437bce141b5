#include "checkpoint/shared_save.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "base/os/files.h"
#include "base/os/machine.h"
#include "checkpoint/checkpoint_manager.h"
#include "checkpoint/checkpoint_reader.h"
#include "failing_disk.h"
#include "formula_checkpoint.h"
#include "thrown_error.h"

namespace st {
namespace {

namespace filesystem = std::filesystem;

constexpr int64_t kCount = 5000;  // elements; rank 0 has 2048 of them

/// Two ranks with sharded weights, each with its own manager.
class SharedSaves : public testing::Test {
 protected:
  SharedSaves() : scratch_("shared_save"), path_((scratch_ / "run").string()) {
    manage(0, {});
    manage(1, {});
    for (int64_t i = 0; i < kCount; ++i) weight_.push_back(static_cast<float>(i));
  }

  /// Replaces a rank's manager.
  void manage(size_t rank, WriteOptions write, const std::string& path) {
    ManagerOptions options;
    options.write = write;
    managers_[rank].reset();
    managers_[rank] =
        std::make_unique<CheckpointManager>(path, options, memory_, Logger{keep, &logged_[rank], LogLevel::warning},
                                            rank == 0 ? CheckpointManager::Place::of_folder : CheckpointManager::Place::beside);
  }
  void manage(size_t rank, WriteOptions write) { manage(rank, write, path_); }
  struct Log {
    std::string text;
    std::atomic<int> lines{0};
  };
  static void keep(void* user, int32_t, const char*, const char* text) {
    Log& log = *static_cast<Log*>(user);
    log.text.append(text).append("\n");
    ++log.lines;
  }

  CheckpointContent content(int32_t rank, double deadline = 20, const std::vector<std::string>& names = {"weight"}) {
    auto shared = std::make_shared<SharedSave>();
    shared->rank = rank;
    shared->ranks = 2;
    shared->deadline = deadline;
    if (moves_clock_) shared->seconds = [this] { return now_.load(); };
    shared->names = {"rank 0 (here)", "rank 1 (there)"};
    for (const std::string& name : names)
      shared->tensors.push_back({name, TensorKind::parameter, DType::f32, {kCount}, {{0, 0, 2048}, {1, 2048, kCount}}});
    shared->agree = [this, rank](const std::exception_ptr& own) {
      failed_[static_cast<size_t>(rank)] = own;
      meeting_.arrive_and_wait();
      const std::exception_ptr first = failed_[0] ? failed_[0] : failed_[1];
      meeting_.arrive_and_wait();
      if (first) std::rethrow_exception(first);
    };
    shared->text_of_rank_0 = [this, rank](const std::string& own) {
      if (rank == 0) said_ = own;
      meeting_.arrive_and_wait();
      std::string said = said_;
      meeting_.arrive_and_wait();
      return said;
    };
    CheckpointContent made;
    made.step = 7;
    const auto mine = rank == 0 ? std::span(weight_).first(2048) : std::span(weight_).subspan(2048);
    for (const std::string& name : names)
      made.tensors.push_back({name, TensorKind::parameter, DType::f32, {std::ssize(mine)}, std::as_bytes(mine), {}});
    made.shared = std::move(shared);
    return made;
  }

  /// That rank's sign in the save that has begun.
  std::string sign_of(size_t rank) const { return text(path_, "/ranks-", said_.substr(0, said_.find(' ')), ".", rank); }

  /// The error of a rank's save; Code::ok if it succeeded.
  Error save(size_t rank, const CheckpointContent& mine) {
    return error_of([&] { managers_[rank]->save_now(mine, workers_); });
  }
  /// The same for both ranks at the same time.
  std::array<Error, 2> save_both(const CheckpointContent& first, const CheckpointContent& second) {
    std::array<Error, 2> said = {Error(Code::ok, ""), Error(Code::ok, "")};
    std::thread beside([&] { said[1] = save(1, second); });
    said[0] = save(0, first);
    beside.join();
    return said;
  }
  void expect_both_save(const std::string& where = "") {
    for (const Error& error : save_both(content(0), content(1))) EXPECT_TRUE(is_error(error, Code::ok)) << where;
  }

  /// The error of rank 0's save, while rank 1 runs `other`.
  Error save_beside(const std::function<void()>& other, double deadline = 20) {
    std::thread beside(other);
    const Error error = error_of([&] { managers_[0]->save(content(0, deadline), workers_)->wait(-1); });
    beside.join();
    return error;
  }

  /// Makes the rank's copy of its first tensor last until is_enough(), and move the clock after each of its heartbeats.
  void make_slow(size_t rank, CheckpointContent& mine, const std::function<bool()>& is_enough) {
    SnapshotTensor& tensor = mine.tensors[0];
    tensor.copy = [this, rank, is_enough, bytes = tensor.bytes](int64_t first, std::span<std::byte> out) {
      for (std::string last; !is_enough(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        if (const std::string beat = os::read_file(sign_of(rank), 1 << 16); std::exchange(last, beat) != beat) now_ = now_ + 0.2;
      std::ranges::copy(bytes.subspan(static_cast<size_t>(first), out.size()), out.begin());
    };
    tensor.bytes = {};
  }

  void expect_nothing_of_it() {
    EXPECT_TRUE(RunFolder(path_).list().empty());
    for (const auto& entry : filesystem::directory_iterator(path_)) EXPECT_NE(entry.path().extension(), ".part") << entry.path();
  }

  TestFolder scratch_;
  std::string path_;
  std::shared_ptr<MemorySource> memory_ = std::make_shared<MemorySource>();
  Workers workers_{1};
  std::vector<float> weight_;
  std::barrier<> meeting_{2};
  std::array<std::exception_ptr, 2> failed_;
  std::string said_;
  std::array<Log, 2> logged_;
  bool moves_clock_ = false;  // the clock of deadlines is now_
  std::atomic<double> now_{0};
  std::array<std::unique_ptr<CheckpointManager>, 2> managers_;
};

/// Gives the tensor a copy function that throws.
void make_failing(SnapshotTensor& tensor, Code code) {
  tensor.bytes = {};
  tensor.copy = [code](int64_t, std::span<std::byte>) { fail(code, "no byte can be had"); };
}

TEST_F(SharedSaves, AreOneCheckpointOfTheirPieces) {
  const Error error = save_beside([&] { managers_[1]->save_now(content(1), workers_); });
  ASSERT_TRUE(is_error(error, Code::ok));
  const CheckpointReader reader(path_ + "/step-00000007");
  EXPECT_TRUE(reader.verify(workers_).empty());
  const LogicalTensor& weight = *reader.manifest().find("weight");
  EXPECT_EQ(weight.pieces.size(), 2U);
  std::vector<float> read(kCount);
  reader.read(weight, 0, kCount, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(read, weight_);
  EXPECT_EQ(managers_[1]->saved_step(), 7);
  for (const auto& entry : filesystem::recursive_directory_iterator(path_))
    EXPECT_FALSE(is_shared_save_file(entry.path().filename().string())) << entry.path();
  EXPECT_TRUE(reader.manifest().has_finite_weights());
}

TEST_F(SharedSaves, SayWhetherTheWeightsOfAllRanksAreFinite) {
  weight_.back() = std::nanf("");  // rank 1's
  expect_both_save();
  EXPECT_FALSE(CheckpointReader(path_ + "/step-00000007").manifest().has_finite_weights());
}

TEST_F(SharedSaves, AreCutIntoFilesAsRankZeroSays) {
  const std::vector<std::string> names = {"a", "b", "c"};
  int64_t step = 0;
  for (const auto& [first, second, files] : {std::tuple(int64_t{1} << 30, int64_t{1}, 2), std::tuple(int64_t{1}, int64_t{1} << 30, 6)}) {
    manage(0, {.file_bytes = first});
    manage(1, {.file_bytes = second});
    ++step;
    std::array<CheckpointContent, 2> contents = {content(0, 20, names), content(1, 20, names)};
    for (CheckpointContent& mine : contents) mine.step = step;
    for (const Error& error : save_both(contents[0], contents[1])) EXPECT_TRUE(is_error(error, Code::ok));
    const CheckpointReader reader(text(path_, "/step-0000000", step));
    EXPECT_TRUE(reader.verify(workers_).empty());
    EXPECT_EQ(std::ranges::count(reader.manifest().files, true, [](const ShardFile& file) { return file.name.ends_with(".safetensors"); }),
              files);
    for (const std::string& name : names) {
      std::vector<float> read(kCount);
      reader.read(*reader.manifest().find(name), 0, kCount, std::as_writable_bytes(std::span(read)));
      EXPECT_EQ(read, weight_) << name;
    }
  }
}

TEST_F(SharedSaves, ThatFailOnOneEndWhatAnotherStillWrites) {
  for (const size_t fails : {size_t{0}, size_t{1}}) {
    manage(1 - fails, {.bytes_per_second = 100});  // takes minutes in total
    manage(fails, {});
    std::array<CheckpointContent, 2> contents = {content(0, 20, {"a", "b"}), content(1, 20, {"a", "b"})};
    make_failing(contents[fails].tensors[0], Code::not_finite);
    const double start = os::seconds();
    const auto said = save_both(contents[0], contents[1]);
    EXPECT_LT(os::seconds() - start, 15);
    for (const Error& error : said) EXPECT_TRUE(is_error(error, Code::not_finite, {"no byte can be had"}));
    EXPECT_EQ(said[1 - fails].place.rank, static_cast<int32_t>(fails));
    expect_nothing_of_it();
  }
}

TEST_F(SharedSaves, OfARankThatGivesUpAreNone) {
  for (const double rate : {0.0, 100.0}) {  // rank 0 waits for it, or still writes and would for minutes
    manage(0, {.bytes_per_second = rate});
    const double start = os::seconds();
    const Error error = save_beside([&] {
      const CheckpointContent mine = content(1);
      SharedSaveEnd end(mine.shared, path_);
      mine.shared->agree(nullptr);
      end.begin();
    });
    EXPECT_LT(os::seconds() - start, 15);
    EXPECT_TRUE(is_error(error, Code::rank_failed, {"rank 1 (there)"}));
    EXPECT_EQ(error.place.rank, 1);
    expect_nothing_of_it();
  }
}

TEST_F(SharedSaves, OfARankThatIsSilentEndAtTheDeadlineAndOfADeadOneAtOnce) {
  for (const bool is_dead : {false, true}) {
    std::barrier<> told(2);
    std::thread silent([&] {
      const CheckpointContent mine = content(1);
      mine.shared->agree(nullptr);
      mine.shared->text_of_rank_0({});
      os::OutputFile(sign_of(1), os::OutputFile::Open::fresh).close();
      auto hold = os::FileHold::take(sign_of(1), os::FileHold::Kind::exclusive);  // without a heartbeat, as of a stopped process
      if (is_dead) hold.reset();
      mine.shared->agree(nullptr);
      mine.shared->agree(nullptr);
      told.arrive_and_wait();
    });
    const Error error = save_beside([] {}, is_dead ? 1e6 : 0.2);
    told.arrive_and_wait();
    silent.join();
    if (is_dead)
      EXPECT_TRUE(is_error(error, Code::rank_failed, {"rank 1 (there) ended during the save"}));
    else
      EXPECT_TRUE(is_error(error, Code::timeout, {"rank 1 (there) has given no sign of life"}));
    EXPECT_EQ(filesystem::exists(sign_of(1)), !is_dead);
    expect_nothing_of_it();
  }
}

TEST_F(SharedSaves, OfARankWhoseDiskIsSlowAreWaitedFor) {
  moves_clock_ = true;
  for (const size_t slow : {size_t{0}, size_t{1}}) {
    std::array<CheckpointContent, 2> contents = {content(0, 0.5), content(1, 0.5)};
    const Log& logged = logged_[1 - slow];
    make_slow(slow, contents[slow], [&] { return logged.lines > 0; });
    for (const Error& error : save_both(contents[0], contents[1])) EXPECT_TRUE(is_error(error, Code::ok));
    const std::string who = contents[0].shared->names[slow];
    EXPECT_NE(logged.text.find("waiting for " + who), std::string::npos) << logged.text;
  }
  EXPECT_EQ(RunFolder(path_).list().size(), 2U);
}

TEST_F(SharedSaves, OfARankThatLivesAndWritesNothingEndAtLast) {
  moves_clock_ = true;
  std::array<CheckpointContent, 2> contents = {content(0, 2.0), content(1, 2.0)};
  const_cast<SharedSave&>(*contents[0].shared).stall_deadlines = 0.5;  // it was made non-const above
  make_slow(1, contents[1], [&] { return os::read_file(sign_of(0), 1 << 16).find("no progress") != std::string::npos; });
  for (const Error& error : save_both(contents[0], contents[1])) {
    EXPECT_TRUE(is_error(error, Code::timeout, {"rank 1 (there) is alive but has made no progress"}));
    EXPECT_EQ(error.place.rank, 1);
  }
  expect_nothing_of_it();
}

TEST_F(SharedSaves, OfARankThatLivesAndWritesNothingCanBeCancelled) {
  std::barrier<> told(2);
  std::thread still([&] {
    const CheckpointContent mine = content(1);
    SharedSaveEnd end(mine.shared, path_);
    mine.shared->agree(nullptr);
    end.begin();
    told.arrive_and_wait();
  });
  const double start = os::seconds();
  const Error error = error_of([&] { managers_[0]->save_now(content(0), workers_, [&] { return os::seconds() > start + 0.3; }); });
  told.arrive_and_wait();
  still.join();
  EXPECT_TRUE(is_error(error, Code::cancelled));
  expect_nothing_of_it();
}

// As on a network file system, where another machine has replaced the file.
TEST_F(SharedSaves, ReadAFileAgainThatIsAnotherOneNow) {
  failing_disk_watch((scratch_ / "").c_str(), nullptr);
  for (const char* const which : {"1", "2", "5", "9"}) {
    failing_disk_fail("read", which, ESTALE);
    expect_both_save(which);
  }
  failing_disk_fail("read", "1+", ESTALE);
  EXPECT_THROW(static_cast<void>(RunFolder(path_).manifest_of("step-00000007")), Error);
  failing_disk_fail(nullptr, "1", 0);
  failing_disk_watch(nullptr, nullptr);
}

TEST_F(SharedSaves, IntoFoldersThatAreNotOneAreRefusedOnAll) {
  const std::string other = (scratch_ / "other").string();
  manage(1, {}, other);
  for (const Error& error : save_both(content(0), content(1)))
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {path_, other, "rank 0 (here)", "rank 1 (there)"}));
  expect_nothing_of_it();
  manage(1, {});
  expect_both_save();
}

TEST_F(SharedSaves, ThatOneCannotBeginAreToldOnAll) {
  CheckpointContent mine = content(0);
  mine.recipe = "[]";
  for (const Error& error : save_both(mine, content(1)))
    EXPECT_NE(error.message().find("must be a JSON object"), std::string::npos) << error.message();
  expect_both_save();
}

TEST_F(SharedSaves, ThatRankZeroCannotWriteAreToldOnAll) {
  CheckpointContent mine = content(0);
  make_failing(mine.tensors[0], Code::io);
  const auto [own, theirs] = save_both(mine, content(1));
  EXPECT_EQ(own.code(), Code::io) << own.message();
  EXPECT_TRUE(is_error(theirs, Code::io, {"rank 0 (here): no byte can be had"}));
  EXPECT_EQ(theirs.place.rank, 0);
  expect_nothing_of_it();
}

TEST_F(SharedSaves, AreToldOfOnADiskThatHasNoRoomForIt) {
  failing_disk_watch((scratch_ / "").c_str(), nullptr);
  for (const size_t fails : {size_t{0}, size_t{1}}) {
    std::array<CheckpointContent, 2> contents = {content(0), content(1)};
    contents[fails].tensors[0].bytes = {};
    uintmax_t room = 0;
    contents[fails].tensors[0].copy = [&](int64_t, std::span<std::byte>) {
      room = filesystem::file_size(sign_of(fails));
      failing_disk_fail("write", "1+", ENOSPC);  // a new file has no room, but existing bytes can be overwritten
      fail(Code::io, "no byte can be had");
    };
    const auto thrown = save_both(contents[0], contents[1]);
    failing_disk_fail(nullptr, "1", 0);
    for (const Error& error : thrown) {
      EXPECT_EQ(error.code(), Code::io);
      EXPECT_TRUE(error.message().ends_with("no byte can be had")) << error.message();
    }
    EXPECT_EQ(thrown[1 - fails].place.rank, static_cast<int32_t>(fails));
    EXPECT_EQ(filesystem::file_size(sign_of(0)), room);
    expect_nothing_of_it();
  }
  failing_disk_watch(nullptr, nullptr);
}

}  // namespace
}  // namespace st

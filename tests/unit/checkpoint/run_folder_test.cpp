#include "checkpoint/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/os/machine.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/guarded_line.h"
#include "formula_checkpoint.h"
#include "thrown_error.h"

namespace st {
namespace {

namespace fs = std::filesystem;

/// A run's folder inside a temporary folder.
class Run : public testing::Test {
 protected:
  Run() : scratch_("run_folder"), path_((scratch_ / "run").string()) {}

  /// Makes a checkpoint of that step as a save does; returns its name.
  static std::string save(RunFolderWriter& writer, int64_t step) {
    std::string name = writer.begin(step);
    Manifest manifest;
    manifest.checkpoint = name;
    manifest.step = step;
    manifest.sequence = writer.next_sequence();
    manifest.training = Json::empty(Json::Kind::object);
    manifest.recipe = Json::empty(Json::Kind::object);
    WriteProgress progress;
    const int64_t sequence = manifest.sequence;
    write_checkpoint(writer.part_path(name), std::move(manifest), {}, {}, progress);
    writer.commit(name);
    writer.set_latest(name, sequence);
    return name;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const CheckpointEntry& entry : RunFolder(path_).list()) all.push_back(entry.name + (entry.problem.empty() ? "" : "!"));
    return all;
  }
  fs::path at(std::string_view name) const { return fs::path(path_) / name; }

  TestFolder scratch_;
  std::string path_;
};

using Names = std::vector<std::string>;

TEST_F(Run, OfAFolderThatIsNotThereHoldsNothing) {
  const RunFolder folder(path_);
  EXPECT_TRUE(folder.list().empty());
  EXPECT_TRUE(folder.leftovers().empty());
  EXPECT_FALSE(folder.latest());
  EXPECT_EQ(error_of([&] { folder.path_of("latest"); }).code(), Code::not_found);
  EXPECT_FALSE(fs::exists(path_)) << "looking makes nothing";
}

TEST_F(Run, ListsTheNewestFirstAlsoAfterARollback) {
  {
    RunFolderWriter writer(path_);
    save(writer, 10);
    save(writer, 20);
  }
  RunFolderWriter writer(path_);
  save(writer, 15);
  EXPECT_EQ(save(writer, 20), "step-00000020.2");
  EXPECT_EQ(names(), (Names{"step-00000020.2", "step-00000015", "step-00000020", "step-00000010"}));
  EXPECT_EQ(writer.folder().path_of(""), path_ + "/step-00000020.2");
  EXPECT_EQ(writer.folder().path_of("step-00000020"), path_ + "/step-00000020");
  const auto latest = writer.folder().latest();
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->name, "step-00000020.2");
  EXPECT_EQ(latest->sequence, 4);
  EXPECT_TRUE(is_error(error_of([&] { writer.folder().path_of("step-00000021"); }), Code::not_found, {"step-00000020"}));
}

TEST_F(Run, GoesOnCountingWhereTheNewestManifestIsNoGood) {
  {
    RunFolderWriter writer(path_);
    save(writer, 1);
    save(writer, 2);
  }
  put_file(at("step-00000002") / "manifest.json", "{}");
  RunFolderWriter writer(path_);
  EXPECT_EQ(writer.next_sequence(), 3) << "latest knows that there was a second";
  put_file(at("step-00000001") / "manifest.json", "{}");
  EXPECT_TRUE(is_error(error_of([&] { writer.folder().path_of(""); }), Code::corrupt, {"no checkpoint there has a valid manifest"}));
}

TEST_F(Run, TellsWhatIsWrongWithAManifestAndStillOpensTheOthers) {
  RunFolderWriter writer(path_);
  for (const int64_t step : {1, 2, 3, 4}) save(writer, step);
  put_file(at("step-00000002") / "manifest.json", "{}");
  fs::remove(at("step-00000004") / "manifest.json");
  fs::copy(at("step-00000003"), at("step-00000007"));
  EXPECT_EQ(names(), (Names{"step-00000007!", "step-00000004!", "step-00000003", "step-00000002!", "step-00000001"}));
  EXPECT_EQ(writer.folder().path_of("latest"), path_ + "/step-00000003");
  EXPECT_NE(writer.folder().list().front().problem.find("step-00000003"), std::string::npos) << "a copy, and of which";
}

TEST_F(Run, RemovesOnStartWhatAKillLeftAndNothingElse) {
  {
    RunFolderWriter writer(path_);
    save(writer, 1);
    save(writer, 2);
    put_file(fs::path(writer.part_path(writer.begin(3))) / "model.safetensors", "half a file");
  }
  fs::rename(at("step-00000001"), at("step-00000001.gone"));  // as if killed during a removal
  put_file(at("latest.tmp-123-0"), "{");
  put_file(at("ranks-5f3a-1.1"), "7");  // as of a rank that was killed in a shared save
  const Names ours = {"latest.tmp-123-0", "ranks-5f3a-1.1", "step-00000001.gone", "step-00000003.part"};
  EXPECT_EQ(RunFolder(path_).leftovers(), ours);
  const Names others = {"step-4.part", "step-00000005", "notes.part", "latest.tmp", "step-00000006.part.txt"};
  for (const std::string& name : others) {
    fs::create_directories(at(name));
    put_file(at(name) / "mine", "mine");
  }
  fs::create_symlink(scratch_ / "elsewhere", at("step-00000009.part"));
  const RunFolderWriter writer(path_);
  for (const std::string& name : ours) EXPECT_FALSE(fs::exists(at(name))) << name;
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(at(name) / "mine")) << name;
  EXPECT_TRUE(fs::is_symlink(at("step-00000009.part")));
  EXPECT_EQ(names(), (Names{"step-00000005!", "step-00000002"})) << "a checkpoint without its manifest is no leftover";
}

TEST_F(Run, LatestIsRefusedWithAnyByteChangedOrMissing) {
  RunFolderWriter writer(path_);
  save(writer, 120);
  const std::string good = content_of_file(at("latest"));
  ASSERT_TRUE(parse_latest(good));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(parse_latest(bad)) << "byte " << i;
    EXPECT_FALSE(parse_latest(good.substr(0, i))) << "cut at " << i;
  }
  for (const std::string_view line : {R"({"checkpoint":"../evil","sequence":1})", R"({"checkpoint":"step-00000001"})", R"({"sequence":1})"})
    EXPECT_FALSE(parse_latest(guard_line(std::string(line)))) << line;
}

TEST_F(Run, OneWritesAndTheOtherIsToldWho) {
  const auto first = std::make_unique<RunFolderWriter>(path_);
  EXPECT_TRUE(is_error(error_of([&] { const RunFolderWriter second(path_); }), Code::busy,
                       {text("process ", os::process_id(), " on ", os::host_name(), " since 2")}));
}

TEST_F(Run, ItsLockEndsWithItsProcessThoughAChildLivesOn) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  auto writer = std::make_unique<RunFolderWriter>(path_);
  const pid_t child = fork();
  if (child == 0) {  // keeps the lock file open, too, until the pipe closes
    close(pipe_ends[1]);
    char byte = 0;
    [[maybe_unused]] const ssize_t got = read(pipe_ends[0], &byte, 1);
    _exit(0);
  }
  writer.reset();
  EXPECT_NO_THROW(RunFolderWriter{path_});
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  waitpid(child, nullptr, 0);
}

TEST_F(Run, AProcessThatIsAboutToEndIsWaitedFor) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunFolderWriter writer(path_);
    [[maybe_unused]] const ssize_t said = write(pipe_ends[1], "!", 1);
    usleep(100'000);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  EXPECT_NO_THROW(RunFolderWriter{path_});
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  waitpid(child, nullptr, 0);
}

TEST_F(Run, IsMadeAnewWhereSomeoneRemovedItAndLeftToWhoCameFirst) {
  RunFolderWriter writer(path_);
  save(writer, 1);
  fs::remove_all(path_);
  EXPECT_EQ(save(writer, 2), "step-00000002");
  EXPECT_EQ(error_of([&] { const RunFolderWriter second(path_); }).code(), Code::busy) << "the new folder is locked too";
  fs::remove_all(path_);
  const RunFolderWriter other(path_);
  EXPECT_EQ(error_of([&] { writer.begin(3); }).code(), Code::busy);
}

TEST_F(Run, RemovesNoneThatIsBeingRead) {
  RunFolderWriter writer(path_);
  const std::string name = save(writer, 1);
  {
    const CheckpointReader reader(path_ + "/" + name);
    EXPECT_FALSE(writer.remove(name));
    EXPECT_EQ(names(), Names{name});
  }
  EXPECT_TRUE(writer.remove(name));
  EXPECT_TRUE(names().empty());
  EXPECT_FALSE(fs::exists(at(name + ".gone")));
  EXPECT_TRUE(writer.remove(name)) << "somebody else was quicker";
}

TEST_F(Run, AFailedSaveLeavesNothing) {
  RunFolderWriter writer(path_);
  const std::string name = writer.begin(5);
  put_file(fs::path(writer.part_path(name)) / "model.safetensors", "x");
  writer.discard(name);
  EXPECT_TRUE(writer.folder().leftovers().empty());
  EXPECT_EQ(writer.begin(5), name);
  EXPECT_EQ(writer.begin(5), name) << "what a discard could not remove is no obstacle";
}

TEST_F(Run, RefusesAFileForAFolder) {
  put_file(path_, "");
  EXPECT_EQ(error_of([&] { const RunFolderWriter writer(path_); }).code(), Code::invalid_argument);
  EXPECT_EQ(error_of([&] { const RunFolder folder(""); }).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace st

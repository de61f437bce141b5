// scaletrain.hpp: checkpoints of the program's own buffers and of a trainer.
#include <unistd.h>

#include <filesystem>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

/// A folder that is removed at the end of the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) / ("scaletrain_hpp_" + std::to_string(getpid()) + name)) {}
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  std::string in(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(HppCheckpoint, SavesAndLoadsTheProgramsBuffers) {
  const Folder folder("own");
  const Context context;
  CheckpointOptions options;
  options.keep_last = 2;
  const Checkpoint checkpoint(context, folder.path(), options);
  std::vector<float> weights = {1, 2, 3};
  std::vector<int64_t> counts = {7};
  checkpoint.save(1, {{"weights", view(weights)}, {"counts", view(counts)}}, R"({"note":"one"})");
  weights = {4, 5, 6};
  Pending pending = checkpoint.save_async(2, {{"weights", view(weights)}, {"counts", view(counts)}});
  weights = {0, 0, 0};
  pending.wait();
  EXPECT_EQ(checkpoint.progress().saved, 2);
  EXPECT_EQ(checkpoint.progress().saved_step, 2);
  EXPECT_TRUE(checkpoint.wait(std::chrono::milliseconds(0)));
  checkpoint.wait();

  const LoadReport newest = checkpoint.load({{"weights", view(weights)}, {"counts", view(counts)}});
  EXPECT_EQ(weights, (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(newest.step, 2);
  EXPECT_EQ(newest.name, "step-00000002");
  EXPECT_EQ(newest.metadata, "{}");
  EXPECT_EQ(newest.read, 2);

  ReadOptions some;
  some.names = {"w*"};
  some.overwrite = true;
  const LoadReport first = checkpoint.load({{"weights", view(weights)}}, "step-00000001", some);
  EXPECT_EQ(weights, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(first.metadata, R"({"note":"one"})");

  LoadReport report;
  EXPECT_EQ(thrown_status([&] { checkpoint.load({{"others", view(weights)}}, "", ReadOptions(), report); }), Status::invalid_argument);
  EXPECT_EQ(report.missing, std::vector<std::string>{"others"});
  EXPECT_EQ(report.unexpected, (std::vector<std::string>{"counts", "weights"}));
  const std::vector<float> constant = {1, 2, 3};
  EXPECT_THROW(checkpoint.load({{"weights", view(constant)}, {"counts", view(counts)}}), Error) << "it is to be written";
}

TEST(HppCheckpoint, IsLookedAtAndMadeAnew) {
  const Folder folder("look"), two("two");
  const Context context;
  std::vector<float> values(3000, 2);
  {
    const Checkpoint checkpoint(context, folder.path());
    EXPECT_EQ(checkpoint.list(), "[]");
    checkpoint.save(5, {{"values", view(values)}});
    EXPECT_THROW(Checkpoint(context, folder.path()), Error) << "somebody saves here already";
  }
  CheckpointOptions options;
  options.read_only = true;
  const Checkpoint checkpoint(context, folder.path(), options);
  EXPECT_TRUE(has(checkpoint.list(), "step-00000005"));
  EXPECT_TRUE(has(checkpoint.inspect(), "\"values\""));
  EXPECT_TRUE(has(checkpoint.verify("step-00000005"), "\"problems\":[]"));
  checkpoint.reshard(two.path(), 2);
  EXPECT_EQ(Checkpoint(context, two.path(), options).hash(), checkpoint.hash());
  checkpoint.export_to(folder.in("all.safetensors"), true);
  EXPECT_GT(std::filesystem::file_size(folder.in("all.safetensors")), 12000U);
  EXPECT_THROW(checkpoint.save(6, {{"values", view(values)}}), Error) << "read only";
}

TEST(HppCheckpoint, ATrainerGoesOnFromItsOwn) {
  const Folder folder("trainer");
  Sine first, second;
  const Checkpoint checkpoint(first.context, folder.path());
  first.trainer.save_every(checkpoint, 2);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(first.trainer.step(first.batch).save_error, "");
  first.trainer.save_no_more();
  checkpoint.wait();
  EXPECT_TRUE(has(checkpoint.list(), "step-00000002"));
  first.trainer.save_async(checkpoint, R"({"note":"three"})").wait();
  EXPECT_EQ(checkpoint.hash(), first.trainer.digest());

  const LoadReport report = second.trainer.resume(checkpoint);
  EXPECT_EQ(report.metadata, R"({"note":"three"})");
  EXPECT_EQ(second.trainer.digest(), first.trainer.digest());
  LoadReport back;
  second.trainer.resume(checkpoint, "step-00000002", ReadOptions(), back);
  EXPECT_EQ(back.step, 2);

  first.trainer.save(checkpoint);
  const Model weights = second.model.clone();
  weights.load(checkpoint);
  EXPECT_EQ(weights.digest(), first.model.digest());
  ReadOptions other_names;
  other_names.renames = {{"*", "none.*"}};
  EXPECT_THROW(weights.load(checkpoint, "", other_names, back), Error);
  EXPECT_FALSE(back.missing.empty());
}

}  // namespace

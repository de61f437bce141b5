// Requests that a checkpoint refuses without changing anything: options, names, views, folders, a second writer.
#include <cmath>
#include <functional>
#include <limits>

#include "checkpoint_folder.h"
#include "host_arrays.h"

namespace {

using namespace st::test;

class CCheckpointRefusals : public testing::Test {
 protected:
  st_status create(const st_checkpoint_options* options = nullptr) {
    checkpoint_.reset();
    return st_checkpoint_create(context_, folder_.c_str(), options, checkpoint_.out());
  }
  /// A checkpoint of step 1 with "a", two f32, and "n", one i32.
  void save_two() {
    ASSERT_TRUE(works(create()));
    const st_named_view views[] = {{"a", a_.view()}, n_};
    ASSERT_TRUE(works(st_checkpoint_save(checkpoint_, 1, 2, views, nullptr, nullptr)));
  }
  int64_t saved() const {
    const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint_);
    return progress.saved;
  }

  CheckpointFolder folder_;
  HeldContext context_ = hold<HeldContext>(st_context_create, nullptr);
  HeldCheckpoint checkpoint_;
  FloatArray a_{{1, 2}};
  int32_t number_ = 3;
  st_named_view n_ = {"n", {ST_I32, 0, nullptr, nullptr, &number_, 4}};
};

TEST_F(CCheckpointRefusals, EachOptionIsLookedAt) {
  const auto refused = [&](const std::function<void(st_checkpoint_options&)>& set, std::initializer_list<std::string_view> words) {
    auto options = filled(st_checkpoint_options_init);
    set(options);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(&options), words));
    EXPECT_FALSE(std::filesystem::exists(folder_.path())) << "nothing was created";
  };
  refused([](auto& o) { o.keep_last = -1; }, {"keep_last is -1"});
  refused([](auto& o) { o.keep_every = -2; }, {"keep_every is -2"});
  refused([](auto& o) { o.keep_best = -3; }, {"keep_best is -3"});
  refused([](auto& o) { o.keep_best = 1; }, {"keep_best is 1", "best is NULL"});
  refused([](auto& o) { o.keep_best = 1, o.best = ""; }, {"best is empty"});
  refused([](auto& o) { o.queue = -1; }, {"queue is -1"});
  refused([](auto& o) { o.queue = 17; }, {"queue is 17", "0 to 16"});
  refused([](auto& o) { o.bytes_per_second = -1; }, {"bytes_per_second is -1"});
  refused([](auto& o) { o.bytes_per_second = std::numeric_limits<double>::quiet_NaN(); }, {"bytes_per_second"});
  refused([](auto& o) { o.bytes_per_second = std::numeric_limits<double>::infinity(); }, {"bytes_per_second"});
  refused([](auto& o) { o.file_bytes = 1000; }, {"file_bytes is 1000"});
  refused([](auto& o) { o.struct_size = 8; }, {"struct_size is 8"});
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_create(context_, "", nullptr, checkpoint_.out()), {"folder is empty"}));
  const auto defaults = filled(st_checkpoint_options_init);
  EXPECT_EQ(defaults.read_only, 0);
  EXPECT_EQ(defaults.keep_last, 3);
  EXPECT_EQ(defaults.keep_every, 0);
  EXPECT_EQ(defaults.keep_best, 0);
  EXPECT_EQ(defaults.best, nullptr);
  EXPECT_EQ(defaults.queue, 0);
  EXPECT_EQ(defaults.bytes_per_second, 0);
  EXPECT_EQ(defaults.file_bytes, int64_t{4} << 30);
}

TEST_F(CCheckpointRefusals, FoldersThatAreNone) {
  auto options = filled(st_checkpoint_options_init);
  options.read_only = 1;
  EXPECT_TRUE(fails(ST_NOT_FOUND, create(&options), {"no such folder", folder_.path()}));
  const std::string file = file_of("no_folder", "text");
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_create(context_, file.c_str(), nullptr, checkpoint_.out()),
                    {file, "expected a folder, found a file"}));
  save_two();
  const std::string one = folder_.in("step-00000001");
  HeldCheckpoint other;
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_checkpoint_create(context_, one.c_str(), nullptr, other.out()), {"itself a checkpoint", "read_only"}));
  ASSERT_TRUE(works(st_checkpoint_create(context_, one.c_str(), &options, other.out())));
  const char* json = "";
  EXPECT_EQ(text_of(st_checkpoint_list, other), R"([{"name":"step-00000001","step":1,"problem":null}])");
  EXPECT_TRUE(works(st_checkpoint_inspect(other, "step-00000001", &json)));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_checkpoint_inspect(other, "step-00000002", &json), {"step-00000002", "itself a checkpoint"}));
}

TEST_F(CCheckpointRefusals, ViewsAndNamesThatNoFileCouldHold) {
  ASSERT_TRUE(works(create()));
  const auto refused = [&](const std::vector<st_named_view>& views, std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_save(checkpoint_, 1, std::ssize(views), views.data(), nullptr, nullptr), words));
  };
  st_named_view a = {"a", a_.view()};
  refused({}, {"n is 0"});
  refused({a, n_, a}, {"two views are named \"a\""});
  refused({{nullptr, a.view}}, {"view 0 has no name"});
  refused({{"", a.view}}, {"view 0 has an empty name"});
  refused({{"\xFF", a.view}}, {"UTF-8"});
  a.view.bytes = 4;
  refused({a}, {"\"a\"", "needs 8 bytes"});
  a.view = a_.view();
  a.view.dtype = 99;
  refused({a}, {"dtype 99"});
  a.view = a_.view();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_save(checkpoint_, 1, (1 << 20) + 1, &a, nullptr, nullptr), {"1048577"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_save(checkpoint_, -1, 1, &a, nullptr, nullptr), {"step is -1"}));
  for (const char* bad : {"[1]", "{\"x\": [1]}", "{\"x\": null}", "{\"x\"", "text"})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_save(checkpoint_, 1, 1, &a, bad, nullptr), {"metadata"})) << bad;
  EXPECT_EQ(saved(), 0);
}

TEST_F(CCheckpointRefusals, LoadsThatDoNotFitChangeNothing) {
  save_two();
  FloatArray to{{-1, -2}}, three{{-1, -2, -3}};
  int32_t whole = -1;
  const st_named_view a = {"a", to.view()}, n = {"n", {ST_I32, 0, nullptr, nullptr, &whole, 4}};
  const auto refused = [&](st_status wanted, const std::vector<st_named_view>& views, std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(wanted, st_checkpoint_load(checkpoint_, nullptr, std::ssize(views), views.data(), nullptr, nullptr), words));
    EXPECT_EQ(to.values, (std::vector<float>{-1, -2}));
    EXPECT_EQ(whole, -1);
  };
  refused(ST_INVALID_ARGUMENT, {a, n, {"b", three.view()}}, {"no tensor \"b\"", "1 missing"});
  refused(ST_INVALID_ARGUMENT, {a}, {"\"n\"", "no view"});
  refused(ST_INVALID_ARGUMENT, {n, {"a", three.view()}}, {"\"a\"", "[2]", "[3]"});
  refused(ST_INVALID_ARGUMENT, {a, a, n}, {"\"a\""});
  refused(ST_INVALID_ARGUMENT, {n, a, {"b", to.view()}}, {"share memory"});
  const int64_t none[] = {0}, two[] = {2};
  refused(ST_INVALID_ARGUMENT, {n, {"a", {ST_F32, 1, two, none, to.values.data(), 8}}}, {"share memory through its strides"});
  refused(ST_INVALID_ARGUMENT, {n, {"a", {ST_I32, 1, two, nullptr, to.values.data(), 8}}}, {"f32", "i32", "only floating"});
  refused(ST_INVALID_ARGUMENT, {a, {"n", {ST_F32, 0, nullptr, nullptr, &whole, 4}}}, {"i32", "f32"});
}

TEST_F(CCheckpointRefusals, ReadOptionsAreLookedAt) {
  save_two();
  const st_named_view a = {"a", a_.view()};
  auto options = filled(st_read_options_init);
  const auto refused = [&](std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_load(checkpoint_, nullptr, 1, &a, &options, nullptr), words));
    options = filled(st_read_options_init);
  };
  options.rename_count = 1;
  refused({"1 renames at NULL"});
  options.rename_count = -1;
  refused({"-1 renames"});
  options.name_count = 2;
  refused({"2 names at NULL"});
  options.name_count = (1 << 20) + 1;
  refused({"1048577 names"});
  const char* const names[] = {"a", nullptr};
  options.names = names;
  options.name_count = 2;
  refused({"name", "NULL"});
  const st_rename renames[] = {{"x*y*", "z*"}};
  options.renames = renames;
  options.rename_count = 1;
  refused({"x*y*"});
}

TEST_F(CCheckpointRefusals, NamesOfNoCheckpoint) {
  ASSERT_TRUE(works(create()));
  const char* text = "";
  const st_named_view a = {"a", a_.view()};
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_checkpoint_load(checkpoint_, nullptr, 1, &a, nullptr, nullptr), {folder_.path(), "no checkpoint"}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_checkpoint_hash(checkpoint_, nullptr, &text), {folder_.path()}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_checkpoint_inspect(checkpoint_, nullptr, &text), {folder_.path()}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_checkpoint_verify(checkpoint_, nullptr, &text), {folder_.path()}));
  save_two();
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_checkpoint_inspect(checkpoint_, "step-00000002", &text), {"step-00000002", "step-00000001"}));
  const std::string taken = folder_.in("step-00000001");
  EXPECT_NE(st_checkpoint_reshard(checkpoint_, nullptr, taken.c_str(), 2), ST_OK) << "not into an existing checkpoint";
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_reshard(checkpoint_, nullptr, folder_.in("new").c_str(), -1), {"shards is -1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_reshard(checkpoint_, nullptr, "", 1), {"folder is empty"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_export(checkpoint_, nullptr, "", 1), {"path is empty"}));
  EXPECT_NE(st_checkpoint_export(checkpoint_, nullptr, "/no/such/folder/w.safetensors", 1), ST_OK);
  EXPECT_EQ(text_of(st_checkpoint_verify, checkpoint_, nullptr), R"({"name":"step-00000001","problems":[]})") << "the source is unchanged";
}

// If the open folder is removed, the save fails, and a later save creates it again.
TEST_F(CCheckpointRefusals, ALostFolderIsTheSavesErrorAndTheNextMakesItAnew) {
  save_two();
  auto progress = filled(st_save_progress_init);
  std::filesystem::remove_all(folder_.path());
  file_of(std::filesystem::path(folder_.path()).filename().string(), "in its place");
  const st_named_view a = {"a", a_.view()};
  HeldPending pending;
  st_status status = st_checkpoint_save(checkpoint_, 2, 1, &a, nullptr, pending.out());
  if (status == ST_OK) status = st_pending_wait(pending, -1);
  EXPECT_TRUE(fails(ST_IO, status, {folder_.path()}));
  ASSERT_TRUE(works(st_checkpoint_progress(checkpoint_, &progress)));
  EXPECT_EQ(progress.saved, 1);
  EXPECT_EQ(progress.failed, 1);
  std::filesystem::remove(folder_.path());
  ASSERT_TRUE(works(st_checkpoint_save(checkpoint_, 3, 1, &a, nullptr, nullptr)));
}

// No one waited for the save, so the checkpoint itself reports its error, once.
TEST_F(CCheckpointRefusals, TheErrorOfASaveThatNobodyWaitedForIsToldByWait) {
  save_two();
  std::filesystem::remove_all(folder_.path());
  file_of(std::filesystem::path(folder_.path()).filename().string(), "in its place");
  const st_named_view a = {"a", a_.view()};
  st_pending* pending = nullptr;
  if (st_checkpoint_save(checkpoint_, 2, 1, &a, nullptr, &pending) != ST_OK) GTEST_SKIP() << "already reported by the call";
  ASSERT_TRUE(works(st_pending_destroy(pending)));
  EXPECT_TRUE(fails(ST_IO, st_checkpoint_wait(checkpoint_, -1), {folder_.path()}));
  EXPECT_TRUE(works(st_checkpoint_wait(checkpoint_, -1)));
  std::filesystem::remove(folder_.path());
}

}  // namespace

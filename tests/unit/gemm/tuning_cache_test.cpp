// The tuning cache: a process finds what an earlier one saved, and nothing fails whatever is at its path.
#include "gemm/tuning_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/os/cpu.h"
#include "plain_problem.h"

namespace st {
namespace {

namespace fs = std::filesystem;

/// The test's own folder, and the messages of the caches that it makes.
class TuningCacheFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / text("tuning-", getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "cache.txt").string();
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  TuningCache cache() {
    return {path_, Logger{[](void* user, int32_t level, const char*, const char* line) {
                            static_cast<TuningCacheFile*>(user)->told_.push_back(text(level, " ", line));
                          },
                          this}};
  }
  void put(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }
  std::string content() const {
    std::stringstream all;
    all << std::ifstream(path_, std::ios::binary).rdbuf();
    return all.str();
  }

  fs::path folder_;
  std::string path_;
  std::vector<std::string> told_;
};

TunedSchedule tuned(int64_t mc) { return {{.mr = 6, .nr = 16, .mc = mc, .nc = 64, .kc = 300, .block_m = mc, .block_n = 64}, 2e9, 1.5e9}; }

void expect_found(const std::string& path, const std::string& key, int64_t mc) {
  const auto found = TuningCache(path, {}).find(key);
  ASSERT_TRUE(found.has_value()) << key;
  EXPECT_EQ(found->schedule, tuned(mc).schedule);
  EXPECT_DOUBLE_EQ(found->rate, 2e9);
  EXPECT_DOUBLE_EQ(found->standard_rate, 1.5e9);
}

TEST_F(TuningCacheFile, GivesTheNextProcessWhatWasKept) {
  path_ = (folder_ / "a" / "b" / "cache.txt").string();  // folders that do not exist yet
  {
    TuningCache first = cache();
    EXPECT_FALSE(first.find("one").has_value());
    first.keep("one", tuned(12));
    first.keep("two", tuned(24));
    TunedSchedule by_library = tuned(36);
    by_library.library = "mkl-1999.2.3";
    first.keep("library", by_library);
  }
  TuningCache next = cache();
  ASSERT_TRUE(next.find("one").has_value());
  EXPECT_EQ(next.find("one")->schedule, tuned(12).schedule);
  EXPECT_EQ(next.find("two")->schedule, tuned(24).schedule);
  EXPECT_DOUBLE_EQ(next.find("two")->standard_rate, 1.5e9);
  EXPECT_EQ(next.find("two")->library, "");
  ASSERT_TRUE(next.find("library").has_value());
  EXPECT_EQ(next.find("library")->library, "mkl-1999.2.3");
  EXPECT_FALSE(next.find("three").has_value());
  EXPECT_TRUE(told_.empty()) << told_[0];
}

TEST_F(TuningCacheFile, InMemoryAloneHasNoFile) {
  TuningCache cache("", {});
  cache.keep("one", tuned(12));
  EXPECT_TRUE(cache.find("one").has_value());
  EXPECT_TRUE(fs::is_empty(folder_));
}

/// A damaged file is not used, is reported once, and is replaced at the next save.
TEST_F(TuningCacheFile, ThatIsDamagedIsReportedOnceAndReplaced) {
  cache().keep("one", tuned(12));
  const std::string whole = content();
  const size_t digit = whole.find(" 300 ") + 1;
  std::string flipped = whole, no_end = whole, doubled = whole;
  flipped[digit] = '4';
  no_end.resize(whole.rfind("end"));
  doubled.insert(whole.find('\n') + 1, whole.substr(whole.find('\n') + 1, whole.rfind("end") - whole.find('\n') - 1));
  std::string newer = whole;
  newer.replace(newer.find(" 2\n"), 2, " 3");
  for (const std::string& damaged :
       {flipped, no_end, doubled, newer, whole.substr(0, 5), whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1),
        whole + "x", whole + whole, std::string("scaletrain-tuning 2\n"), std::string("scaletrain-tuning 2\nend 1 0\n"),
        std::string("scaletrain-tuning 2\n\0\xFF\nend 1 0\n", 31)}) {
    put(damaged);
    told_.clear();
    TuningCache one = cache();
    EXPECT_FALSE(one.find("one").has_value()) << damaged;
    EXPECT_FALSE(one.find("one").has_value()) << damaged;
    ASSERT_EQ(told_.size(), 1U) << damaged;
    EXPECT_EQ(told_[0].substr(0, 2), "1 ");
    EXPECT_NE(told_[0].find(path_), std::string::npos) << told_[0];
    one.keep("two", tuned(24));
    EXPECT_EQ(told_.size(), 1U);
    expect_found(path_, "two", 24);
  }
}

TEST_F(TuningCacheFile, ThatIsEmptyIsReplaced) {
  put("");
  TuningCache one = cache();
  EXPECT_FALSE(one.find("one").has_value());
  one.keep("one", tuned(12));
  expect_found(path_, "one", 12);
}

TEST_F(TuningCacheFile, ThatIsAnotherFileIsLeftAsItIs) {
  for (const std::string& other : {std::string("my thesis\n"), std::string("{}"), std::string(1000, '\0')}) {
    put(other);
    told_.clear();
    TuningCache one = cache();
    one.keep("one", tuned(12));
    EXPECT_TRUE(one.find("one").has_value()) << "of this process's own";
    EXPECT_EQ(content(), other);
    EXPECT_EQ(told_.size(), 1U);
  }
}

TEST_F(TuningCacheFile, ThatIsAFolderAPipeOrBehindAFileFailsNothing) {
  const std::string folder = (folder_ / "folder").string(), pipe = (folder_ / "pipe").string();
  fs::create_directories(folder);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  put("x");
  for (const std::string& path : {folder, pipe, path_ + "/cache.txt", std::string("/dev/null"), std::string("/proc/nothing/cache.txt")}) {
    told_.clear();
    path_ = path;
    TuningCache there = cache();
    EXPECT_FALSE(there.find("one").has_value()) << path;
    there.keep("one", tuned(12));
    EXPECT_TRUE(there.find("one").has_value()) << path;
    EXPECT_EQ(told_.size(), 1U) << path;
  }
}

TEST_F(TuningCacheFile, ThatCannotBeReadFailsNothing) {
  cache().keep("one", tuned(12));
  fs::permissions(path_, fs::perms::none);
  if (access(path_.c_str(), R_OK) == 0) {  // root can read everything: use a child without that right
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const bool is_other = chmod(folder_.c_str(), 0777) == 0 && setuid(65534) == 0;
      TuningCache one = cache();
      _exit(is_other && !one.find("one").has_value() && told_.size() == 1 && told_[0].find("Permission denied") != std::string::npos ? 0
                                                                                                                                     : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return;
  }
  TuningCache one = cache();
  EXPECT_FALSE(one.find("one").has_value());
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(TuningCacheFile, KeepsWhatSeveralProcessesWriteAtOnce) {
  constexpr int kProcesses = 4, kKeys = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      TuningCache one = cache();
      for (int i = 0; i < kKeys; ++i) one.keep(text("p", p, "-", i), tuned(6 * (i + 1)));
      _exit(told_.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  TuningCache all = cache();
  for (int p = 0; p < kProcesses; ++p)
    for (int i = 0; i < kKeys; ++i) {
      const auto found = all.find(text("p", p, "-", i));
      ASSERT_TRUE(found.has_value()) << p << " " << i;
      EXPECT_EQ(found->schedule.mc, 6 * (i + 1));
    }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2) << "the cache and its lock, no temporaries";
}

TEST(TuningKey, TellsProblemsThreadsAndWishesApart) {
  const GemmProblem p = plain_problem(3, 5, 7);
  const auto key_of = [](const GemmProblem& problem, const TileSchedule& wish = {}, bool order = false, int threads = 1,
                         std::string_view set = "avx2") { return tuning_key(os::cpu(), set, problem, wish, order, threads); };
  GemmProblem column = p, wide = p, half = p, added = p, biased = p, batched = p;
  column.b = {1, 7}, wide.a = {8, 1}, half.c_type = DType::bf16, added.beta = 1, biased.bias = true, batched.batch = 2;
  TileSchedule wish;
  wish.mc = 12;
  std::vector<std::string> keys = {key_of(p),
                                   key_of(column),
                                   key_of(wide),
                                   key_of(half),
                                   key_of(added),
                                   key_of(biased),
                                   key_of(batched),
                                   key_of(p, wish),
                                   key_of(p, {}, true),
                                   key_of(p, {}, false, 2),
                                   key_of(p, {}, false, 1, "avx512")};
  for (const std::string& key : keys) EXPECT_EQ(key.find_first_of(" \n"), std::string::npos) << key;
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
  EXPECT_EQ(key_of(p), key_of(p));
}

}  // namespace
}  // namespace st

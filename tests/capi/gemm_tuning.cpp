// Tuning by the C ABI: a plan measures only when it was asked to, its bits are those of the default, and the cache is a file that may be
// anything.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gemm_case.h"

namespace {

using namespace st::test;
namespace fs = std::filesystem;

class GemmTuning : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() / ("gemm-tuning-" + std::to_string(getpid()));
    fs::remove_all(path_);
  }
  void TearDown() override {
    fs::remove_all(path_);
    fs::remove_all(path_.string() + ".lock");
  }

  HeldContext context() {
    auto options = filled(st_context_options_init);
    const std::string name = path_.string();
    options.tuning_cache = name.c_str();
    options.threads = 2;
    options.log_user = this;
    options.log = [](void* user, int32_t level, const char* area, const char*) {
      if (level == ST_LOG_WARNING && std::strcmp(area, "tuning") == 0) ++static_cast<GemmTuning*>(user)->warnings_;
    };
    HeldContext made;
    EXPECT_TRUE(works(st_context_create(&options, made.out())));
    return made;
  }

  /// The source of a plan that may measure for so long; its product lies in the case's C afterwards.
  int32_t source_of(GemmCase& x, st_context* context, int32_t tune_ms) {
    auto schedule = filled(st_gemm_schedule_init);
    schedule.tune_ms = tune_ms;
    HeldGemm gemm;
    EXPECT_TRUE(works(st_gemm_plan_create(context, &x.problem, &schedule, gemm.out())));
    EXPECT_TRUE(works(x.run(gemm, 1, 0)));
    auto info = filled(st_gemm_info_init);
    EXPECT_TRUE(works(st_gemm_plan_info(gemm, &info)));
    EXPECT_EQ(info.adjusted, 0);
    return info.source;
  }

  fs::path path_;
  int warnings_ = 0;
};

TEST_F(GemmTuning, MeasuresOnlyWhenAskedAndChangesNoBit) {
  GemmCase x({150, 130, 1300});
  const HeldContext mine = context();
  EXPECT_EQ(source_of(x, mine, 0), ST_GEMM_SOURCE_TABLE);
  EXPECT_FALSE(fs::exists(path_)) << "nobody asked";
  const auto bits = x.c.bytes();
  const int32_t source = source_of(x, mine, 2000);
  EXPECT_TRUE(source == ST_GEMM_SOURCE_TUNED || source == ST_GEMM_SOURCE_TABLE) << source;
  EXPECT_EQ(x.c.bytes(), bits);
  EXPECT_TRUE(fs::exists(path_));
  const HeldContext next = context();
  EXPECT_EQ(source_of(x, next, 1), source == ST_GEMM_SOURCE_TUNED ? ST_GEMM_SOURCE_CACHE : ST_GEMM_SOURCE_TABLE);
  EXPECT_EQ(x.c.bytes(), bits);
  EXPECT_EQ(source_of(x, next, 0), ST_GEMM_SOURCE_TABLE) << "0 does not look it up either";
  EXPECT_EQ(warnings_, 0);
}

TEST_F(GemmTuning, WarnsOnceOfACacheThatCannotBeUsedAndGoesOn) {
  GemmCase x({50, 60, 70});
  const HeldContext plain = context();
  source_of(x, plain, 0);
  const auto bits = x.c.bytes();
  const auto expect_one_warning = [&](const char* what) {
    warnings_ = 0;
    const HeldContext mine = context();
    source_of(x, mine, 500);
    source_of(x, mine, 500);
    EXPECT_EQ(x.c.bytes(), bits) << what;
    EXPECT_EQ(warnings_, 1) << what;
    fs::remove_all(path_);
  };
  fs::create_directories(path_);
  expect_one_warning("a folder");
  std::ofstream(path_) << "scaletrain-tuning 2\nhalf a li";
  expect_one_warning("truncated");
  std::ofstream(path_) << "scaletrain-tuning 7\nend 0 0\n";
  expect_one_warning("another version");
  std::ofstream(path_) << "#!/bin/sh\n";
  expect_one_warning("another file");
}

}  // namespace

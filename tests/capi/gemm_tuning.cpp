// Tuning through the C ABI: a plan measures only on request, its bits are those of the default, and the cache file may have any content.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gemm_case.h"
#include "sanitized.h"
#include "tuning_cache_file.h"

namespace {

using namespace st::test;
namespace fs = std::filesystem;

class GemmTuning : public testing::Test {
 protected:
  HeldContext context() {
    auto options = filled(st_context_options_init);
    options.threads = 2;
    options.log_user = this;
    options.log = [](void* user, int32_t level, const char* area, const char*) {
      if (level == ST_LOG_WARNING && std::strcmp(area, "tuning") == 0) ++static_cast<GemmTuning*>(user)->warnings_;
    };
    return cache_.context(options);
  }

  /// The source of a plan that may measure for tune_ms; its product is in the case's C afterwards.
  int32_t source_of(GemmCase& x, st_context* context, int32_t tune_ms) {
    auto schedule = filled(st_gemm_schedule_init);
    schedule.tune_ms = tune_ms;
    const auto gemm = hold<HeldGemm>(st_gemm_plan_create, context, &x.problem, &schedule);
    EXPECT_TRUE(works(x.run(gemm, 1, 0)));
    const auto info = filled(st_gemm_info_init, st_gemm_plan_info, gemm);
    EXPECT_EQ(info.adjusted, 0);
    return info.source;
  }

  TuningCacheFile cache_;
  int warnings_ = 0;
};

TEST_F(GemmTuning, MeasuresOnlyWhenAskedAndChangesNoBit) {
  GemmCase x({150, 130, st::kSanitized ? 260 : 1300});
  const HeldContext mine = context();
  EXPECT_EQ(source_of(x, mine, 0), ST_GEMM_SOURCE_TABLE);
  EXPECT_FALSE(fs::exists(cache_.path)) << "no one asked for it";
  const auto bits = x.c.bytes();
  const int32_t source = source_of(x, mine, 60000);  // a limit: it ends once it has measured
  EXPECT_TRUE(source == ST_GEMM_SOURCE_TUNED || source == ST_GEMM_SOURCE_TABLE) << source;
  EXPECT_EQ(x.c.bytes(), bits);
  EXPECT_TRUE(fs::exists(cache_.path));
  const HeldContext next = context();
  EXPECT_EQ(source_of(x, next, 1), source == ST_GEMM_SOURCE_TUNED ? ST_GEMM_SOURCE_CACHE : ST_GEMM_SOURCE_TABLE);
  EXPECT_EQ(x.c.bytes(), bits);
  EXPECT_EQ(source_of(x, next, 0), ST_GEMM_SOURCE_TABLE) << "with 0 it is not looked up either";
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
    fs::remove_all(cache_.path);
  };
  fs::create_directories(cache_.path);
  expect_one_warning("a folder");
  std::ofstream(cache_.path) << "scaletrain-tuning 2\nhalf a li";
  expect_one_warning("truncated");
  std::ofstream(cache_.path) << "scaletrain-tuning 7\nend 0 0\n";
  expect_one_warning("another version");
  std::ofstream(cache_.path) << "#!/bin/sh\n";
  expect_one_warning("another file");
}

}  // namespace

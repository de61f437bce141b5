// Other libraries through the C ABI: none is opened unless a plan asks for it, the plan says which one multiplies, and the tuning cache
// applies only to the libraries of this process. The library is the tests' own, so the machine needs none.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gemm_case.h"
#include "sanitized.h"
#include "tuning_cache_file.h"

namespace {

using namespace st::test;
namespace fs = std::filesystem;

constexpr const char *kFile = ST_LIBRARIES "/libable_blas.so", *kIdentity = "openblas-0.0.1-Three_Loops_1";

std::string contents(const fs::path& path) {
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

bool is_loaded() { return contents("/proc/self/maps").find("libable_blas.so") != std::string::npos; }

/// CRC-32C, bit by bit.
uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
  }
  return ~crc;
}

class GemmLibraries : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("SCALETRAIN_OPENBLAS", kFile, 1);
    for (const char* other : {"SCALETRAIN_MKL", "SCALETRAIN_ONEDNN_OPENMP"}) setenv(other, "/nowhere/at-all.so", 1);
  }

  HeldContext context() {
    auto options = filled(st_context_options_init);
    options.log_user = this;
    options.log = [](void* user, int32_t level, const char* area, const char* line) {
      static_cast<GemmLibraries*>(user)->told_ += std::to_string(level) + " " + area + ": " + line + "\n";
    };
    return cache_.context(options);
  }

  struct Done {
    std::string library, bits;
    int32_t source;
  };
  static Done product_of(GemmCase& x, st_context* context, int32_t library, int32_t threads = 1) {
    auto schedule = filled(st_gemm_schedule_init);
    schedule.library = library;
    schedule.threads = threads;
    const HeldGemm gemm = x.plan(context, &schedule);
    EXPECT_TRUE(works(x.run(gemm, 1, 0)));
    const auto info = filled(st_gemm_info_init, st_gemm_plan_info, gemm);
    return {info.library, x.c.bytes(), info.source};
  }

  /// Rewrites the cache so that this library won the measurements.
  void write_winner(const std::string& winner) const {
    std::stringstream file(contents(cache_.path));
    std::string first, body, end;
    std::getline(file, first);
    int count = 0;
    for (std::string line; std::getline(file, line); ++count) {
      if (line.starts_with("end ")) break;
      body += line.substr(0, line.rfind(' ') + 1) + winner + "\n";
    }
    std::ofstream(cache_.path) << first << "\n" << body << "end " << count << " " << std::hex << crc_of(body) << "\n";
  }

  TuningCacheFile cache_;
  std::string told_;
};

TEST_F(GemmLibraries, AreNotEvenOpenedUnlessAskedFor) {
  GemmCase x({50, 60, 70});
  const HeldContext mine = context();
  EXPECT_EQ(product_of(x, mine, ST_GEMM_LIBRARY_OWN).library, "own");
  EXPECT_FALSE(is_loaded());
  EXPECT_FALSE(fs::exists(cache_.path));
  EXPECT_EQ(told_, "");
  product_of(x, mine, ST_GEMM_LIBRARY_AUTO);
  EXPECT_TRUE(is_loaded());
}

TEST_F(GemmLibraries, WinByTheCacheOfTheirOwnVersionAndNameThemselves) {
  const int64_t k = st::kSanitized ? 200 : 700;  // small: on a busy machine under a sanitizer, a slow product is left to the table
  GemmCase x({140, 160, k});
  const std::string own = product_of(x, context(), ST_GEMM_LIBRARY_OWN).bits;
  const Done measured = product_of(x, context(), ST_GEMM_LIBRARY_AUTO);
  EXPECT_TRUE(measured.library == "own" || measured.library == kIdentity) << measured.library;
  for (const int32_t threads : {2, 3}) product_of(x, context(), ST_GEMM_LIBRARY_AUTO, threads);  // each number has its own entry
  write_winner(kIdentity);
  const Done one = product_of(x, context(), ST_GEMM_LIBRARY_AUTO);
  EXPECT_EQ(one.library, kIdentity);
  EXPECT_EQ(one.source, ST_GEMM_SOURCE_CACHE);
  EXPECT_NE(one.bits, own) << "three loops add in another order";
  for (int64_t j = 0; j < 160; ++j) {
    const auto [sum, size] = x.exact(0, 7, j, 1, 0, x.c);
    EXPECT_NEAR(x.c.at(0, 7, j), sum, 0x1p-24 * static_cast<double>(k + 3) * size);
  }
  for (const int32_t threads : {2, 3}) {
    const Done other = product_of(x, context(), ST_GEMM_LIBRARY_AUTO, threads);
    EXPECT_EQ(other.library, kIdentity);
    EXPECT_EQ(other.bits, one.bits) << threads;
  }
  EXPECT_EQ(product_of(x, context(), ST_GEMM_LIBRARY_OWN).bits, own) << "no one asked for it";

  write_winner("openblas-0.0.2-Three_Loops_1");
  EXPECT_NE(product_of(x, context(), ST_GEMM_LIBRARY_AUTO).library, "openblas-0.0.2-Three_Loops_1") << "that version is not present";
}

}  // namespace

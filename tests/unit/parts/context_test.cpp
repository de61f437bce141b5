// A context's share of a machine that other ranks use too.
#include "parts/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/os/machine.h"
#include "thrown_error.h"

namespace st {
namespace {

class ContextOfARank : public testing::Test {
 protected:
  static constexpr std::array<const char*, 6> kNames = {"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                                        "MASTER_ADDR", "MASTER_PORT"};
  void SetUp() override {
    const std::array<const char*, 6> values = {"1", "4", "1", "4", "127.0.0.1", "29500"};
    for (size_t i = 0; i < kNames.size(); ++i) setenv(kNames[i], values[i], 1);
    unsetenv("SCALETRAIN_THREADS");
  }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
  }
};

TEST_F(ContextOfARank, TakesItsPartOfTheCoresAndNoMoreThanItsPartOfTheMemory) {
  const Context context(ContextOptions{.log = {}, .parallel = {}, .memory = {}});
  EXPECT_EQ(context.threads(), std::max(1, os::available_cores() / 4));
  const int64_t part = os::total_memory() / 4;
  EXPECT_LE(context.available_memory(), part);
  EXPECT_GT(context.available_memory(), 0);
  EXPECT_THROW(context.require_memory("a test", part + 1), Error);
  EXPECT_NO_THROW(context.require_memory("a test", part / 64));
}

TEST(Context, TakesItsThreadsFromTheEnvironmentWhereNoneAreAsked) {
  const auto threads_of = [](const char* variable, int asked) {
    setenv("SCALETRAIN_THREADS", variable, 1);
    return Context(ContextOptions{.threads = asked, .log = {}, .parallel = {}, .memory = {}}).threads();
  };
  EXPECT_EQ(threads_of("3", 0), 3);
  EXPECT_EQ(threads_of("3", 2), 2);
  EXPECT_EQ(threads_of("", 0), os::available_cores());
  for (const char* wrong : {"0", "-1", "4097", "2 ", "two", "99999999999"})
    EXPECT_TRUE(is_error(error_of([&] { threads_of(wrong, 0); }), Code::invalid_argument, {"SCALETRAIN_THREADS", wrong, "1 to 4096"}));
  unsetenv("SCALETRAIN_THREADS");
}

TEST(Context, DividesWhatIsThereAmongThoseThatLookTogether) {
  const Context context(ContextOptions{.memory_limit = int64_t{1} << 60, .log = {}, .parallel = {}, .memory = {}});
  const double all = static_cast<double>(context.spare_memory()), part = static_cast<double>(context.spare_memory(4));
  EXPECT_NEAR(part * 4 / all, 1, 0.2) << "others use the machine";
  EXPECT_THROW(context.require_memory("a test", 1001, 1000), Error);
  EXPECT_NO_THROW(context.require_memory("a test", 1000, 1000));
}

}  // namespace
}  // namespace st

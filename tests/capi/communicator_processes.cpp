// Ranks over shared memory, and ranks found through a launcher's environment. Real processes are in tests/faults; here each rank is a
// thread with its own context, over the same transport.
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "thread_ranks.h"

namespace {

using namespace st::test;

/// A job name of this test alone, whoever else runs it.
std::string job_of_our_own() {
  return std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" + std::to_string(getpid());
}

struct OwnRank {
  OwnRank() { EXPECT_TRUE(works(st_context_create(nullptr, context.out()))); }
  st_status join(const std::string& job, int32_t rank, int32_t size, int64_t start_milliseconds = 20000) {
    auto options = filled(st_communicator_options_init);
    options.start_milliseconds = start_milliseconds;
    return st_communicator_processes(context, job.c_str(), rank, size, &options, communicator.out());
  }
  HeldContext context;
  HeldCommunicator communicator;
};

TEST(ProcessRanks, MeetAndExchange) {
  const std::string job = job_of_our_own();
  for (int round = 0; round < 3; ++round) {  // a job's name may be reused
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        OwnRank own;
        std::vector<float> values(100000, static_cast<float>(rank));
        ASSERT_TRUE(works(own.join(job, rank, 3)));
        EXPECT_TRUE(works(st_communicator_all_reduce(own.communicator, "g", Floats(ST_F32, values), ST_REDUCE_SUM, nullptr)));
        EXPECT_EQ(values, std::vector<float>(100000, 3));
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(ProcessRanks, CountTheMemoryInWhichTheyMeet) {
  const std::string job = job_of_our_own();
  OwnRank a, b;
  const auto counted = [&] { return memory_of(a.context).allocated_bytes; };
  const int64_t before = counted();
  std::thread joining([&] { EXPECT_TRUE(works(b.join(job, 1, 2))); });
  EXPECT_TRUE(works(a.join(job, 0, 2)));
  joining.join();
  EXPECT_EQ(counted(), before + (256 << 10));  // a ring: each rank owns half of both
  a.communicator.reset();
  EXPECT_EQ(counted(), before);
}

TEST(ProcessRanks, ACancelEndsTheWaitForThem) {
  OwnRank own;
  std::atomic<bool> has_ended{false};
  std::thread waiting([&] {
    EXPECT_TRUE(fails(ST_CANCELLED, own.join(job_of_our_own(), 0, 2)));
    has_ended = true;
  });
  cancel_until(has_ended, own.context);
  waiting.join();
}

/// Sets the variables that launchers set; restores the previous ones at the end.
class LauncherVariables {
 public:
  explicit LauncherVariables(const std::map<std::string, std::string>& wanted) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS"}) {
      const char* value = std::getenv(name);
      before_[name] = value == nullptr ? "" : value;
      unsetenv(name);
    }
    for (const auto& [name, value] : wanted) setenv(name.c_str(), value.c_str(), 1);
  }
  ~LauncherVariables() {
    for (const auto& [name, value] : before_) value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
  LauncherVariables(const LauncherVariables&) = delete;
  LauncherVariables& operator=(const LauncherVariables&) = delete;

 private:
  std::map<std::string, std::string> before_;
};

class LaunchedRank : public testing::Test {
 protected:
  st_status join(const std::map<std::string, std::string>& variables) {
    const LauncherVariables set(variables);
    return st_communicator_env(own.context, &options, own.communicator.out());
  }
  st_communicator_options options = filled(st_communicator_options_init);
  OwnRank own;
};

TEST_F(LaunchedRank, IsTheLaunchersOne) {
  ASSERT_TRUE(works(join({{"RANK", "0"},
                          {"WORLD_SIZE", "1"},
                          {"LOCAL_RANK", "0"},
                          {"LOCAL_WORLD_SIZE", "1"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", std::to_string(getpid() % 60000 + 1)}})));
  EXPECT_EQ(asked<int32_t>(st_communicator_size, own.communicator), 1);
  EXPECT_TRUE(works(st_communicator_barrier(own.communicator, nullptr, nullptr)));
}

TEST_F(LaunchedRank, IsNoneWithoutALauncher) { EXPECT_TRUE(fails(ST_NOT_FOUND, join({}), {"RANK", "scaletrain launch"})); }

TEST_F(LaunchedRank, IsOneAloneWithoutALauncherWhereThatIsAllowed) {
  options.allow_single = 1;
  ASSERT_TRUE(works(join({})));
  EXPECT_EQ(asked<int32_t>(st_communicator_size, own.communicator), 1);
  EXPECT_TRUE(works(st_communicator_barrier(own.communicator, nullptr, nullptr)));
}

TEST_F(LaunchedRank, OfSeveralHostsNeedsAPlugin) {
  const std::map<std::string, std::string> one_of_several = {
      {"RANK", "0"},           {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"},
      {"MASTER_PORT", "29500"}};
  setenv("SCALETRAIN_PLUGINS", "/nowhere", 1);
  EXPECT_TRUE(fails(ST_UNAVAILABLE, join(one_of_several), {"transport gloo", "/nowhere/libscaletrain_gloo.so"}));
  setenv("SCALETRAIN_TRANSPORT", "local", 1);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(one_of_several), {"4 of 8 ranks are on this host", "gloo"}));
  unsetenv("SCALETRAIN_TRANSPORT");
  unsetenv("SCALETRAIN_PLUGINS");
}

}  // namespace

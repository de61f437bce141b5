// Ranks that are processes with a simulated device each, connected by the NCCL of fake_nccl.cpp: a trainer's state is that of ranks that
// are threads, whatever they split; a rank that ends is named. Devices are opened in the children alone, which would else share their
// memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "faults/forked_ranks.h"
#include "training.h"
#include "unit/comm/shared_job.h"

namespace st {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

Training training_on(const std::string& device, const Keys& keys) {
  Training made{.device = device, .recipe = {.batch = 2}, .ignored = true};
  made.recipe.set("warmup", "3");
  for (const auto& [key, value] : keys) made.recipe.set(key, value);
  return made;
}

constexpr int kSteps = 3;

/// The losses of some steps and the state after them, as a line.
std::string trained(Trainer& trainer) {
  std::string line;
  for (const double loss : losses_of(trainer, kSteps)) line += text(loss, " ");
  return line + trainer.state_digest();
}

/// The first log line about devices.
struct Heard {
  std::string line;
  static void hear(void* of, int32_t, const char*, const char* message) {
    if (std::string_view(message).starts_with("devices ")) static_cast<Heard*>(of)->line = message;
  }
};

std::unique_ptr<Trainer> trainer_in(Communicator& group, const Training& training, Heard& heard) {
  const auto context = std::make_shared<Context>(
      ContextOptions{.device = training.device, .threads = 1, .log = {.write = Heard::hear, .user = &heard}, .parallel = {}, .memory = {}});
  Recipe recipe = training.recipe;
  recipe.device = training.device;
  return std::make_unique<Trainer>(std::make_shared<Model>(context, build_gpt(training.options), 1), recipe, training.data(), PlanOptions{},
                                   &group);
}

/// One process whose ranks are threads that share a device.
std::string trained_by_threads(const Keys& keys, int ranks) {
  ForkedRanks alone(1, [&](int, const ForkedRanks::Say& say) {
    Keys all = keys;
    all.emplace_back("ranks", std::to_string(ranks));
    const auto trainer = training_on("cuda-simulated", all).trainer();
    say(trained(*trainer));
  });
  return alone.next_line(0);
}

struct Lines {
  std::string trained, devices;
};

/// By rank.
std::vector<Lines> trained_by_processes(const Keys& keys, int ranks, const std::function<std::string(int rank)>& device_of) {
  const std::string job = own_job("nccl");
  ForkedRanks processes(ranks, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, ranks);
    Heard heard;
    const auto trainer = trainer_in(*group, training_on(device_of(rank), keys), heard);
    say(trained(*trainer));
    say(heard.line);
  });
  std::vector<Lines> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Lines& lines = all.emplace_back();
    lines.trained = processes.next_line(rank);
    lines.devices = processes.next_line(rank);
  }
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(processes.next_line(rank), "ended");  // and not killed: they remove their files
  return all;
}

std::string own_device(int rank) { return text("cuda-simulated:", rank); }

struct Split {
  int ranks;
  Keys keys;
};

TEST(NcclRanks, HaveTheStateOfThreadsHoweverTheStepIsSplit) {
  const Keys six = {{"micro_batches", "6"}};
  for (const Split& split :
       {Split{2, {}}, Split{3, {{"zero", "2"}, {"overlap", "\"on\""}}}, Split{2, {{"zero", "3"}, {"precision", "\"bf16\""}}},
        Split{4, {{"zero", "1"}}}, Split{2, {{"stages", "2"}}}, Split{4, {{"stages", "2"}, {"zero", "1"}}}}) {
    Keys keys = six;
    keys.insert(keys.end(), split.keys.begin(), split.keys.end());
    const std::string expected = trained_by_threads(keys, split.ranks);
    ASSERT_EQ(expected.find("threw"), std::string::npos) << expected;
    for (const Lines& lines : trained_by_processes(keys, split.ranks, own_device)) {
      EXPECT_EQ(lines.trained, expected) << split.ranks << " ranks, " << keys.back().first << ' ' << keys.back().second;
      EXPECT_TRUE(lines.devices.starts_with("devices exchange over nccl 2.")) << lines.devices;
    }
  }
}

TEST(NcclRanks, GoThroughTheHostWhereTheyHaveOneDeviceOrAreAsked) {
  const std::string expected = trained_by_threads({{"micro_batches", "4"}}, 2);
  const auto first = [](int) { return std::string("cuda-simulated:0"); };
  for (const Lines& lines : trained_by_processes({{"micro_batches", "4"}}, 2, first)) {
    EXPECT_EQ(lines.trained, expected);
    EXPECT_TRUE(lines.devices.starts_with("devices of ranks are not connected: rank 0 (")) << lines.devices;
    EXPECT_NE(lines.devices.find("have one device (0000:01:00.0 of "), std::string::npos) << lines.devices;
    EXPECT_NE(lines.devices.find("ranks of one device are threads of one process (recipe ranks)"), std::string::npos) << lines.devices;
  }
  setenv("SCALETRAIN_DEVICE_EXCHANGE", "host", 1);
  for (const Lines& lines : trained_by_processes({{"micro_batches", "4"}}, 2, own_device)) {
    EXPECT_EQ(lines.trained, expected);
    EXPECT_EQ(lines.devices, "devices of ranks are not connected: SCALETRAIN_DEVICE_EXCHANGE is host");
  }
  setenv("SCALETRAIN_DEVICE_EXCHANGE", "device", 1);
  for (const Lines& lines : trained_by_processes({{"micro_batches", "4"}}, 2, first))
    EXPECT_TRUE(lines.trained.starts_with("threw SCALETRAIN_DEVICE_EXCHANGE is device, but rank 0 (")) << lines.trained;
  setenv("SCALETRAIN_DEVICE_EXCHANGE", "both", 1);
  for (const Lines& lines : trained_by_processes({{"micro_batches", "4"}}, 2, own_device))
    EXPECT_NE(lines.trained.find("must be auto, host or device, got \"both\""), std::string::npos) << lines.trained;
  unsetenv("SCALETRAIN_DEVICE_EXCHANGE");
}

/// Folders of communicators whose ranks did not all end them; rank 0 has named them.
void remove_left_over(const ForkedRanks& processes) {
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with(text("st_fake_nccl_", processes.process_of(0), "_")))
      std::filesystem::remove_all(entry.path());
}

TEST(NcclRanks, NameARankThatEndsInAnExchange) {
  setenv("ST_FAKE_NCCL", "exit:1", 1);
  constexpr int kRanks = 3;
  const std::string job = own_job("nccl_exit");
  ForkedRanks processes(kRanks, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, kRanks);
    Heard heard;
    say_outcome(say, [&] { trainer_in(*group, training_on(own_device(rank), {{"micro_batches", "6"}}), heard)->step(); });
  });
  for (const int rank : {0, 2}) {
    const Outcome outcome = outcome_from(processes.next_line(rank));
    EXPECT_EQ(outcome.code, Code::rank_failed) << outcome.message;
    EXPECT_EQ(outcome.rank, 1) << outcome.message;
    EXPECT_NE(outcome.message.find("its process has ended"), std::string::npos) << outcome.message;
  }
  remove_left_over(processes);
  unsetenv("ST_FAKE_NCCL");
}

TEST(NcclRanks, NameARankThatStopsInAnExchange) {
  setenv("ST_FAKE_NCCL", "stop:1", 1);
  constexpr int kRanks = 3;
  const std::string job = own_job("nccl_stop");
  ForkedRanks processes(kRanks, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, kRanks, {.deadline = 2});
    Heard heard;
    say_outcome(say, [&] { trainer_in(*group, training_on(own_device(rank), {{"micro_batches", "6"}}), heard)->step(); });
  });
  for (const int rank : {0, 2}) {
    const Outcome outcome = outcome_from(processes.next_line(rank));
    EXPECT_EQ(outcome.code, Code::timeout) << outcome.message;
    EXPECT_EQ(outcome.rank, 1) << outcome.message;
    EXPECT_NE(outcome.message.find("it has given no sign of life for "), std::string::npos) << outcome.message;
  }
  remove_left_over(processes);
  unsetenv("ST_FAKE_NCCL");
}

TEST(NcclRanks, NameARankWhoseExchangeFails) {
  setenv("ST_FAKE_NCCL", "async:1", 1);
  constexpr int kRanks = 3;
  const std::string job = own_job("nccl_async");
  ForkedRanks processes(kRanks, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, kRanks);
    Heard heard;
    const auto trainer = trainer_in(*group, training_on(own_device(rank), {{"micro_batches", "6"}}), heard);
    const std::string before = trainer->state_digest();
    say_outcome(say, [&] { trainer->step(); });
    say(trainer->state_digest() == before ? "the same state" : "another state");
  });
  for (const int rank : {0, 1, 2}) {
    const Outcome outcome = outcome_from(processes.next_line(rank));
    EXPECT_EQ(outcome.code, rank == 1 ? Code::unavailable : Code::rank_failed) << outcome.message;
    EXPECT_EQ(outcome.rank, rank == 1 ? -1 : 1) << outcome.message;
    EXPECT_EQ(processes.next_line(rank), "the same state");
  }
  for (const int rank : {0, 1, 2}) EXPECT_EQ(processes.next_line(rank), "ended");
  unsetenv("ST_FAKE_NCCL");
}

}  // namespace
}  // namespace st

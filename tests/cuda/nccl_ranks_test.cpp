// Ranks that are processes with a simulated device each, connected by the NCCL of fake_nccl.cpp: a trainer's state is that of ranks that
// are threads, whatever they split; a rank that ends is named. Devices are opened in the children alone, which would else share their
// memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "backend/device_registry.h"
#include "base/os/files.h"
#include "faults/forked_ranks.h"
#include "plan/exchange_memory.h"
#include "plan/input_copies.h"
#include "simulated_host.h"
#include "training.h"
#include "unit/comm/shared_job.h"

namespace st {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

Training training_on(const std::string& device, const Keys& keys) {
  Training made{.device = device, .recipe = {.batch = 2}, .ignored = true};
  made.recipe.set("warmup", "3");
  for (const auto& [key, value] : keys) {
    made.recipe.set(key, value);
    if (key == "tensor") made.options.heads = 2;  // which its ranks share
  }
  return made;
}

constexpr int kSteps = 2;

/// Says the losses of some steps and the state after them, as a line, and the bytes that each rank of this process has sent in the steps
/// after the first, before which processes compare their weights.
void train(Trainer& trainer, const ForkedRanks::Say& say) {
  std::string line = text(trainer.step().loss, " "), sent;
  const std::vector<int64_t> before = trainer.sent_bytes();
  for (const double loss : losses_of(trainer, kSteps - 1)) line += text(loss, " ");
  const std::vector<int64_t> after = trainer.sent_bytes();
  for (size_t rank = 0; rank < after.size(); ++rank) sent += text(after[rank] - before[rank], " ");
  say(line + trainer.state_digest());
  say(sent);
}

/// The log line about the exchange of devices, with the level if it is a warning.
struct Heard {
  std::string line;
  static void hear(void* of, int32_t level, const char* area, const char* message) {
    if (std::string_view(area) != "exchange") return;
    static_cast<Heard*>(of)->line = text(level == static_cast<int32_t>(LogLevel::warning) ? "warning " : "", message);
  }
};

/// memory_limit: the context's; 0: none.
std::unique_ptr<Trainer> trainer_in(Communicator& group, const Training& training, Heard& heard, int64_t memory_limit = 0) {
  const auto context = std::make_shared<Context>(ContextOptions{.device = training.device,
                                                                .threads = 1,
                                                                .memory_limit = memory_limit,
                                                                .log = {.write = Heard::hear, .user = &heard},
                                                                .parallel = {},
                                                                .memory = {}});
  Recipe recipe = training.recipe;
  recipe.device = training.device;
  return std::make_unique<Trainer>(std::make_shared<Model>(context, build_gpt(training.options), 1), recipe, training.data(), PlanOptions{},
                                   &group);
}

struct Lines {
  std::string trained, sent, devices;
  int64_t terms = 0;  // bytes planned for what comes from other ranks
};

/// Says the bytes planned for terms of sums, "unplanned" if more or less was allocated for them and for what is gathered.
void say_terms(const Trainer& trainer, const ForkedRanks::Say& say) {
  const int64_t terms = exchange_memory(trainer.plan()), planned = terms + trainer.plan().memory.of(Arena::buckets);
  const CountedBytes used = trainer.model().context().memory()->account().uses().of[static_cast<size_t>(MemoryRole::buckets)];
  const bool is_planned = used.now == planned && used.peak == planned;
  say(is_planned ? text(terms) : text("unplanned: ", planned, " bytes, allocated ", used.now, ", at most ", used.peak));
}

/// As say_terms() says it.
int64_t terms_of(const std::string& line) {
  const int64_t terms = whole_number(line, -1);
  EXPECT_GE(terms, 0) << line;
  return terms;
}

/// One process whose ranks are threads that share a device.
Lines trained_by_threads(const Keys& keys, int ranks) {
  ForkedRanks alone(1, [&](int, const ForkedRanks::Say& say) {
    Keys all = keys;
    all.emplace_back("ranks", std::to_string(ranks));
    const auto trainer = training_on("cuda-simulated", all).trainer();
    train(*trainer, say);
  });
  Lines lines;
  lines.trained = alone.next_line(0);
  lines.sent = alone.next_line(0);
  return lines;
}

/// By rank.
std::vector<Lines> trained_by_processes(const Keys& keys, int ranks, const std::function<std::string(int rank)>& device_of) {
  const std::string job = own_job("nccl");
  ForkedRanks processes(ranks, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, ranks, {.deadline = 30});
    Heard heard;
    const auto trainer = trainer_in(*group, training_on(device_of(rank), keys), heard);
    const int64_t before = simulated::host_runtime().cold_launches();
    train(*trainer, say);
    const int64_t cold = simulated::host_runtime().cold_launches() - before;
    require(cold == 0, Code::internal, cold, " kernels were loaded in steps, which would wait for an exchange with a rank that has ended");
    say(heard.line);
    if (heard.line.starts_with("devices exchange over")) say_terms(*trainer, say);
  });
  std::vector<Lines> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Lines& lines = all.emplace_back();
    lines.trained = processes.next_line(rank);
    lines.sent = processes.next_line(rank);
    lines.devices = processes.next_line(rank);
    if (lines.devices.starts_with("devices exchange over")) lines.terms = terms_of(processes.next_line(rank));
  }
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(processes.next_line(rank), "ended");  // and not killed: they remove their files
  return all;
}

std::string own_device(int rank) { return text("cuda-simulated:", rank); }

struct Split {
  int ranks;
  Keys keys;
};

// Streams of a process have one order. The cases of two tests are divided among the three: tests/cuda/CMakeLists.txt runs Late/* and
// Random/* in processes of their own.

void PrintTo(const Split& split, std::ostream* out) {
  *out << split.ranks << " ranks";
  for (const auto& [key, value] : split.keys) *out << ", " << key << ' ' << value;
}

/// The fake refuses two operations of a device at once: posted gradients with tensor shards, or messages with either.
class NcclSplit : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Eager, NcclSplit,
                         testing::Values(Split{2, {{"zero", "3"}, {"precision", "\"bf16\""}}},
                                         Split{4, {{"stages", "2"}, {"tensor", "2"}}}));
INSTANTIATE_TEST_SUITE_P(Late, NcclSplit,
                         testing::Values(Split{3, {{"zero", "2"}, {"overlap", "\"on\""}}},
                                         Split{2, {{"stages", "2"}, {"offload", "\"gradients\""}}}));
INSTANTIATE_TEST_SUITE_P(Random, NcclSplit,
                         testing::Values(Split{2, {}}, Split{4, {{"stages", "2"}, {"zero", "1"}, {"overlap", "\"on\""}}}));

TEST_P(NcclSplit, HasTheStateOfThreads) {
  const Split& split = GetParam();
  Keys keys = {{"micro_batches", "4"}};
  keys.insert(keys.end(), split.keys.begin(), split.keys.end());
  const Lines expected = trained_by_threads(keys, split.ranks);
  ASSERT_EQ(expected.trained.find("threw"), std::string::npos) << expected.trained;
  std::string sent;
  for (const Lines& lines : trained_by_processes(keys, split.ranks, own_device)) {
    EXPECT_EQ(lines.trained, expected.trained);
    EXPECT_TRUE(lines.devices.starts_with("devices exchange over nccl 2.")) << lines.devices;
    EXPECT_EQ(lines.terms > 0, split.ranks != 2 || split.keys.empty() || split.keys[0].first != "stages");
    sent += lines.sent;
  }
  EXPECT_EQ(sent, expected.sent);
}

/// Ragged rounds, uneven shards, sums onto earlier ones, 16-bit terms, and weights gathered. A + for each of NCCL's own collectives.
class NcclFast : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Eager, NcclFast, testing::Values(Split{4, {{"micro_batches", "2"}, {"zero", "1"}, {"tensor", "2"}}}));
INSTANTIATE_TEST_SUITE_P(Late, NcclFast,
                         testing::Values(Split{3, {{"micro_batches", "7"}, {"zero", "2"}, {"overlap", "\"on\""}, {"bucket", "3000"}}}));
INSTANTIATE_TEST_SUITE_P(Random, NcclFast,
                         testing::Values(Split{
                             3, {{"micro_batches", "6"}, {"zero", "3"}, {"precision", "\"bf16\""}, {"gradient_dtype", "\"bf16\""}}}));

TEST_P(NcclFast, CollectivesTrainAlikeOnAllRanksWithinRounding) {
  const std::string name = text("/dev/shm/st_fast_", getpid(), "_");
  setenv("ST_FAKE_NCCL_ORDER", name.c_str(), 1);
  const Split& split = GetParam();
  const Lines expected = trained_by_threads(split.keys, split.ranks);
  Keys keys = split.keys;
  keys.emplace_back("collectives", "\"fast\"");
  const std::vector<Lines> all = trained_by_processes(keys, split.ranks, own_device);
  ASSERT_EQ(all[0].trained.find("threw"), std::string::npos) << all[0].trained;
  std::istringstream fast(all[0].trained), ordered(expected.trained);
  // An addition rounds by half an ulp, 6e-8 of a sum in fp32 and 2e-3 in bf16; a loss after a few small steps shows a part of it.
  for (int step = 0; step < kSteps; ++step) {
    double own = 0, other = 0;
    fast >> own;
    ordered >> other;
    EXPECT_NEAR(own, other, (split.keys.back().first == "gradient_dtype" ? 1e-3 : 1e-6) * other);
  }
  std::string sent;
  for (const Lines& lines : all) {
    EXPECT_EQ(lines.trained, all[0].trained);
    sent += lines.sent;
  }
  EXPECT_EQ(sent, expected.sent);  // a ring's; small sums of values too, of two ranks
  for (int rank = 0; rank < split.ranks; ++rank) {
    const std::string file = name + std::to_string(rank);
    EXPECT_NE(os::read_file(file, 1 << 20).find('+'), std::string::npos);
    std::filesystem::remove(file);
  }
  unsetenv("ST_FAKE_NCCL_ORDER");
}

/// Bytes that a step needs in addition to the parameters: none for copies of terms, which leave before their sums are made.
int64_t need_of(const Plan& plan) { return plan.memory.beside_parameters() + input_copies(plan).bytes + exchange_memory(plan); }

void expect_refused_for(const std::string& need, const Outcome& refused) {
  EXPECT_EQ(refused.code, Code::out_of_memory) << refused.message;
  for (const std::string& part : {text("(", need, " bytes)"), std::string("memory_limit")})
    EXPECT_NE(refused.message.find(part), std::string::npos) << refused.message;
}

/// Stages that share a device would copy the terms of the loss (staged_memory).
TEST(NcclRanks, NeedMemoryForTheTermsOfSumsWithinTheLimitOfTheContext) {
  constexpr int kRanks = 2;
  for (const Keys& keys : {Keys{{"micro_batches", "4"}}, Keys{{"micro_batches", "2"}, {"stages", "2"}}}) {
    const std::string job = own_job("nccl_limit");
    ForkedRanks processes(kRanks, [&](int rank, const ForkedRanks::Say& say) {
      const auto group = join(job, rank, kRanks, {.deadline = 30});
      Heard heard;
      const Training training = training_on(own_device(rank), keys);
      int64_t parameters = 0, need = 0;
      {
        const auto trainer = trainer_in(*group, training, heard);
        const Plan& plan = trainer->plan();
        parameters = trainer->model().piece_storage().bytes();
        need = need_of(plan);
        say_terms(*trainer, say);
        say(std::to_string(staged_memory(plan)));
        say(std::to_string(need));
      }
      say_outcome(say, [&] { trainer_in(*group, training, heard, parameters + need)->step(); });
      say_outcome(say, [&] { trainer_in(*group, training, heard, parameters + need - 1)->step(); });
    });
    int64_t terms = 0, staged = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      terms += terms_of(processes.next_line(rank));
      staged += whole_number(processes.next_line(rank), 0);
      const std::string need = processes.next_line(rank);
      const Outcome fits = outcome_from(processes.next_line(rank)), refused = outcome_from(processes.next_line(rank));
      EXPECT_EQ(fits.code, Code::ok) << fits.message;
      expect_refused_for(need, refused);
    }
    const bool has_stages = keys.back().first == "stages";
    EXPECT_EQ(terms > 0, !has_stages);
    EXPECT_EQ(staged > 0, has_stages);
  }
}

TEST(NcclRanks, FastCollectivesAreRefusedWithoutTheNetwork) {
  const Keys fast = {{"micro_batches", "4"}, {"collectives", "\"fast\""}};
  EXPECT_TRUE(
      trained_by_threads(fast, 2).trained.starts_with("threw recipe: collectives fast needs ranks that are processes with a device each, "
                                                      "which NCCL connects, got ranks that are threads on "
                                                      "one device cuda-simulated; "));
  setenv("SCALETRAIN_DEVICE_EXCHANGE", "host", 1);
  for (const Lines& lines : trained_by_processes(fast, 2, own_device))
    EXPECT_TRUE(
        lines.trained.starts_with("threw trainer: recipe collectives is fast, but devices of ranks are not connected and exchange "
                                  "through the host: SCALETRAIN_DEVICE_EXCHANGE is host; "))
        << lines.trained;
  unsetenv("SCALETRAIN_DEVICE_EXCHANGE");
}

TEST(NcclRanks, ThatDisagreeOnFastCollectivesAreRefusedWithBothValues) {
  const std::string job = own_job("nccl_disagree");
  ForkedRanks processes(2, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, 2, {.deadline = 30});
    Heard heard;
    const Keys keys = {{"micro_batches", "4"}, {"collectives", rank == 0 ? "\"ordered\"" : "\"fast\""}};
    say_outcome(say, [&] { trainer_in(*group, training_on(own_device(rank), keys), heard)->step(); });
  });
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = outcome_from(processes.next_line(rank));
    EXPECT_EQ(outcome.code, Code::rank_mismatch) << outcome.message;
    for (const char* part : {"collectives", "ordered", "fast"}) EXPECT_NE(outcome.message.find(part), std::string::npos) << outcome.message;
  }
}

/// Each rank has its own file of measured products. Files with the same choices are equal, whatever their paths and times.
TEST(NcclRanks, WithOtherTablesOfProductsAreRefusedWithBothHashes) {
  const auto file = [process = getpid()](int rank) { return text(testing::TempDir(), "products_of_", process, "_", rank); };
  const auto write = [&](int rank, std::string_view tile) {
    std::ofstream(file(rank)) << R"({"products":1,"device":"simulated","cublasLt":130100})"
                              << "\n"
                              << R"({"m":8,"n":8,"k":16,"a":"n","b":"n","in":"bf16","out":"bf16","bias":false,"adds":false,"by":"own",)"
                              << R"("tile":")" << tile << R"(","us":)" << rank + 1 << R"(,"other_us":0})"
                              << "\n";
  };
  setenv("SCALETRAIN_SIMULATED_CUBLASLT", "1", 1);  // so that the class names the table
  for (const bool is_equal : {false, true}) {
    write(0, "64x64");
    write(1, is_equal ? "64x64" : "128x64");
    const std::string job = own_job("nccl_tables");
    ForkedRanks processes(2, [&](int rank, const ForkedRanks::Say& say) {
      setenv("SCALETRAIN_CUDA_PRODUCTS", file(rank).c_str(), 1);
      const auto group = join(job, rank, 2, {.deadline = 30});
      Heard heard;
      const std::string own(open_device(own_device(rank), nullptr)->kernel_class());
      say(own.substr(own.find("table=") + 6));
      say_outcome(say, [&] { trainer_in(*group, training_on(own_device(rank), {{"micro_batches", "4"}}), heard); });
    });
    const std::string hashes[] = {processes.next_line(0), processes.next_line(1)};
    EXPECT_EQ(hashes[0].size(), 16U) << hashes[0];
    EXPECT_EQ(hashes[0] == hashes[1], is_equal);
    for (int rank = 0; rank < 2; ++rank) {
      const Outcome outcome = outcome_from(processes.next_line(rank));
      EXPECT_EQ(outcome.code, is_equal ? Code::ok : Code::rank_mismatch) << outcome.message;
      if (is_equal) continue;
      const std::string words = text("has kernels: table ", hashes[1], ", rank 0 has ", hashes[0], "; make them equal on all ranks");
      EXPECT_NE(outcome.message.find(words), std::string::npos) << outcome.message;
    }
  }
  unsetenv("SCALETRAIN_SIMULATED_CUBLASLT");
  for (const int rank : {0, 1}) std::filesystem::remove(file(rank));
}

/// Posted gradients are ready on the first two ranks long before the others' are, which must not let tensor shards overtake them there.
TEST(NcclRanks, ExchangeAlongTwoAxesInOneOrder) {
  const Keys keys = {{"micro_batches", "4"}, {"tensor", "2"}, {"zero", "2"}, {"overlap", "\"on\""}, {"bucket", "500"}};
  constexpr int kRanks = 4;
  const std::string name = text("/dev/shm/st_order_", getpid(), "_");
  setenv("ST_FAKE_NCCL_SLOW", "2", 1);
  setenv("ST_FAKE_NCCL_ORDER", name.c_str(), 1);
  const std::string expected = trained_by_threads(keys, kRanks).trained;
  for (const Lines& lines : trained_by_processes(keys, kRanks, own_device)) EXPECT_EQ(lines.trained, expected);
  unsetenv("ST_FAKE_NCCL_SLOW");
  unsetenv("ST_FAKE_NCCL_ORDER");
  std::vector<std::string> orders;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string file = name + std::to_string(rank);
    orders.push_back(os::read_file(file, 1 << 20));
    std::filesystem::remove(file);
  }
  for (const std::string& order : orders) EXPECT_EQ(order, orders[0]);
  EXPECT_NE(orders[0].find("aba"), std::string::npos) << orders[0];
}

TEST(NcclRanks, GoThroughTheHostWhereTheyHaveOneDeviceOrAreAsked) {
  const std::string expected = trained_by_threads({{"micro_batches", "4"}}, 2).trained;
  const auto first = [](int) { return std::string("cuda-simulated:0"); };
  for (const Lines& lines : trained_by_processes({{"micro_batches", "4"}}, 2, first)) {
    EXPECT_EQ(lines.trained, expected);
    EXPECT_TRUE(lines.devices.starts_with("warning devices of ranks are not connected and exchange through the host: rank 0 ("))
        << lines.devices;
    for (const char* part : {"have one device (0000:01:00.0 of ", "a device of its own: cuda-simulated:$LOCAL_RANK under scaletrain launch",
                             "as threads (recipe ranks)"})
      EXPECT_NE(lines.devices.find(part), std::string::npos) << lines.devices;
  }
  setenv("SCALETRAIN_DEVICE_EXCHANGE", "host", 1);
  for (const Lines& lines : trained_by_processes({{"micro_batches", "4"}}, 2, own_device)) {
    EXPECT_EQ(lines.trained, expected);
    EXPECT_EQ(lines.devices, "devices of ranks are not connected and exchange through the host: SCALETRAIN_DEVICE_EXCHANGE is host");
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

const Split kFailing[] = {{3, {{"ema_decay", "0.9"}}}, {2, {{"micro_batches", "6"}, {"stages", "2"}}}};

TEST(NcclRanks, NameARankThatEndsInAnExchangeOrAMessage) {
  setenv("ST_FAKE_NCCL", "exit:1", 1);
  for (const Split& split : kFailing) {
    const std::string job = own_job("nccl_exit");
    ForkedRanks processes(split.ranks, [&](int rank, const ForkedRanks::Say& say) {
      const auto group = join(job, rank, split.ranks);
      Heard heard;
      say_outcome(say, [&] { trainer_in(*group, training_on(own_device(rank), split.keys), heard)->step(); });
    });
    for (int rank = 0; rank < split.ranks; ++rank) {
      if (rank == 1) continue;
      const Outcome outcome = outcome_from(processes.next_line(rank));
      EXPECT_EQ(outcome.code, Code::rank_failed) << outcome.message;
      EXPECT_EQ(outcome.rank, 1) << outcome.message;
      EXPECT_NE(outcome.message.find("its process has ended"), std::string::npos) << outcome.message;
    }
    remove_left_over(processes);
  }
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

TEST(NcclRanks, NameARankWhoseExchangeOrMessageFails) {
  setenv("ST_FAKE_NCCL", "async:1", 1);
  for (const Split& split : kFailing) {
    const bool is_whole = split.keys.size() == 1;  // no stages: a rank alone can digest all of its state
    const std::string job = own_job("nccl_async");
    ForkedRanks processes(split.ranks, [&](int rank, const ForkedRanks::Say& say) {
      const auto group = join(job, rank, split.ranks);
      Heard heard;
      const auto trainer = trainer_in(*group, training_on(own_device(rank), split.keys), heard);
      const std::string before = trainer->state_digest();
      say_outcome(say, [&] { trainer->step(); });
      if (is_whole) say(trainer->state_digest() == before ? "the same state" : "another state");
    });
    for (int rank = 0; rank < split.ranks; ++rank) {
      const Outcome outcome = outcome_from(processes.next_line(rank));
      EXPECT_EQ(outcome.code, rank == 1 ? Code::unavailable : Code::rank_failed) << outcome.message;
      EXPECT_EQ(outcome.rank, rank == 1 ? -1 : 1) << outcome.message;
      if (is_whole) {
        EXPECT_EQ(processes.next_line(rank), "the same state");
      }
    }
    for (int rank = 0; rank < split.ranks; ++rank) EXPECT_EQ(processes.next_line(rank), "ended");
  }
  unsetenv("ST_FAKE_NCCL");
}

TEST(NcclRanks, NeedMemoryForTheTermsOfSumsOfAHostsLossToo) {
  constexpr int kRanks = 2;
  const std::string job = own_job("nccl_host_loss");
  ForkedRanks processes(kRanks, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, kRanks, {.deadline = 30});
    const Training training = training_on(own_device(rank), {{"micro_batches", "4"}});
    Program program = build_gpt(training.options);
    program.loss_sum = program.loss_count = {};
    const auto made_within = [&](int64_t limit) {
      const auto context = std::make_shared<Context>(
          ContextOptions{.device = training.device, .threads = 1, .memory_limit = limit, .log = {}, .parallel = {}, .memory = {}});
      Recipe recipe = training.recipe;
      recipe.device = training.device;
      return std::make_unique<Trainer>(std::make_shared<Model>(context, program, 1), recipe, nullptr, PlanOptions{}, group.get());
    };
    int64_t parameters = 0, need = 0;
    {
      const auto trainer = made_within(0);
      parameters = trainer->model().piece_storage().bytes();
      need = need_of(trainer->plan());
      say_terms(*trainer, say);
      say(std::to_string(need));
    }
    say_outcome(say, [&] { made_within(parameters + need); });
    say_outcome(say, [&] { made_within(parameters + need - 1); });
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_GT(terms_of(processes.next_line(rank)), 0);
    const std::string need = processes.next_line(rank);
    const Outcome fits = outcome_from(processes.next_line(rank)), refused = outcome_from(processes.next_line(rank));
    EXPECT_EQ(fits.code, Code::ok) << fits.message;
    expect_refused_for(need, refused);
  }
}

}  // namespace
}  // namespace st

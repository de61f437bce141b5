// The benchmark of collectives does not time a call whose result is wrong.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective_probe.h"
#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"

namespace st {
namespace {

/// Our collectives over threads. If `spoils`, all_reduce corrupts the last element and rank 1's reduce_scatter writes its results
/// elsewhere.
class Calls final : public cli::CollectiveCalls {
 public:
  Calls(DirectExchange group, bool spoils) : CollectiveCalls(group.rank(), group.size()), group_(std::move(group)), spoils_(spoils) {}

  bool has(cli::Exchange exchange) const override { return exchange != cli::Exchange::all_gather || !spoils_; }
  void all_reduce(float* data, int64_t elements) override {
    group_.all_reduce(data, elements, DType::f32, ReduceOp::sum);
    if (spoils_) data[elements - 1] *= 1.001F;
  }
  void reduce_scatter(const float* whole, float* own, int64_t elements) override {
    std::vector<float> elsewhere(static_cast<size_t>(elements));
    const bool is_lost = spoils_ && rank() == 1;
    group_.reduce_scatter(whole, is_lost ? elsewhere.data() : own, elements, DType::f32, ReduceOp::sum);
  }
  void all_gather(const float* own, float* whole, int64_t elements) override { group_.all_gather(own, whole, elements, DType::f32); }

 private:
  DirectExchange group_;
  bool spoils_;
};

/// The answers of `ranks` ranks to an order, one line each.
std::vector<std::string> answers(int ranks, bool spoils, const std::string& order) {
  std::string folder = (std::filesystem::temp_directory_path() / "probe-XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(mkfifo(cli::answer_pipe(folder).c_str(), 0600), 0);
  std::fstream reader(cli::answer_pipe(folder), std::ios::in | std::ios::out);
  auto ends = make_thread_group(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ofstream(cli::order_pipe(folder, rank)) << order << '\n';  // a file acts as an order pipe that has ended
    threads.emplace_back([&, rank] {
      Calls calls(DirectExchange(std::move(ends[static_cast<size_t>(rank)])), spoils);
      cli::serve_collectives(calls, folder);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> lines(static_cast<size_t>(ranks));
  for (std::string& line : lines) std::getline(reader, line);
  std::filesystem::remove_all(folder);
  return lines;
}

bool all_contain(const std::vector<std::string>& lines, const std::string& words) {
  return std::ranges::all_of(lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

TEST(CollectiveProbe, TimesWhatIsRight) {
  for (const std::string what : {"all_reduce", "reduce_scatter", "all_gather"})
    for (const int ranks : {2, 3})
      EXPECT_TRUE(all_contain(answers(ranks, false, what + " 1001 200 7"), " times ")) << what << ", " << ranks << " ranks";
}

TEST(CollectiveProbe, CountsNoTimeOfAWrongResult) {
  EXPECT_TRUE(all_contain(answers(2, true, "all_reduce 1001 20 7"), "error a wrong result: element 1000 of 1001 is "));
  // The other rank's result is right, or it finds that rank 1 has gone.
  const auto parts = answers(2, true, "reduce_scatter 1001 20 7");
  EXPECT_NE((parts[0] + parts[1]).find("1 error a wrong result: element 501 of 1001 is nan, it should be "), std::string::npos);
}

TEST(CollectiveProbe, TellsWhatItDoesNotHave) { EXPECT_TRUE(all_contain(answers(2, true, "all_gather 8 1 7"), " none")); }

TEST(CollectiveProbe, RefusesWhatIsNoOrder) {
  for (const std::string order : {"all_to_all 8 1 7", "all_reduce 0 1 7", "all_reduce 8 0 7", "all_reduce 8"})
    EXPECT_TRUE(all_contain(answers(2, false, order), "error no order: " + order)) << order;
}

}  // namespace
}  // namespace st

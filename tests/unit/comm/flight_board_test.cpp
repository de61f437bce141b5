// What all ranks did last, in one text: read where it lies, whatever has become of the rank that wrote it.
#include "comm/flight_board.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/local/thread_group.h"

namespace st {
namespace {

FlightRecord reduction(uint64_t sequence, const char* label, double began, double ended) {
  FlightRecord record;
  record.sequence = sequence;
  record.call = {Collective::all_reduce, ReduceOp::sum, DType::f32, 8, -1, {}};
  std::strncpy(record.label.data(), label, record.label.size() - 1);
  record.began = began;
  record.ended = ended;
  return record;
}

TEST(FlightBoard, OfAllRanksShowsEachCollectiveOnceInTheirOrder) {
  std::array<FlightBoard, 3> boards{};
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) boards[0].show(sequence, reduction(sequence, "bucket", 1, 1.25));
  boards[1].show(4, reduction(4, "bucket", 1, 1.5));
  boards[1].show(5, reduction(5, "bucket", 1, 0));
  const std::string text = merged_text({&boards[0], &boards[1], &boards[2], nullptr});
  EXPECT_EQ(text.find("#2 "), std::string::npos) << text;
  EXPECT_TRUE(
      text.starts_with("#3 all_reduce (sum) of 8 f32 bucket: rank 0 in 250 ms\n#4 all_reduce (sum) of 8 f32 bucket: ranks 0, 1 in "
                       "500 ms\n#5 all_reduce (sum) of 8 f32 bucket: rank 0 in 250 ms; rank 1 under way for "))
      << text;
}

TEST(FlightBoard, OfARankThatLeftNonsenseHarmsNobody) {
  for (const int byte : {0x00, 0x02, 0xfe}) {
    const auto board = std::make_unique<FlightBoard>();
    std::memset(static_cast<void*>(board.get()), byte, sizeof *board);
    EXPECT_LT(merged_text({board.get()}).size(), 4096) << byte;
  }
}

TEST(FlightBoard, IsInTheErrorOfEachRankOfAGroup) {
  auto ends = make_thread_group(3);
  std::vector<std::string> told(3);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Communicator group(std::move(ends[rank]), {.deadline = 0.5, .is_cancelled = {}, .warn = {}});
      std::array<float, 4> values{};
      try {
        group.barrier("all are here");
        while (rank == 2 && !group.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        while (rank != 2) group.all_reduce(values.data(), 4, DType::f32, ReduceOp::sum, "bucket.3");
      } catch (const Error& error) {
        told[rank] = error.message();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const size_t rank : {0, 1}) {
    EXPECT_NE(told[rank].find("#1 barrier all are here: ranks 0, 1, 2 in "), std::string::npos) << told[rank];
    EXPECT_NE(told[rank].find("#2 all_reduce (sum) of 4 f32 bucket.3: ranks 0, 1 under way for "), std::string::npos) << told[rank];
  }
}

}  // namespace
}  // namespace st

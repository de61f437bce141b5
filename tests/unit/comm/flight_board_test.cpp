// The last collectives of all ranks in one text, even of ranks that have died.
#include "comm/flight_board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "every_group.h"
#include "thrown_error.h"

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

FlightRecord message(Collective what, uint64_t sequence, int other, double began) {
  FlightRecord record = reduction(sequence, "", began, began + 0.25);
  record.call.what = what;
  record.call.root = other;
  return record;
}

TEST(FlightBoard, ShowsMessagesBetweenCollectivesByTheClockAndEachRanksByThemselves) {
  std::array<FlightBoard, 3> boards{};
  boards[0].show(1, reduction(40, "", 1, 1.25));
  boards[0].show(2, message(Collective::send, 1, 2, 2));  // its first message to that rank, like the other rank's
  boards[1].show(1, message(Collective::send, 1, 2, 3));
  boards[2].show(1, message(Collective::receive, 1, 0, 2.5));
  boards[2].show(2, reduction(41, "", 4, 4.25));
  EXPECT_EQ(merged_text({&boards[0], &boards[1], &boards[2]}),
            "#40 all_reduce (sum) of 8 f32: rank 0 in 250 ms\n"
            "#1 send of 8 f32 to rank 2: rank 0 in 250 ms\n"
            "#1 receive of 8 f32 from rank 0: rank 2 in 250 ms\n"
            "#1 send of 8 f32 to rank 2: rank 1 in 250 ms\n"
            "#41 all_reduce (sum) of 8 f32: rank 2 in 250 ms");
}

TEST(FlightBoard, OfManyRanksThatAllDoOtherThingsShowsTheLast) {
  const auto boards = std::make_unique<std::array<FlightBoard, 30>>();
  std::vector<const FlightBoard*> all;
  for (uint64_t rank = 0; rank < 30; ++rank) {
    (*boards)[rank].show(1, reduction(100 - rank, "", static_cast<double>(rank), static_cast<double>(rank) + 1));
    all.push_back(&(*boards)[rank]);
  }
  const std::string text = merged_text(all);
  EXPECT_TRUE(text.starts_with("(6 earlier ones are left out)\n#94 all_reduce (sum) of 8 f32: rank 6 in ")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 24);
}

TEST(FlightBoard, OfARankThatLeftNonsenseHarmsNobody) {
  const auto shown = [](const FlightRecord& record) {
    FlightBoard board{};
    board.show(1, record);
    return merged_text({&board});
  };
  FlightRecord record = reduction(7, "bucket", 1, 2);
  ASSERT_EQ(shown(record), "#7 all_reduce (sum) of 8 f32 bucket: rank 0 in 1 s");
  // A record with an invalid dtype is left out; another invalid value is shown as unknown.
  for (const int dtype : {0, 9, 255}) {
    record.call.dtype = static_cast<DType>(dtype);
    EXPECT_EQ(shown(record), "") << dtype;
  }
  record.call.dtype = DType::f32;
  record.call.op = static_cast<ReduceOp>(200);
  EXPECT_EQ(shown(record), "#7 all_reduce (unknown op) of 8 f32 bucket: rank 0 in 1 s");
  record.call.what = static_cast<Collective>(200);
  record.call.root = INT32_MIN;
  record.call.elements = INT64_MIN;
  EXPECT_EQ(shown(record), "#7 unknown collective of -9223372036854775808 f32 bucket: rank 0 in 1 s");
  record = reduction(7, "bucket", 1, 2);
  for (const double no_time : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0}) {
    record.began = no_time;
    EXPECT_EQ(shown(record), "") << no_time;
  }
  // Labels without a terminator, with half a character at the end, with invalid UTF-8, and with control characters.
  record = reduction(7, "", 1, 2);
  record.label.fill('x');
  EXPECT_EQ(shown(record), "#7 all_reduce (sum) of 8 f32 " + std::string(47, 'x') + ": rank 0 in 1 s");
  record.label[46] = '\xc3';
  EXPECT_EQ(shown(record), "#7 all_reduce (sum) of 8 f32 " + std::string(46, 'x') + ": rank 0 in 1 s");
  record.label[1] = '\xff';
  EXPECT_EQ(shown(record), "#7 all_reduce (sum) of 8 f32 x: rank 0 in 1 s");
  record.label[0] = '\n';
  EXPECT_EQ(shown(record), "#7 all_reduce (sum) of 8 f32 ?: rank 0 in 1 s");
  // A record that stays half written because its rank died there.
  FlightBoard board{};
  board.show(FlightBoard::kShown, reduction(7, "bucket", 1, 2));
  board.show(1, reduction(8, "bucket", 1, 2));
  std::memset(static_cast<void*>(&board), 0x01, sizeof board / FlightBoard::kShown);
  EXPECT_EQ(merged_text({&board}), "#8 all_reduce (sum) of 8 f32 bucket: rank 0 in 1 s");
}

bool began_second(const DirectExchange& group, int rank) {
  return std::ranges::any_of(group.transport().board(rank)->shown(), [](const FlightRecord& record) { return record.sequence == 2; });
}

TEST(FlightBoard, IsInTheErrorOfEachRankOfAGroup) {
  const auto outcomes = outcomes_of(make_thread_group(3), {}, [](DirectExchange& group) {
    std::array<float, 4> values{};
    group.barrier("all are here");
    if (group.rank() != 2) return group.all_reduce(values.data(), 4, DType::f32, ReduceOp::sum, "bucket.3");
    while (!group.has_ended() && !(began_second(group, 0) && began_second(group, 1)))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    group.abort("that will do");
  });
  for (const size_t rank : {0, 1})
    EXPECT_TRUE(
        is_error(error_of(outcomes[rank]), Code::rank_failed,
                 {"#1 barrier all are here: ranks 0, 1, 2 in ", "#2 all_reduce (sum) of 4 f32 bucket.3: ranks 0, 1 under way for "}));
}

}  // namespace
}  // namespace st

// Ranks over shared memory, as threads of this process: their bytes, start and end. tests/faults has them as processes.
#include "comm/local/process_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../base/allocations.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "base/utf8.h"
#include "comm/local/shared_segment.h"
#include "every_group.h"
#include "sanitized.h"
#include "shared_job.h"
#include "thrown_error.h"

namespace st {
namespace {

// Small rings, so that they fill up and wrap around.
INSTANTIATE_TEST_SUITE_P(Processes, EveryGroup,
                         testing::Values(GroupKind{"processes", [](int size) { return make_process_group(own_job("every"), size, 8192); }}),
                         [](const auto& instance) { return instance.param.name; });

Error refusal_of(const ProcessGroupOptions& options) {
  return error_of([&] { join_process_group(options); });
}

/// Waits until the first rank of a job has joined.
void await_segment(const std::string& job) {
  while (!std::filesystem::exists(path_of_segment(job))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// The bytes that one rank sends to another.
std::vector<std::byte> sent(int from, int to, size_t bytes) {
  std::vector<std::byte> all(bytes);
  std::byte* at = all.data();
  for (size_t n = 0; n < bytes; ++n) *at++ = static_cast<std::byte>(n * 7 + n / 251 + static_cast<size_t>(from * 16 + to));
  return all;
}

/// Sends `bytes` bytes to every rank in random portions, receives as many from each, and compares.
void exchange(Transport& end, size_t bytes) {
  std::mt19937 random(static_cast<unsigned>(end.rank()));
  std::vector<std::vector<std::byte>> out(static_cast<size_t>(end.size()));
  std::vector<size_t> posted(out.size()), got(out.size());
  for (int to = 0; to < end.size(); ++to) out[static_cast<size_t>(to)] = sent(end.rank(), to, bytes);
  std::vector<std::vector<std::byte>> expected;
  for (int from = 0; from < end.size(); ++from) expected.push_back(sent(from, end.rank(), bytes));
  for (bool is_done = false; !is_done;) {
    is_done = true;
    bool moved = end.progress();
    for (int other = 0; other < end.size(); ++other) {
      if (other == end.rank()) continue;
      const auto o = static_cast<size_t>(other);
      if (posted[o] < bytes) {
        const size_t piece = std::min<size_t>(random() % 20'000, bytes - posted[o]);
        end.post(other, std::span(out[o]).subspan(posted[o], piece));
        posted[o] += piece;
        moved = true;
      }
      const auto front = end.arrived(other);
      const size_t taken = std::min<size_t>(front.size(), 1 + random() % 9000);
      ASSERT_LE(got[o] + taken, bytes) << "from " << other;
      ASSERT_TRUE(taken == 0 || std::memcmp(front.data(), expected[o].data() + got[o], taken) == 0) << "from " << other << " at " << got[o];
      end.take(other, static_cast<int64_t>(taken));
      got[o] += taken;
      moved = moved || taken > 0;
      is_done = is_done && posted[o] == bytes && got[o] == bytes && end.is_sent(other);
    }
    ASSERT_FALSE(end.failure().has_value());
    if (!moved && !is_done) end.idle(1);
  }
}

TEST(ProcessGroup, CarriesBytesInOrderBetweenAllRanks) {
  for (const int size : {1, 2, 3, 5, 8}) {
    for (const int64_t ring : {int64_t{4096}, int64_t{0}}) {
      const std::string job = own_job("bytes");
      const auto ends = make_process_group(job, size, ring);
      EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
      run_ranks(size, [&](int rank) { exchange(*ends[static_cast<size_t>(rank)], size == 2 ? 1'000'003 : 50'001); });
    }
  }
}

TEST(ProcessGroup, SaysWhoTheRanksAre) {
  const auto ends = make_process_group(own_job("who"), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ends[static_cast<size_t>(rank)]->rank(), rank);
    EXPECT_EQ(ends[static_cast<size_t>(rank)]->host_of(2), text(os::host_name(), ", process ", os::process_id()));
  }
}

TEST(ProcessGroup, StartsFiftyTimesUnderOneName) {
  const std::string job = own_job("again");
  run_ranks(3, [&](int rank) {
    for (int i = 0; i < 50; ++i) exchange(*join_process_group(options_of(job, rank, 3)), 100);
  });
  EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
}

TEST(ProcessGroup, NamesTheRanksThatDoNotCome) {
  const std::string job = own_job("missing");
  run_ranks(2, [&](int rank) {  // of 4; the second to give up reports the same as the first
    const auto error = refusal_of(options_of(job, 2 * rank, 4, rank == 0 ? 0.5 : 20));
    EXPECT_TRUE(is_error(error, Code::timeout, {"not all 4 ranks joined within", "missing: 1, 3;"}));
    EXPECT_EQ(error.place.rank, 1);
  });
  EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
}

TEST(ProcessGroup, ShowsBothSidesWhereTheyDiffer) {
  const std::string job = own_job("sizes");
  std::thread waiting([&] {
    const auto error = refusal_of(options_of(job, 0, 4));
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"rank 1 expects 3 ranks"}));
    EXPECT_EQ(error.place.rank, 1);
  });
  await_segment(job);
  const Error error = refusal_of(options_of(job, 1, 3));
  waiting.join();
  EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"rank 1 expects 3 ranks", "the ranks before it expect 4 ranks"}));

  for (const int late : {2, 3}) {  // late ranks do not wait for those that have gone
    EXPECT_TRUE(std::filesystem::exists(path_of_segment(job)));
    EXPECT_TRUE(is_error(refusal_of(options_of(job, late, 4)), Code::rank_mismatch, {"rank 1 expects 3 ranks"}));
  }
  EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
}

TEST(ProcessGroup, WhoWasRefusedBeginsAnewAndIsNotRefusedAgain) {
  const std::string job = own_job("anew");
  run_ranks(2, [&](int rank) {  // of three, so that the refusal waits for one more
    EXPECT_TRUE(is_error(refusal_of(options_of(job, rank, rank == 0 ? 2 : 3)), Code::rank_mismatch));
  });
  run_ranks(2, [&](int rank) { EXPECT_TRUE(is_error(refusal_of(options_of(job, rank, 2)), Code::ok)); });
  EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
}

TEST(ProcessGroup, RefusesRanksOfAnotherVersionWithBothVersions) {
  const std::string job = own_job("versions");
  Error first(Code::ok, "");
  std::thread waiting([&] { first = refusal_of(options_of(job, 0, 2)); });
  await_segment(job);
  {  // as if rank 0 had another version of the library
    std::fstream segment(path_of_segment(job), std::ios::in | std::ios::out | std::ios::binary);
    segment.seekp(offsetof(SegmentShape, version));
    segment << std::string("9.8.7") + '\0';
  }
  const std::string own = shape_of(2, 4096).version.data();
  const auto error = refusal_of(options_of(job, 1, 2));
  waiting.join();
  for (const Error& refusal : {first, error}) {
    EXPECT_TRUE(is_error(refusal, Code::rank_mismatch, {text("version ", own, "; the ranks before it expect 2 ranks"), "version 9.8.7"}));
    EXPECT_EQ(refusal.place.rank, 1);
  }
  EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
}

TEST(ProcessGroup, RefusesARankThatIsThereAndLetsTheFirstGoOn) {
  const std::string job = own_job("twice");
  std::thread first([&] { EXPECT_TRUE(is_error(refusal_of(options_of(job, 0, 2)), Code::ok)); });
  await_segment(job);
  EXPECT_TRUE(is_error(refusal_of(options_of(job, 0, 2)), Code::busy, {"rank 0 has already joined"}));
  EXPECT_TRUE(is_error(refusal_of(options_of(job, 1, 2)), Code::ok));
  first.join();
}

TEST(ProcessGroup, AWaitForTheOthersCanBeCancelled) {
  const std::string job = own_job("cancelled");
  ProcessGroupOptions options = options_of(job, 1, 2);
  int looks = 0;
  options.is_cancelled = [&] { return ++looks > 3; };
  EXPECT_TRUE(is_error(refusal_of(options), Code::cancelled));
  EXPECT_FALSE(std::filesystem::exists(path_of_segment(job)));
}

TEST(ProcessGroup, RefusesAStrangeFileOfItsNameAndLeavesItThere) {
  const std::string job = own_job("strange"), path = path_of_segment(job);
  for (const size_t bytes : {size_t{0}, size_t{3}, size_t{100'000}}) {
    std::ofstream(path) << std::string(bytes, 'x');
    EXPECT_TRUE(is_error(refusal_of(options_of(job, 0, 2)), Code::rank_mismatch, {path}));
    EXPECT_EQ(std::filesystem::file_size(path), bytes);
  }
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_NE(refusal_of(options_of(job, 0, 2)).code(), Code::ok);
  std::filesystem::remove(path);
}

TEST(ProcessGroup, RefusesWhatIsNoGroup) {
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{{0, 0}, {-1, 2}, {2, 2}, {0, kMaxProcessRanks + 1}})
    EXPECT_EQ(refusal_of(options_of("none", rank, size)).code(), Code::invalid_argument);
  EXPECT_EQ(refusal_of(options_of("", 0, 1)).code(), Code::invalid_argument);
  ProcessGroupOptions odd = options_of("none", 0, 1);
  for (const int64_t bytes : {int64_t{-1}, int64_t{100}, int64_t{5000}, int64_t{1} << 40}) {
    odd.ring_bytes = bytes;
    EXPECT_EQ(refusal_of(odd).code(), Code::invalid_argument);
  }
}

TEST(ProcessGroup, AnAbortReachesEveryoneAndTheFirstOneStays) {
  const auto ends = make_process_group(own_job("abort"), 3);
  std::thread sleeper([&] {
    while (!ends[2]->failure()) ends[2]->idle(10);
  });
  std::string reason;  // longer than the room for it, and truncated within a character
  for (int i = 0; i < 100; ++i) reason += "xü€";
  ends[0]->abort({1, Code::timeout, reason});
  ends[1]->abort({0, Code::rank_failed, "too late"});
  sleeper.join();
  for (const auto& end : ends) {
    const auto failure = end->failure();
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, 1);
    EXPECT_EQ(failure->code, Code::timeout);
    EXPECT_GT(failure->reason.size(), 190U);
    EXPECT_TRUE(reason.starts_with(failure->reason));
    EXPECT_NE(failure->reason.back(), static_cast<char>(0xc3));
  }
}

TEST(ProcessGroup, OneThatLeavesIsNoFailureAndItsBytesStay) {
  auto ends = make_process_group(own_job("leave"), 2);
  const std::vector<std::byte> bytes(1000, std::byte{5});
  ends[0]->post(1, bytes);
  EXPECT_TRUE(ends[0]->is_sent(1));
  EXPECT_FALSE(ends[1]->has_left(0));
  ends[0].reset();
  EXPECT_TRUE(ends[1]->has_left(0));
  EXPECT_FALSE(ends[1]->failure().has_value());
  const auto front = ends[1]->arrived(0);
  EXPECT_TRUE(std::equal(front.begin(), front.end(), bytes.begin(), bytes.end()));
  ends[1]->take(0, 1000);
  ends[1]->post(0, bytes);  // no rank reads it
}

TEST(ProcessGroup, WithdrawsWhatWasNotSent) {
  const auto ends = make_process_group(own_job("withdraw"), 2, 4096);
  std::vector<std::byte> bytes(10'000, std::byte{5});
  ends[0]->post(1, bytes);
  EXPECT_FALSE(ends[0]->is_sent(1));
  ends[0]->withdraw();
  EXPECT_TRUE(ends[0]->is_sent(1));
  std::fill(bytes.begin(), bytes.end(), std::byte{6});
  ends[1]->take(0, 4096);
  EXPECT_FALSE(ends[0]->progress());
  EXPECT_TRUE(ends[1]->arrived(0).empty());
}

TEST(ProcessGroup, ARankThatComputesIsNotSilent) {
  const auto ends = make_process_group(own_job("silence"), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // neither end is polled
  const double end = os::seconds() + 10;                        // a busy machine may delay heartbeats, but not stop them
  while (ends[0]->silence_of(1) > 0.3 && os::seconds() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LT(ends[0]->silence_of(1), 0.3);
  EXPECT_EQ(ends[0]->silence_of(0), 0);
}

TEST(ProcessGroup, SleepsUntilBytesOrRoomAreThere) {
  const auto ends = make_process_group(own_job("sleep"), 2, 4096);
  const std::vector<std::byte> bytes(4097);
  ends[1]->progress();
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ends[0]->post(1, bytes);
  });
  while (ends[1]->arrived(0).empty())
    if (!ends[1]->progress()) ends[1]->idle(5);
  late.join();
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ends[1]->take(0, 4096);
  });
  while (!ends[0]->is_sent(1))
    if (!ends[0]->progress()) ends[0]->idle(5);
  reader.join();
}

TEST(ProcessGroup, AStartThatRunsOutOfMemoryAnywhereLeavesNothing) {
  if (kThreadSanitized) GTEST_SKIP() << "ThreadSanitizer's operator new serves some of the allocations, and never fails";
  const std::string job = own_job("memory"), path = path_of_segment(job);
  const ProcessGroupOptions options = options_of(job, 0, 1);
  int64_t n = 1;
  for (bool is_there = false; !is_there; ++n) {
    try {
      fail_allocation(n);
      const auto end = join_process_group(options);
      fail_allocation(0);
      is_there = true;
    } catch (const std::bad_alloc&) {
      EXPECT_FALSE(std::filesystem::exists(path)) << "after allocation " << n;
    }
  }
  EXPECT_GT(n, 5);
}

/// This process's mappings of segments whose names have been removed.
std::vector<std::span<std::byte>> mapped_segments() {
  std::vector<std::span<std::byte>> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" /dev/shm/") == std::string::npos) continue;
    const auto begin = std::stoull(line, nullptr, 16), end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    found.emplace_back(reinterpret_cast<std::byte*>(begin), end - begin);  // NOLINT(performance-no-int-to-ptr)
  }
  return found;
}

TEST(ProcessGroup, NonsenseInTheSharedMemoryIsAFailureAndNoCrash) {
  std::mt19937 random(3);
  const std::vector<std::byte> bytes(5000, std::byte{1});
  int failures = 0;
  for (int trial = 0; trial < 60; ++trial) {
    auto ends = make_process_group(own_job("nonsense"), 2, 4096);
    const auto memory = mapped_segments();
    ASSERT_EQ(memory.size(), 4U);  // the head and the rings of each end
    ends[1]->post(0, bytes);
    for (int hit = 0; hit < 200; ++hit) {
      const auto part = memory[random() % memory.size()];
      auto* const word = reinterpret_cast<uint32_t*>(part.data()) + random() % (part.size() / 4);
      std::atomic_ref(*word).store(trial % 3 == 0 ? UINT32_MAX : static_cast<uint32_t>(random()));
    }
    for (int i = 0; i < 5; ++i) {
      ends[0]->post(1, bytes);
      ends[0]->progress();
      const auto front = ends[0]->arrived(1);
      EXPECT_LE(front.size(), 4096U);
      const std::vector<std::byte> readable(front.begin(), front.end());
      ends[0]->take(1, std::ssize(front));
      ends[0]->idle(0.0001);
      EXPECT_GE(ends[0]->silence_of(1), 0);
      EXPECT_FALSE(ends[0]->host_of(1).empty());
    }
    ends[0]->abort({0, Code::rank_failed, "enough"});
    if (const auto failure = ends[0]->failure()) {
      ++failures;
      EXPECT_LT(failure->rank, 2);
      EXPECT_EQ(utf8_valid_until(failure->reason), failure->reason.size());
    }
    ends[0]->withdraw();
  }
  EXPECT_GT(failures, 30);
}

}  // namespace
}  // namespace st

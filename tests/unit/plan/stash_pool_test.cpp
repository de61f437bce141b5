// Memory that the chunks of a stage share.
#include "plan/stash_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "plan/pipeline_schedule.h"

namespace st {
namespace {

using Uses = std::vector<std::vector<BufferUse>>;

/// A chunk's buffer is in use from its forward to the end of its backward.
Uses uses_of(const PipelineSchedule& schedule, int32_t stage) {
  Uses uses(static_cast<size_t>(schedule.chunks), std::vector<BufferUse>(static_cast<size_t>(schedule.micro_batches)));
  const std::vector<StageAction>& actions = schedule.actions[static_cast<size_t>(stage)];
  for (size_t i = 0; i < actions.size(); ++i) {
    BufferUse& use = uses[static_cast<size_t>(actions[i].chunk)][static_cast<size_t>(actions[i].micro_batch)];
    (actions[i].phase == Phase::forward ? use.from : use.to) = i;
  }
  return uses;
}

struct InUse {
  BufferUse use;
  int64_t begin = 0, end = 0;
};

/// Two buffers in use at the same time have no byte in common.
void expect_apart(const StashPool& pool, const Uses& uses, const std::vector<int64_t>& bytes) {
  std::vector<InUse> all;
  for (size_t c = 0; c < uses.size(); ++c)
    for (size_t k = 0; k < uses[c].size(); ++k) all.push_back({uses[c][k], pool.begins[c][k], pool.begins[c][k] + bytes[c]});
  for (size_t a = 0; a < all.size(); ++a) {
    EXPECT_LE(all[a].end, pool.bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool at_same_time = all[a].use.from <= all[b].use.to && all[b].use.from <= all[a].use.to;
      EXPECT_FALSE(at_same_time && all[a].begin < all[b].end && all[b].begin < all[a].end);
    }
  }
}

/// The most bytes in use at the same time: no layout has fewer.
int64_t least_bytes(const Uses& uses, const std::vector<int64_t>& bytes) {
  int64_t most = 0;
  for (const auto& by_chunk : uses)
    for (const BufferUse& at : by_chunk) {
      int64_t now = 0;
      for (size_t c = 0; c < uses.size(); ++c)
        now += bytes[c] * std::ranges::count_if(uses[c], [&](const BufferUse& use) { return use.from <= at.from && use.to >= at.from; });
      most = std::max(most, now);
    }
  return most;
}

std::vector<PipelineSchedule> schedules() {
  std::vector<PipelineSchedule> all;
  for (const int32_t stages : {2, 3, 4})
    for (int32_t micro_batches = 1; micro_batches <= 4 * stages; ++micro_batches) {
      for (const int32_t chunks : {2, 3, 5}) all.push_back(make_schedule("interleaved", stages, chunks, micro_batches));
      all.push_back(make_schedule("zb-v", stages, 2, micro_batches));
    }
  return all;
}

/// Buffers of equal size take no more than are in flight at the same time.
TEST(StashPool, OfEqualChunksIsAsLargeAsThoseInFlight) {
  constexpr int64_t kBytes = 192;
  int64_t saved = 0;
  for (const PipelineSchedule& schedule : schedules())
    for (int32_t stage = 0; stage < schedule.stages; ++stage) {
      const Uses uses = uses_of(schedule, stage);
      const std::vector<int64_t> bytes(uses.size(), kBytes);
      const auto pool = stash_pool(uses, bytes);
      ASSERT_TRUE(pool.has_value());
      expect_apart(*pool, uses, bytes);
      EXPECT_EQ(pool->bytes, kBytes * in_flight(schedule, stage));
      for (int32_t chunk = 0; chunk < schedule.chunks; ++chunk) saved += kBytes * in_flight(schedule, stage, chunk);
      saved -= pool->bytes;
    }
  EXPECT_GT(saved, 0);
}

/// The chunk with the embedding, that with the head, and such as differ a little.
TEST(StashPool, OfUnequalChunksTakesNoMoreThanBuffersOfTheirOwn) {
  for (const PipelineSchedule& schedule : schedules())
    for (const std::vector<int64_t>& first :
         {std::vector<int64_t>{256, 192}, {192, 256, 192}, {128, 640, 192, 64}, {6400, 6336}, {0, 64}}) {
      std::vector<int64_t> bytes = first;
      bytes.resize(static_cast<size_t>(schedule.chunks), 192);
      for (int32_t stage = 0; stage < schedule.stages; ++stage) {
        const Uses uses = uses_of(schedule, stage);
        const auto pool = stash_pool(uses, bytes);
        ASSERT_TRUE(pool.has_value());
        expect_apart(*pool, uses, bytes);
        int64_t own = 0;
        for (int32_t chunk = 0; chunk < schedule.chunks; ++chunk)
          own += bytes[static_cast<size_t>(chunk)] * in_flight(schedule, stage, chunk);
        EXPECT_LE(pool->bytes, own);
        EXPECT_GE(pool->bytes, least_bytes(uses, bytes));
      }
    }
}

/// Places of one size for chunks that differ by less than a sixteenth: 11 chunks are in flight, 8 and 4 of the two.
TEST(StashPool, OfChunksOfNearlyOneSizeHasPlacesOfOneSize) {
  const Uses uses = uses_of(make_schedule("interleaved", 4, 2, 32), 0);
  const auto pool = stash_pool(uses, std::vector<int64_t>{6400, 6336});
  ASSERT_TRUE(pool.has_value());
  EXPECT_EQ(pool->bytes, 11 * 6400);
}

TEST(StashPool, NeedsAllChunksOfAMicroBatchAtTheSameTime) {
  EXPECT_FALSE(stash_pool(Uses{{{0, 1}}, {{2, 3}}}, std::vector<int64_t>{64, 64}).has_value());
  EXPECT_TRUE(stash_pool(Uses{{{0, 2}}, {{1, 3}}}, std::vector<int64_t>{64, 64}).has_value());
}

}  // namespace
}  // namespace st

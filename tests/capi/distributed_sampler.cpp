// st_distributed_sampler: the rows that a rank reads next. All ranks together must read every row once.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "held.h"

namespace {

using namespace st::test;

constexpr int64_t kEpochRows = 23;  // not a multiple of any number of ranks

/// The samplers of all ranks, called in turn.
class Ranks {
 public:
  explicit Ranks(int32_t size, st_last_rows last = ST_LAST_ROWS_SHARE, int64_t seed = 5, int32_t shuffle = 1) {
    auto options = filled(st_distributed_sampler_options_init);
    options.size = size;
    options.last = last;
    options.seed = seed;
    options.shuffle = shuffle;
    for (options.rank = 0; options.rank < size; ++options.rank)
      EXPECT_TRUE(works(st_distributed_sampler_create(kEpochRows, &options, samplers_.emplace_back().out())));
  }

  int64_t size() const { return static_cast<int64_t>(samplers_.size()); }
  st_distributed_sampler* operator[](size_t rank) { return samplers_[rank]; }

  /// All ranks' rows, in rank order. Empty if the epoch has ended on all of them.
  std::vector<int64_t> next(int64_t count) {
    std::vector<int64_t> together;
    own_.clear();
    for (st_distributed_sampler* sampler : samplers_) {
      std::vector<int64_t> rows(static_cast<size_t>(count), -1);
      int64_t own = -1, all = -1;
      EXPECT_TRUE(works(st_distributed_sampler_next(sampler, count, rows.data(), &own, &all)));
      for (int64_t i = own; i < count; ++i) EXPECT_EQ(rows[static_cast<size_t>(i)], -1) << "beyond its rows";
      together.insert(together.end(), rows.begin(), rows.begin() + own);
      own_.push_back(own);
      all_ = all;
    }
    EXPECT_EQ(static_cast<int64_t>(together.size()), all_);
    return together;
  }
  std::vector<int64_t> epoch(int64_t count) {
    std::vector<int64_t> whole;
    for (auto step = next(count); !step.empty(); step = next(count)) whole.insert(whole.end(), step.begin(), step.end());
    return whole;
  }
  const std::vector<int64_t>& own() const { return own_; }  // of the last step, by rank

  void set_epoch(int64_t epoch) {
    for (st_distributed_sampler* sampler : samplers_) EXPECT_TRUE(works(st_distributed_sampler_set_epoch(sampler, epoch)));
  }
  int64_t cursor() {
    int64_t cursor = -1;
    for (st_distributed_sampler* sampler : samplers_) {
      const auto at = asked<int64_t>(st_distributed_sampler_cursor, sampler);
      EXPECT_TRUE(cursor < 0 || cursor == at);
      cursor = at;
    }
    return cursor;
  }
  void set_cursor(int64_t cursor) {
    for (st_distributed_sampler* sampler : samplers_) EXPECT_TRUE(works(st_distributed_sampler_set_cursor(sampler, cursor)));
  }

 private:
  std::vector<HeldSampler> samplers_;
  std::vector<int64_t> own_;
  int64_t all_ = 0;
};

std::vector<int64_t> sorted(std::vector<int64_t> rows) {
  std::ranges::sort(rows);
  return rows;
}

std::vector<int64_t> all_rows() {
  std::vector<int64_t> rows(kEpochRows);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(DistributedSamplers, GiveEachRowOnceAnEpochToAnyNumberOfRanks) {
  std::set<std::vector<int64_t>> orders;
  for (const int32_t size : {1, 2, 3, 4, 5, 8, 30})
    for (const int64_t count : {1, 3, 23, 40}) {
      Ranks ranks(size);
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        const std::vector<int64_t> read = ranks.epoch(count);
        EXPECT_EQ(sorted(read), all_rows()) << size << " ranks, " << count << " rows, epoch " << epoch;
        if (size == 1) orders.insert(read);
      }
      EXPECT_EQ(ranks.cursor(), 2 * kEpochRows);
    }
  EXPECT_EQ(orders.size(), 2U) << "one order per epoch, for any count";
}

TEST(DistributedSamplers, DealTheLastRowsOutEvenly) {
  Ranks ranks(4);
  for (int step = 0; step < 2; ++step) EXPECT_EQ(ranks.next(2).size(), 8U);
  EXPECT_EQ(ranks.next(2).size(), 7U);
  EXPECT_EQ(ranks.own(), (std::vector<int64_t>{2, 2, 2, 1}));
  EXPECT_TRUE(ranks.next(2).empty());
}

TEST(DistributedSamplers, GiveARankNothingWhereThereAreTooFew) {
  Ranks ranks(5);
  ranks.set_cursor(kEpochRows - 2);
  EXPECT_EQ(ranks.next(3).size(), 2U);
  EXPECT_EQ(ranks.own(), (std::vector<int64_t>{1, 1, 0, 0, 0}));
}

TEST(DistributedSamplers, DropWhatIsLeftOnEveryRank) {
  Ranks dropping(4, ST_LAST_ROWS_DROP), sharing(4);
  std::vector<int64_t> wanted = sharing.next(2);
  for (const int64_t row : sharing.next(2)) wanted.push_back(row);
  EXPECT_EQ(dropping.epoch(2), wanted);
  EXPECT_EQ(dropping.cursor(), kEpochRows) << "the next epoch's first";
  EXPECT_EQ(dropping.epoch(2).size(), 16U);
  int64_t rows[8] = {}, own = -1, all = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_next(dropping[0], 8, rows, &own, &all), {"23 rows", "8", "4 ranks"}));
}

TEST(DistributedSamplers, JoinEpochsAsATrainersStream) {
  Ranks joined(3, ST_LAST_ROWS_JOIN), sharing(1);
  std::vector<int64_t> wanted = sharing.epoch(kEpochRows), read;
  for (const int64_t row : sharing.epoch(kEpochRows)) wanted.push_back(row);
  wanted.resize(36);
  for (int step = 0; step < 3; ++step)
    for (const int64_t row : joined.next(4)) read.push_back(row);
  EXPECT_EQ(read, wanted);
  EXPECT_EQ(joined.cursor(), 36);
}

TEST(DistributedSamplers, GoOnWithAnotherNumberOfRanksWhereNobodyHasRead) {
  Ranks four(4), three(3);
  four.set_epoch(7);
  std::vector<int64_t> read = four.next(3);
  three.set_cursor(four.cursor());
  for (const int64_t row : three.epoch(2)) read.push_back(row);
  EXPECT_EQ(sorted(read), all_rows());
  Ranks one(1);
  one.set_epoch(7);
  EXPECT_EQ(sorted(read), sorted(one.epoch(kEpochRows)));
}

TEST(DistributedSamplers, HaveAnOrderForEachSeedAndEpoch) {
  Ranks some(1), again(1), other(1, ST_LAST_ROWS_SHARE, 6), plain(1, ST_LAST_ROWS_SHARE, 5, 0);
  again.set_epoch(1);
  const std::vector<int64_t> first = some.epoch(kEpochRows), second = some.epoch(kEpochRows);
  EXPECT_EQ(again.epoch(kEpochRows), second) << "an epoch does not depend on earlier ones";
  EXPECT_NE(first, second);
  EXPECT_NE(other.epoch(kEpochRows), first);
  EXPECT_EQ(plain.epoch(kEpochRows), all_rows());
}

TEST(DistributedSamplers, RefuseWhatIsWrongAndSayHowToPutItRight) {
  HeldSampler sampler;
  const auto refused = [&](int64_t rows, auto change, std::initializer_list<std::string_view> words) {
    auto options = filled(st_distributed_sampler_options_init);
    change(options);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_create(rows, &options, sampler.out()), words));
  };
  using Options = st_distributed_sampler_options;
  refused(0, [](Options&) {}, {"rows is 0"});
  refused(8, [](Options& o) { o.size = 0; }, {"size is 0"});
  refused(8, [](Options& o) { o.rank = 2, o.size = 2; }, {"rank is 2", "0 to 1"});
  refused(8, [](Options& o) { o.rank = -1; }, {"rank is -1"});
  refused(8, [](Options& o) { o.last = 4; }, {"last is 4", "3 (join)"});

  ASSERT_TRUE(works(st_distributed_sampler_create(INT64_MAX, nullptr, sampler.out())));
  int64_t row = -1, own = -1, all = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_next(sampler, 0, &row, &own, &all), {"count is 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_next(sampler, INT64_MAX, &row, &own, &all), {"1073741824"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_set_epoch(sampler, -1), {"epoch is -1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_set_epoch(sampler, 2), {"epoch is 2", "0 to 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_set_cursor(sampler, -1), {"-1"}));
  EXPECT_TRUE(works(st_distributed_sampler_set_cursor(sampler, INT64_MAX)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_distributed_sampler_next(sampler, 1, &row, &own, &all), {"overflow 64 bits"}));
  EXPECT_TRUE(works(st_distributed_sampler_set_cursor(sampler, INT64_MAX - 1)));
  EXPECT_TRUE(works(st_distributed_sampler_next(sampler, 1, &row, &own, &all)));
  EXPECT_EQ(own, 1);
}

}  // namespace

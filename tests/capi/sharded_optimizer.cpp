// st_sharded_optimizer on thread-ranks equals st_data_parallel with an st_optimizer on every rank, bit for bit.
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "sanitized.h"
#include "thread_ranks.h"

namespace {

using namespace st::test;

constexpr float kInf = std::numeric_limits<float>::infinity();

int64_t width_of(st_dtype dtype) { return dtype == ST_F64 ? 8 : dtype == ST_F32 ? 4 : 2; }

/// A named array of any type.
struct Tensor {
  std::string name;
  st_dtype dtype = ST_F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;

  Tensor(std::string called, st_dtype type, std::vector<int64_t> shape)
      : name(std::move(called)), dtype(type), dims(std::move(shape)), bytes(static_cast<size_t>(elements() * width_of(type))) {}
  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t dim : dims) n *= dim;
    return n;
  }
  st_view view() {
    return {dtype, static_cast<int32_t>(dims.size()), dims.data(), nullptr, bytes.data(), static_cast<int64_t>(bytes.size())};
  }
  void set(int64_t i, float x) {
    std::byte* const at = bytes.data() + i * width_of(dtype);
    if (dtype == ST_F64) {
      const double wide = x;
      std::memcpy(at, &wide, 8);
    } else if (dtype == ST_F32) {
      std::memcpy(at, &x, 4);
    } else if (dtype == ST_BF16) {  // truncated: any number will do
      std::memcpy(at, reinterpret_cast<const std::byte*>(&x) + 2, 2);
    } else {  // also truncated; clang 14 has no _Float16
      uint32_t wide = 0;
      std::memcpy(&wide, &x, 4);
      const int exponent = static_cast<int>(wide >> 23 & 255) - 112;
      const uint32_t size = exponent <= 0   ? 0
                            : exponent < 31 ? uint32_t(exponent) << 10 | (wide >> 13 & 1023)
                            : std::isnan(x) ? 0x7E00
                                            : 0x7C00;
      const auto half = static_cast<uint16_t>((wide >> 16 & 0x8000) | size);
      std::memcpy(at, &half, 2);
    }
  }
};

using Tensors = std::vector<Tensor>;

std::vector<st_named_view> named(Tensors& tensors) {
  std::vector<st_named_view> views;
  for (Tensor& tensor : tensors) views.push_back({tensor.name.c_str(), tensor.view()});
  return views;
}

std::vector<st_view> views_of(Tensors& tensors) {
  std::vector<st_view> views;
  for (Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

void expect_equal(const Tensors& got, const Tensors& wanted, const std::string& what) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].bytes == wanted[i].bytes) << what << ": " << got[i].name;
}

/// A matrix and vectors of odd lengths: longer and shorter than a shard's grain, of one element, and empty.
Tensors parameters(bool with_f64 = false) {
  Tensors made;
  made.emplace_back("w", ST_F32, std::vector<int64_t>{33, 65});
  made.emplace_back("b", ST_F32, std::vector<int64_t>{7});
  made.emplace_back("e", ST_F32, std::vector<int64_t>{5003});
  made.emplace_back("frozen", ST_F32, std::vector<int64_t>{3});
  made.emplace_back("none", ST_F32, std::vector<int64_t>{0});
  made.emplace_back("s", ST_F32, std::vector<int64_t>{});
  made.emplace_back("m", ST_F32, std::vector<int64_t>{40, 8});
  if (with_f64) made.emplace_back("d", ST_F64, std::vector<int64_t>{2051});
  for (Tensor& tensor : made)
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, std::sin(static_cast<float>(i) * 0.37F));
  return made;
}

Tensors gradients_of(const Tensors& like, st_dtype dtype, int rank, int step) {
  Tensors made;
  for (const Tensor& parameter : like)
    made.emplace_back("gradient of " + parameter.name, parameter.dtype == ST_F64 ? ST_F64 : dtype, parameter.dims);
  for (Tensor& tensor : made)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.set(i, std::sin(static_cast<float>(i * 7 + rank * 131 + step * 17)) * std::exp2(static_cast<float>(i % 9 - rank)));
  return made;
}

std::string frozen_and(const std::string& settings) {
  return R"({"threads": 1, "groups": [{"pattern": "frozen", "frozen": true}, {"pattern": "b", "clip": 0.01, "lr_scale": 2}], )" + settings +
         "}";
}

/// 16-bit copies of the first two.
Tensors copies_of(const Tensors& like) {
  Tensors made;
  made.emplace_back("copy", ST_BF16, like[0].dims);
  made.emplace_back("copy", ST_F16, like[1].dims);
  return made;
}

std::vector<st_view> some(Tensors& copies, size_t count) {
  std::vector<st_view> views = views_of(copies);
  views.resize(count);
  return views;
}

st_sharded_optimizer_options options_of(int32_t stage, st_reduce_op op = ST_REDUCE_MEAN, int64_t bucket_bytes = 1 << 20) {
  auto options = filled(st_sharded_optimizer_options_init);
  options.stage = stage;
  options.op = op;
  options.bucket_bytes = bucket_bytes;
  return options;
}

/// The same without shards, on each rank: data parallel, then the whole optimizer.
class Whole {
 public:
  Whole(st_context* context, st_communicator* own, const std::string& json, Tensors& parameters, Tensors& gradients, st_reduce_op op)
      : gradients_(gradients) {
    auto options = filled(st_data_parallel_options_init);
    options.op = op;
    EXPECT_TRUE(works(st_data_parallel_create(own, std::ssize(gradients), named(gradients).data(), &options, parallel_.out())));
    EXPECT_TRUE(works(st_optimizer_create(context, json.c_str(), std::ssize(parameters), named(parameters).data(), optimizer.out())));
  }
  st_optimizer_report step() {
    for (int64_t i = std::ssize(gradients_); i-- > 0;) EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel_, i)));
    EXPECT_TRUE(works(st_data_parallel_synchronize(parallel_)));
    auto report = filled(st_optimizer_report_init);
    const auto views = views_of(gradients_);
    EXPECT_TRUE(works(st_optimizer_step(optimizer, std::ssize(views), views.data(), &report)));
    return report;
  }

  HeldOptimizer optimizer;

 private:
  Tensors& gradients_;
  HeldDataParallel parallel_;
};

void expect_equal(const st_optimizer_report& got, const st_optimizer_report& wanted, const std::string& what) {
  EXPECT_EQ(got.skipped, wanted.skipped) << what;
  EXPECT_EQ(got.step, wanted.step) << what;
  EXPECT_EQ(got.lr, wanted.lr) << what;
  EXPECT_EQ(std::memcmp(&got.norm, &wanted.norm, sizeof got.norm), 0) << what << ": " << got.norm << " and " << wanted.norm;
}

/// Compares all of the state with that of an optimizer on one rank.
void expect_same_state(st_sharded_optimizer* sharded, st_optimizer* whole, int32_t rank, bool is_here, const std::string& what) {
  int64_t n = -1, wanted = 0;
  const st_named_view *views = nullptr, *of_whole = nullptr;
  ASSERT_TRUE(works(st_sharded_optimizer_gather_state(sharded, rank, &n, &views)));
  ASSERT_TRUE(works(st_optimizer_state_views(whole, &wanted, &of_whole)));
  ASSERT_EQ(n, is_here ? wanted : 0) << what;
  for (int64_t i = 0; i < n; ++i) {
    const st_view &got = views[i].view, &due = of_whole[i].view;
    ASSERT_STREQ(views[i].name, of_whole[i].name);
    ASSERT_EQ(std::vector<int64_t>(got.dims, got.dims + got.rank), std::vector<int64_t>(due.dims, due.dims + due.rank)) << views[i].name;
    ASSERT_EQ(got.dtype, due.dtype);
    ASSERT_EQ(got.bytes, due.bytes);
    EXPECT_EQ(got.bytes == 0 ? 0 : std::memcmp(got.data, due.data, static_cast<size_t>(got.bytes)), 0) << what << ": " << views[i].name;
  }
}

/// Three steps, of which the second is skipped because of one rank's inf; copies are requested after the first.
void expect_same_bits(const ThreadRanks& ranks, const std::string& settings, int32_t stage, st_dtype dtype, st_reduce_op op, int64_t bucket,
                      bool with_f64) {
  const std::string json = frozen_and(settings);
  ranks.each([&](int rank, st_communicator* own) {
    const std::string what = "rank " + std::to_string(rank) + " of " + std::to_string(ranks.size()) + ", stage " + std::to_string(stage) +
                             ", gradients " + std::to_string(dtype) + ", " + settings;
    Tensors ours = parameters(with_f64), theirs = ours, gradients = gradients_of(ours, dtype, rank, 0), same = gradients;
    Tensors our_copies = copies_of(ours), their_copies = our_copies;
    Whole whole(ranks.context, own, json, theirs, same, op);
    const auto options = options_of(stage, op, bucket);
    const auto sharded =
        hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, json.c_str(), std::ssize(ours), named(ours).data(), &options);
    for (int step = 0; step < 3; ++step) {
      gradients = gradients_of(ours, dtype, rank, step);
      if (step == 1 && rank == ranks.size() - 1) gradients[2].set(4999, kInf);
      for (size_t i = 0; i < same.size(); ++i) std::ranges::copy(gradients[i].bytes, same[i].bytes.begin());  // to the borrowed places
      const Tensors given = gradients;
      auto report = filled(st_optimizer_report_init);
      const auto views = views_of(gradients);
      ASSERT_TRUE(works(st_sharded_optimizer_step(sharded, std::ssize(views), views.data(), &report)));
      expect_equal(report, whole.step(), what);
      EXPECT_EQ(report.skipped, step == 1 ? 1 : 0) << what;
      if (stage == 2) expect_equal(gradients, given, what + ", gradients are only read");
      expect_equal(ours, theirs, what);
      expect_equal(our_copies, their_copies, what);
      if (step == 0) {
        ASSERT_TRUE(works(st_sharded_optimizer_keep_copies(sharded, std::ssize(ours), some(our_copies, ours.size()).data())));
        ASSERT_TRUE(works(st_optimizer_keep_copies(whole.optimizer, std::ssize(ours), some(their_copies, ours.size()).data())));
      }
    }
    expect_same_state(sharded, whole.optimizer, -1, true, what);
    expect_same_state(sharded, whole.optimizer, ranks.size() - 1, rank == ranks.size() - 1, what);
  });
}

class ShardedOptimizers : public testing::TestWithParam<int> {};

// Each gradient type is used at both stages.
TEST_P(ShardedOptimizers, LeaveTheBitsOfDataParallelAndOneOptimizer) {
  const ThreadRanks ranks(GetParam());
  struct Case {
    const char* settings;
    bool with_f64;
  };
  const Case cases[] = {{R"("optimizer": "adamw", "lr": 0.01, "clip": 1)", true},
                        {R"("optimizer": "adamw-8bit", "lr": 0.01)", false},
                        {R"("optimizer": "sgd", "lr": 0.1, "momentum": 0.9)", true},
                        {R"("optimizer": "lion", "lr": 0.001, "clip": 0.5)", true},
                        {R"("optimizer": "muon", "lr": 0.01)", false},
                        {R"("optimizer": "adafactor", "lr": 0.01, "clip": 3)", false},
                        {R"("optimizer": "rmsprop", "lr": 0.01, "centered": true, "momentum": 0.5)", true},
                        {R"("optimizer": "adagrad", "lr": 0.01)", true}};
  int number = 0;
  for (const auto& [settings, with_f64] : cases)
    for (const int32_t stage : {1, 2}) {
      const bool is_tried = !st::kSanitized || (number + ranks.size()) % 3 == 0;  // by some number of ranks each
      const st_dtype dtype = std::vector<st_dtype>{ST_F32, ST_BF16, ST_F16}[static_cast<size_t>(number) % 3];
      const int64_t bucket = std::vector<int64_t>{1, 6000, 1 << 20, 1 << 20}[static_cast<size_t>(number) % 4];
      if (is_tried) expect_same_bits(ranks, settings, stage, dtype, number % 5 == 0 ? ST_REDUCE_SUM : ST_REDUCE_MEAN, bucket, with_f64);
      ++number;
    }
}

// In the order of micro-batches, and within each in rank order: added here by hand.
TEST_P(ShardedOptimizers, TakeGradientsOneByOneOfManyMicroBatches) {
  const ThreadRanks ranks(GetParam());
  constexpr int kMicroBatches = 3;
  const std::string json = frozen_and(R"("lr": 0.01, "clip": 1)");
  for (const int64_t bucket : {1, 9000, 1 << 20})
    ranks.each([&](int rank, st_communicator* own) {
      Tensors ours = parameters(), theirs = ours, sums = gradients_of(ours, ST_F32, 0, 0);
      const auto options = options_of(2, ST_REDUCE_MEAN, bucket);
      const auto whole = hold<HeldOptimizer>(st_optimizer_create, ranks.context, json.c_str(), std::ssize(theirs), named(theirs).data());
      const auto sharded =
          hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, json.c_str(), std::ssize(ours), named(ours).data(), &options);
      for (int step = 0; step < 2; ++step) {
        for (int k = 0; k < kMicroBatches; ++k) {
          Tensors gradients = gradients_of(ours, ST_F32, rank, step * kMicroBatches + k);
          const bool by_step = step == 1 && k == kMicroBatches - 1;  // the last micro-batch is passed with the step
          for (int64_t i = std::ssize(gradients); i-- > 0;) {
            Tensor& gradient = gradients[static_cast<size_t>(i)];
            const st_view view = gradient.view();
            if (!by_step) {
              EXPECT_TRUE(works(st_sharded_optimizer_gradient_ready(sharded, i, &view)));
            }
            if (!by_step) std::ranges::fill(gradient.bytes, std::byte{0x7F});  // it belongs to the host again
          }
          const auto views = views_of(gradients);
          if (by_step) {
            EXPECT_TRUE(works(st_sharded_optimizer_step(sharded, std::ssize(views), views.data(), nullptr)));
          }
        }
        if (step == 0) {
          EXPECT_TRUE(works(st_sharded_optimizer_step(sharded, 0, nullptr, nullptr)));
        }

        for (size_t i = 0; i < sums.size(); ++i)
          for (int64_t element = 0; element < sums[i].elements(); ++element) {
            float sum = 0;
            for (int k = 0; k < kMicroBatches; ++k)
              for (int r = 0; r < ranks.size(); ++r) {
                const float x = std::sin(static_cast<float>(element * 7 + r * 131 + (step * kMicroBatches + k) * 17)) *
                                std::exp2(static_cast<float>(element % 9 - r));
                sum = k + r == 0 ? x : sum + x;
              }
            sums[i].set(element, sum / static_cast<float>(ranks.size()));
          }
        const auto views = views_of(sums);
        EXPECT_TRUE(works(st_optimizer_step(whole, std::ssize(views), views.data(), nullptr)));
        expect_equal(ours, theirs, "bucket " + std::to_string(bucket) + ", step " + std::to_string(step));
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShardedOptimizers, testing::Values(1, 2, 3, 4, 5, 8));

// T6: gradients go to their owners; each rank's shards of parameters and copies go to all. Of five blocks of 1024 elements rank 0 owns
// three.
TEST(ShardedOptimizer, SendsWhatItDoesNotOwnAndItsOwnPiecesAlone) {
  constexpr int64_t kCount = 5003, kOwned[] = {3072, 1931}, kBlocks[] = {3, 2}, kStart = 152;  // of a RankReport
  for (const int32_t stage : {1, 2})
    for (const bool is_narrow : {false, true}) {
      const bool is_apart = (stage == 1) == is_narrow;
      const ThreadRanks ranks(2);
      ranks.each([&](int rank, st_communicator* own) {
        std::vector<float> w(kCount), g(kCount);
        std::vector<uint16_t> half(kCount), copy(kCount);
        const int64_t count = kCount;
        const st_named_view parameter = {"w", {ST_F32, 1, &count, nullptr, w.data(), 4 * kCount}};
        const st_view wide = {ST_F32, 1, &count, nullptr, g.data(), 4 * kCount},
                      narrow = {ST_BF16, 1, &count, nullptr, half.data(), 2 * kCount},
                      kept = {ST_BF16, 1, &count, nullptr, copy.data(), 2 * kCount};
        auto options = options_of(stage);
        options.shard_masters = is_apart ? 1 : 0;
        const auto sharded = hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, nullptr, 1, &parameter, &options);
        ASSERT_TRUE(works(st_sharded_optimizer_keep_copies(sharded, 1, &kept)));
        int64_t before = 0, after = 0;
        ASSERT_TRUE(works(st_communicator_sent_bytes(own, &before)));
        ASSERT_TRUE(works(st_sharded_optimizer_step(sharded, 1, is_narrow ? &narrow : &wide, nullptr)));
        ASSERT_TRUE(works(st_communicator_sent_bytes(own, &after)));
        EXPECT_EQ(after - before,
                  (is_narrow ? 2 : 4) * kOwned[1 - rank] + 8 * kBlocks[rank] + (is_apart ? 2 : 4 + 2) * kOwned[rank] + kStart);
      });
    }
}

// Outside its shards a rank's parameters are old until the state is gathered there; those without a copy never are; copies are always
// current.
TEST(ShardedOptimizer, GathersCopiesAloneWhereMastersAreInPieces) {
  const ThreadRanks ranks(3);
  const std::string json = frozen_and(R"("optimizer": "adamw", "lr": 0.01)");
  for (const int32_t stage : {1, 2})
    ranks.each([&](int rank, st_communicator* own) {
      Tensors w[2] = {parameters(), parameters()}, copies[2] = {copies_of(w[0]), copies_of(w[1])};
      HeldShardedOptimizer sharded[2];
      const auto keep = [&](int apart) {
        return st_sharded_optimizer_keep_copies(sharded[apart], std::ssize(w[apart]), some(copies[apart], w[apart].size()).data());
      };
      for (const int apart : {0, 1}) {
        auto options = options_of(stage);
        options.shard_masters = apart;
        ASSERT_TRUE(works(
            st_sharded_optimizer_create(own, json.c_str(), std::ssize(w[apart]), named(w[apart]).data(), &options, sharded[apart].out())));
        ASSERT_TRUE(works(keep(apart)));
      }
      for (int step = 0; step < 2; ++step) {
        for (const int apart : {0, 1}) {
          Tensors gradients = gradients_of(w[apart], ST_F32, rank, step);
          const auto views = views_of(gradients);
          ASSERT_TRUE(works(st_sharded_optimizer_step(sharded[apart], std::ssize(views), views.data(), nullptr)));
        }
        expect_equal(copies[1], copies[0], "copies");
        EXPECT_FALSE(w[1][0].bytes == w[0][0].bytes) << "this rank owns one of three shards";
        EXPECT_TRUE(w[1][2].bytes == w[0][2].bytes) << "no copy";
      }
      EXPECT_EQ(keep(1), ST_WRONG_STATE) << "the copies would be made of old parameters";
      int64_t n = 0;
      const st_named_view* views = nullptr;
      ASSERT_TRUE(works(st_sharded_optimizer_gather_state(sharded[1], 1, &n, &views)));
      EXPECT_EQ(w[1][0].bytes == w[0][0].bytes, rank == 1);
      ASSERT_TRUE(works(st_sharded_optimizer_gather_state(sharded[1], -1, &n, &views)));
      expect_equal(w[1], w[0], "whole again");
      ASSERT_TRUE(works(keep(1)));
      expect_equal(copies[1], copies[0], "made anew");
    });
}

// T8: the state, and the sums of stage 2, of all ranks together equal those of one optimizer; each rank has two buckets.
TEST(ShardedOptimizer, KeepsOnePartOfTheStateOnEachRank) {
  constexpr int64_t kParameters = 32, kEach = 4096, kAll = kParameters * kEach, kBucket = 65536;
  constexpr int kRanks = 4;
  for (const int32_t stage : {1, 2}) {
    const ThreadRanks ranks(kRanks);
    std::vector<HeldShardedOptimizer> sharded(kRanks);
    std::vector<Tensors> parameters_of(kRanks);
    ranks.each([&](int rank, st_communicator* own) {
      const auto r = static_cast<size_t>(rank);
      for (int64_t i = 0; i < kParameters; ++i) parameters_of[r].emplace_back("w" + std::to_string(i), ST_F32, std::vector<int64_t>{kEach});
      const auto options = options_of(stage, ST_REDUCE_MEAN, kBucket);
      ASSERT_TRUE(
          works(st_sharded_optimizer_create(own, nullptr, kParameters, named(parameters_of[r]).data(), &options, sharded[r].out())));
      Tensors gradients = gradients_of(parameters_of[r], ST_F32, rank, 0);
      const auto views = views_of(gradients);
      for (int64_t i = kParameters; i-- > 0 && stage == 2;) {
        ASSERT_TRUE(works(st_sharded_optimizer_gradient_ready(sharded[r], i, &views[static_cast<size_t>(i)])));
      }
      ASSERT_TRUE(works(st_sharded_optimizer_step(sharded[r], stage == 1 ? kParameters : 0, views.data(), nullptr)));
    });
    const auto stats = memory_of(ranks.context);
    EXPECT_EQ(stats.role_bytes[ST_MEMORY_OPTIMIZER], 2 * 4 * kAll);
    EXPECT_EQ(stats.role_bytes[ST_MEMORY_GRADIENTS], stage == 2 ? 4 * kAll : 0);
    EXPECT_EQ(stats.role_bytes[ST_MEMORY_BUCKETS], stage == 2 ? kRanks * 2 * kBucket : 0);
  }
}

/// State on the host's side, as a checkpoint would hold it.
struct SavedState {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> dims;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<st_named_view> views;

  void save(int64_t n, const st_named_view* from) {
    for (int64_t i = 0; i < n; ++i) {
      const st_view& view = from[i].view;
      const auto* const data = static_cast<const std::byte*>(view.data);
      names.emplace_back(from[i].name);
      dims.emplace_back(view.dims, view.dims + view.rank);
      bytes.emplace_back(data, data + view.bytes);
    }
    for (size_t i = 0; i < names.size(); ++i)
      views.push_back(
          {names[i].c_str(), {from[i].view.dtype, from[i].view.rank, dims[i].data(), nullptr, bytes[i].data(), std::ssize(bytes[i])}});
  }
};

// T22 for the parts API: two steps on some ranks, then two on others, compared with four on one rank with the same gradients.
TEST(ShardedOptimizer, GoesOnFromItsStateOnAnotherNumberOfRanks) {
  for (const char* settings :
       {R"("optimizer": "adamw", "lr": 0.01)", R"("optimizer": "adamw-8bit", "lr": 0.01)", R"("optimizer": "adafactor", "lr": 0.01)"}) {
    const std::string json = frozen_and(settings);
    const auto run_until = [&](int count, int32_t stage, int first, Tensors& all, SavedState& saved) {
      const ThreadRanks ranks(count);
      std::mutex mutex;
      const SavedState before = saved;
      Tensors after = all;
      ranks.each([&](int rank, st_communicator* own) {
        Tensors ours = all;
        const auto options = options_of(stage);
        const auto sharded =
            hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, json.c_str(), std::ssize(ours), named(ours).data(), &options);
        if (first > 0) {
          ASSERT_TRUE(works(st_sharded_optimizer_load_state(sharded, std::ssize(before.views), before.views.data())));
        }
        for (int step = first; step < first + 2; ++step) {
          Tensors gradients = gradients_of(ours, ST_F32, 0, step);  // the same on each rank; means of 2 and 4 of them are exact
          const auto views = views_of(gradients);
          ASSERT_TRUE(works(st_sharded_optimizer_step(sharded, std::ssize(views), views.data(), nullptr)));
        }
        int64_t n = 0;
        const st_named_view* views = nullptr;
        ASSERT_TRUE(works(st_sharded_optimizer_gather_state(sharded, 0, &n, &views)));
        if (rank > 0) return;
        const std::lock_guard lock(mutex);
        after = ours;
        saved = {};
        saved.save(n, views);
      });
      for (size_t i = 0; i < all.size(); ++i) all[i].bytes = after[i].bytes;
    };
    Tensors at_once = parameters(), in_parts = at_once;
    SavedState none, parts;
    for (int first = 0; first < 4; first += 2) run_until(1, 1, first, at_once, none);
    run_until(4, 1, 0, in_parts, parts);
    run_until(2, 2, 2, in_parts, parts);
    expect_equal(in_parts, at_once, settings);
    ASSERT_EQ(parts.names, none.names);
    EXPECT_EQ(parts.bytes, none.bytes) << settings;
  }
}

TEST(ShardedOptimizer, RefusesAStateThatIsNotItsOwnAndKeepsWhatItHas) {
  const ThreadRanks ranks(1);
  float w[] = {1, 2, 3}, moment[] = {0, 0, 0};
  int64_t step = 0;
  const int64_t three[] = {3}, two[] = {2};
  const st_named_view parameter = {"w", {ST_F32, 1, three, nullptr, w, 12}};
  const auto sharded =
      hold<HeldShardedOptimizer>(st_sharded_optimizer_create, ranks[0], R"({"optimizer": "lion"})", 1, &parameter, nullptr);
  const auto load = [&](std::vector<st_named_view> views) {
    return st_sharded_optimizer_load_state(sharded, std::ssize(views), views.data());
  };
  const st_named_view count = {"step", {ST_I64, 0, nullptr, nullptr, &step, 8}},
                      moments = {"moment1.w", {ST_F32, 1, three, nullptr, moment, 12}};
  EXPECT_TRUE(fails(ST_NOT_FOUND, load({count}), {"\"moment1.w\""}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, load({moments}), {"\"step\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, load({count, moments, {"moment2.w", moments.view}}), {"\"moment2.w\"", "does not have"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, load({count, moments, moments}), {"two tensors", "\"moment1.w\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, load({count, {"moment1.w", {ST_F32, 1, two, nullptr, moment, 8}}}), {"[3]", "[2]"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, load({}), {"n is 0"}));
  step = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, load({count, moments}), {"step, the number of updates so far", "got -1"}));
  step = int64_t{1} << 53;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, load({count, moments}), {"step, the number of updates so far", "got 9007199254740992"}));
  step = 41;
  ASSERT_TRUE(works(load({moments, count})));
  auto report = filled(st_optimizer_report_init);
  float g[] = {1, 1, 1};
  const st_view gradient = {ST_F32, 1, three, nullptr, g, 12};
  ASSERT_TRUE(works(st_sharded_optimizer_step(sharded, 1, &gradient, &report)));
  EXPECT_EQ(report.step, 42);
}

// T10 with a scaler on each rank: if one rank's gradient overflows, all ranks skip, and all scales stay equal.
TEST(ShardedOptimizer, OneRanksOverflowSkipsOnAllAndLowersEveryScale) {
  for (const int32_t stage : {1, 2}) {
    const ThreadRanks ranks(3);
    ranks.each([&](int rank, st_communicator* own) {
      std::vector<float> w(3000, 1.0F), g(3000);
      const int64_t count = 3000;
      const st_named_view parameter = {"w", {ST_F32, 1, &count, nullptr, w.data(), count * 4}};
      const st_view gradient = {ST_F32, 1, &count, nullptr, g.data(), count * 4};
      const auto options = options_of(stage);
      const auto sharded =
          hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, R"({"optimizer": "sgd", "lr": 1})", 1, &parameter, &options);
      const auto scaler = hold<HeldLossScaler>(st_loss_scaler_create, ranks.context, nullptr);
      double scale = 0, due = 65536;
      for (int step = 0; step < 9; ++step) {
        const bool overflows = step % 3 == 1;
        ASSERT_TRUE(works(st_loss_scaler_scale(scaler, &scale)));
        EXPECT_EQ(scale, due);
        for (float& x : g) x = 0.001F * static_cast<float>(scale);
        if (overflows && rank == step / 3) g[static_cast<size_t>(step * 300)] = step == 1 ? kInf : std::numeric_limits<float>::quiet_NaN();
        const auto before = w;
        auto report = filled(st_optimizer_report_init);
        int32_t skipped = -1;
        ASSERT_TRUE(works(st_sharded_optimizer_step_scaled(sharded, scaler, 1, &gradient, &report)));
        ASSERT_TRUE(works(st_loss_scaler_update(scaler, &skipped)));
        EXPECT_EQ(skipped, overflows ? 1 : 0);
        EXPECT_EQ(report.skipped, skipped);
        EXPECT_EQ(w == before, overflows) << "rank " << rank << ", step " << step;
        if (overflows) due /= 2;
      }
    });
  }
}

TEST(ShardedOptimizer, RanksThatTrainOtherThingsAreToldBothSides) {
  const ThreadRanks ranks(3);
  const auto refused = [&](auto change, std::initializer_list<std::string_view> words) {
    ranks.each([&](int rank, st_communicator* own) {
      Tensors ours = parameters();
      auto options = options_of(1);
      std::string json = frozen_and(R"("lr": 0.01)");
      if (rank == 2) change(ours, options, json);
      HeldShardedOptimizer sharded;
      EXPECT_TRUE(fails(ST_RANK_MISMATCH,
                        st_sharded_optimizer_create(own, json.c_str(), std::ssize(ours), named(ours).data(), &options, sharded.out()),
                        words));
    });
  };
  using Options = st_sharded_optimizer_options;
  refused([](Tensors&, Options& o, std::string&) { o.stage = 2; }, {"sharded optimizer", "rank 2", "stage 2", "rank 0 has 1"});
  refused([](Tensors&, Options& o, std::string&) { o.op = ST_REDUCE_SUM; }, {"op sum", "rank 0 has mean"});
  refused([](Tensors&, Options& o, std::string&) { o.bucket_bytes = 7; }, {"bucket_bytes 7"});
  refused([](Tensors&, Options&, std::string& json) { json = frozen_and(R"("lr": 0.5)"); }, {"lr 0.5", "rank 0 has 0.01"});
  refused([](Tensors& t, Options&, std::string&) { t.pop_back(); }, {"number of parameters 6", "rank 0 has 7"});
  refused([](Tensors& t, Options&, std::string&) { std::swap(t[0], t[6]); },
          {"parameter 0 \"m\", f32 of [40, 8]", "rank 0 has \"w\", f32 of [33, 65]"});
  ranks.each([&](int, st_communicator* own) {  // the group still works
    Tensors ours = parameters();
    const auto sharded =
        hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, nullptr, std::ssize(ours), named(ours).data(), nullptr);
  });
}

TEST(ShardedOptimizer, RanksThatStepWithOtherThingsAreToldBothSidesAndNothingIsWritten) {
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    std::vector<float> w(8, 1.0F), g(8, 1.0F);
    std::vector<uint16_t> narrow(8, 0x3F80), copy(8);
    const int64_t count = 8;
    const st_named_view parameter = {"w", {ST_F32, 1, &count, nullptr, w.data(), 32}};
    const st_view gradient = {ST_F32, 1, &count, nullptr, g.data(), 32}, in_16_bits = {ST_BF16, 1, &count, nullptr, narrow.data(), 16},
                  kept = {ST_BF16, 1, &count, nullptr, copy.data(), 16};
    const auto sharded = hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, nullptr, 1, &parameter, nullptr);
    const auto step = [&](const st_view& with) { return st_sharded_optimizer_step(sharded, 1, &with, nullptr); };
    ASSERT_TRUE(works(step(gradient)));
    const auto before = w;
    if (rank == 1) {
      EXPECT_TRUE(works(st_sharded_optimizer_set(sharded, "lr", "0.5")));
    }
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, step(gradient), {"rank 1", "learning rate 0.5", "rank 0 0.001"}));
    EXPECT_TRUE(works(st_sharded_optimizer_set(sharded, "lr", "0.001")));
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, step(rank == 0 ? gradient : in_16_bits), {"\"gradient of w\"", "as bf16", "rank 0 as f32"}));
    if (rank == 1) {
      EXPECT_TRUE(works(st_sharded_optimizer_keep_copies(sharded, 1, &kept)));
    }
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, step(gradient), {"\"copy of w\"", "as bf16", "rank 0 as none"}));
    if (rank == 1) {
      EXPECT_TRUE(works(st_sharded_optimizer_keep_copies(sharded, 0, nullptr)));
    }
    auto scaling = filled(st_loss_scaler_options_init);
    if (rank == 1) scaling.initial_scale = 8;
    double scale = 0;
    const auto scaler = hold<HeldLossScaler>(st_loss_scaler_create, ranks.context, &scaling);
    ASSERT_TRUE(works(st_loss_scaler_scale(scaler, &scale)));
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, st_sharded_optimizer_step_scaled(sharded, scaler, 1, &gradient, nullptr),
                      {"has loss scale 8", "rank 0 65536"}));
    EXPECT_EQ(w, before);
    EXPECT_EQ(g, std::vector<float>(8, 1.0F));
    const auto report = filled(st_optimizer_report_init, st_sharded_optimizer_step, sharded, 1, &gradient);
    EXPECT_EQ(report.step, 2);
  });
}

TEST(ShardedOptimizer, RefusesWhatItCannotTake) {
  const ThreadRanks ranks(1);
  float w[] = {1, 2, 3, 4}, g[] = {1, 1, 1, 1};
  const int64_t four = 4, three = 3;
  const st_named_view parameters[] = {{"w", {ST_F32, 1, &four, nullptr, w, 16}}, {"f", {ST_F32, 1, &three, nullptr, g, 12}}};
  const st_view gradient = {ST_F32, 1, &four, nullptr, g, 16}, shorter = {ST_F32, 1, &three, nullptr, g, 12};
  HeldShardedOptimizer sharded;
  auto options = options_of(3);
  const auto create = [&] { return st_sharded_optimizer_create(ranks[0], nullptr, 1, parameters, &options, sharded.out()); };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(), {"stage is 3"}));
  options = options_of(2, ST_REDUCE_MAX);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(), {"op is 3"}));
  options = options_of(2, ST_REDUCE_SUM, 0);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(), {"bucket_bytes is 0"}));
  options = options_of(1);
  ASSERT_TRUE(works(create()));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_sharded_optimizer_gradient_ready(sharded, 0, &gradient), {"stage 1"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_sharded_optimizer_step(sharded, 0, nullptr, nullptr), {"stage 1"}));
  sharded.reset();
  options = options_of(2);
  ASSERT_TRUE(works(create()));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_sharded_optimizer_step(sharded, 0, nullptr, nullptr), {"1 gradients", "\"gradient of w\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_sharded_optimizer_gradient_ready(sharded, 1, &gradient), {"gradient 1", "[0, 1)"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_sharded_optimizer_gradient_ready(sharded, -1, &gradient), {"gradient -1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_sharded_optimizer_gradient_ready(sharded, 0, &shorter), {"[4]", "[3]"}));
  ASSERT_TRUE(works(st_sharded_optimizer_gradient_ready(sharded, 0, &gradient)));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_sharded_optimizer_keep_copies(sharded, 0, nullptr), {"between two steps"}));
  uint16_t narrow[4] = {};
  const st_view in_16_bits = {ST_F16, 1, &four, nullptr, narrow, 8};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_sharded_optimizer_gradient_ready(sharded, 0, &in_16_bits), {"is f16", "was f32"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_sharded_optimizer_step(sharded, 1, &in_16_bits, nullptr), {"is f16", "was f32"}));
  ASSERT_TRUE(works(st_sharded_optimizer_step(sharded, 0, nullptr, nullptr)));
  int64_t n = 0;
  const st_named_view* state = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_sharded_optimizer_gather_state(sharded, 1, &n, &state), {"rank is 1"}));
}

TEST(ShardedOptimizer, ARankThatIsGoneIsNamedAndTheOthersGoOn) {
  const ThreadRanks ranks(2, 2000);
  ranks.each([&](int rank, st_communicator* own) {
    std::vector<float> w(5000, 1.0F), g(5000, 1.0F);
    const int64_t count = 5000;
    const st_named_view parameter = {"w", {ST_F32, 1, &count, nullptr, w.data(), count * 4}};
    const st_view gradient = {ST_F32, 1, &count, nullptr, g.data(), count * 4};
    const auto options = options_of(2, ST_REDUCE_SUM, 1);
    const auto sharded = hold<HeldShardedOptimizer>(st_sharded_optimizer_create, own, nullptr, 1, &parameter, &options);
    if (rank == 1) {
      EXPECT_TRUE(works(st_communicator_abort(own, "no more")));
      return;
    }
    EXPECT_TRUE(works(st_sharded_optimizer_gradient_ready(sharded, 0, &gradient)));  // its exchange has started
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_sharded_optimizer_step(sharded, 0, nullptr, nullptr), {"rank 1", "no more"}));
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_sharded_optimizer_step(sharded, 1, &gradient, nullptr), {"rank 1", "no more"}));
  });
}

}  // namespace

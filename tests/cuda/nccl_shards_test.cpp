// Tensors in shards over NCCL's own collectives, at more ranks than those of nccl_exchange_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "device/device_ranks.h"
#include "exec/network_exchange.h"
#include "exec/planned_exchange.h"
#include "ir/cuts.h"
#include "nccl_devices.h"
#include "plan/exchange_memory.h"

namespace st {
namespace {

/// Tensors in shards of data ranks: equal ones; four grains, of which the last is short; one rank's.
Program sharded(int ranks) {
  Program program;
  program.mesh.data = ranks;
  const auto add = [&](const char* name, int64_t elements, int32_t turn) {
    program.add_slot({.name = name,
                      .type = {.dtype = DType::f32, .shape = {elements}, .layout = {}},
                      .init = {},
                      .sums = {.kind = AxisLayout::Kind::flat, .where = turn, .grain = 16}});
  };
  add("equal", 16 * ranks, 0);
  add("ragged", 53, 2);
  add("of one", 3, 1);
  return program;
}

/// A rank's gradients, and its shards of their sums, which are gathered again. All numbers are whole, so sums have the same bits in any
/// order.
class ShardedSums {
 public:
  ShardedSums(Backend& backend, DirectExchange& group, const Program& program)
      : backend_(backend), group_(group), program_(program), stream_(backend.make_stream()) {
    for (size_t t = 0; t < program.slots.size(); ++t) {
      const auto id = static_cast<SlotId>(t);
      const int64_t elements = program.slot(id).type.shape.elements(), own = shard_elements(program, id, group.rank());
      wholes_.push_back(add(elements));
      shards_.push_back(add(own));
      tensors_.push_back({.operand = static_cast<int32_t>(t), .cut_like = id, .bytes = 4});
    }
    plan_of(add_, Op::reduce_scatter).adds = true;
    plan_of(sum_, Op::reduce_scatter);
    plan_of(gather_, Op::all_gather);
    reduction_.in = gathering_.writes = wholes_;
    reduction_.writes = gathering_.reads = shards_;
    room_.emplace(backend, planned());
  }

  /// The bytes of terms of the exchange that needs the most.
  int64_t planned() const { return exchange_memory(add_, program_, group_.rank(), group_.size()); }
  int64_t room() const { return room_->bytes(); }
  /// The sums of these ranks' gradients, onto earlier ones or not.
  void reduce(bool adds, int contributors) {
    for (size_t t = 0; t < wholes_.size(); ++t) {
      std::vector<float> values;
      for (int64_t i = 0; i < wholes_[t].elements(); ++i) values.push_back(static_cast<float>((group_.rank() + 1) * term(t, i)));
      backend_.to_device(wholes_[t].data, values.data(), wholes_[t].elements() * 4);
    }
    run(adds ? add_ : sum_, reduction_, contributors);
  }
  /// All elements, by the tensor.
  std::vector<std::vector<float>> gathered() {
    for (const Operand& whole : wholes_) backend_.zero(whole.data, whole.elements() * 4);
    run(gather_, gathering_, group_.size());
    std::vector<std::vector<float>> all;
    for (const Operand& whole : wholes_) {
      all.emplace_back(static_cast<size_t>(whole.elements()));
      backend_.to_host(all.back().data(), whole.data, whole.elements() * 4);
    }
    return all;
  }
  static int64_t term(size_t tensor, int64_t element) { return element % 7 + static_cast<int64_t>(tensor) + 1; }

 private:
  Operand add(int64_t elements) {
    memory_.push_back(backend_.allocate(std::max<int64_t>(elements, 1) * 4, MemoryRole::other));
    return {memory_.back()->data(), DType::f32, Shape{elements}};
  }
  ExchangePlan& plan_of(ExchangePlan& plan, Op op) const {
    plan = {.op = op, .label = "tensors", .tensors = tensors_, .is_fast = true};
    return plan;
  }
  void run(const ExchangePlan& plan, const Call& call, int contributors) {
    PlannedExchange exchange(plan, program_, call, group_, backend_, stream_.get(), nullptr, &*room_);
    exchange.fork(*stream_);
    exchange.run(contributors);
    exchange.join(*stream_);
    stream_->finish();
  }

  Backend& backend_;
  DirectExchange& group_;
  const Program& program_;
  const std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Buffer>> memory_;
  std::vector<Operand> wholes_, shards_;
  std::vector<ExchangePlan::Tensor> tensors_;
  ExchangePlan sum_, add_, gather_;
  Call reduction_, gathering_;
  std::optional<TermRoom> room_;
};

TEST(NcclShards, OfFiveAndEightRanksAreTheirSums) {
  for (const int ranks : {5, 8}) {
    const Program program = sharded(ranks);
    const auto errors = on_ranks(ranks, [&](DirectExchange& group) {
      connect(group, device_of(group.rank()));
      ShardedSums own(device_of(group.rank()), group, program);
      own.reduce(false, ranks);
      own.reduce(true, ranks);
      const std::vector<std::vector<float>> all = own.gathered();
      const int64_t times = 2 * ranks * (ranks + 1) / 2;
      for (size_t t = 0; t < all.size(); ++t)
        for (size_t i = 0; i < all[t].size(); ++i)
          ASSERT_EQ(all[t][i], static_cast<float>(times * ShardedSums::term(t, static_cast<int64_t>(i)))) << ranks << ' ' << t << ' ' << i;
      EXPECT_EQ(own.room(), own.planned()) << ranks;
    });
    expect_none(errors);
  }
  EXPECT_EQ(left_over(), 0);
}

/// As in a step with fewer rows than the recipe's: what not all ranks contribute to moves in our order of sums.
TEST(NcclShards, OfFewerContributorsThanPlannedFitInThePlannedMemory) {
  constexpr int kRanks = 3, kContributors = 2;
  const Program program = sharded(kRanks);
  const auto errors = on_ranks(kRanks, [&](DirectExchange& group) {
    connect(group, device_of(group.rank()));
    ShardedSums own(device_of(group.rank()), group, program);
    own.reduce(false, kContributors);
    own.reduce(true, kContributors);
    EXPECT_EQ(own.room(), own.planned());
    const std::vector<std::vector<float>> all = own.gathered();
    for (size_t t = 0; t < all.size(); ++t)
      for (size_t i = 0; i < all[t].size(); ++i)  // of the ranks' factors 1 and 2
        EXPECT_EQ(all[t][i], static_cast<float>(2 * (1 + 2) * ShardedSums::term(t, static_cast<int64_t>(i)))) << t << ", element " << i;
  });
  expect_none(errors);
}

}  // namespace
}  // namespace st

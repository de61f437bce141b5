// scaletrain.hpp: gradients exchanged between ranks during backward.
#include <gtest/gtest.h>

#include "each_rank.h"

namespace {

using namespace scaletrain;

TEST(HppDataParallel, LeavesTheMeanOrTheSumOnEachRank) {
  const Context context;
  test::on_ranks(context, 2, [](const Communicator& own) {
    std::vector<float> w(3, static_cast<float>(own.rank())), v(2, 4);
    const DataParallel mean(own, {{"w", view(w)}, {"v", view(v)}});
    mean.gradient_ready(1);
    EXPECT_THROW(mean.synchronize(), Error);
    mean.gradient_ready(0);
    mean.synchronize();
    EXPECT_EQ(w, std::vector<float>(3, 0.5F));
    EXPECT_EQ(v, std::vector<float>(2, 4));
    const DataParallel sum(own, {{"w", view(w)}}, {ReduceOp::sum, 8});
    for (const bool is_local : {true, false}) {
      sum.no_sync(is_local);
      sum.gradient_ready(0);
      sum.synchronize();
    }
    EXPECT_EQ(w, std::vector<float>(3, 1));
  });
}

}  // namespace

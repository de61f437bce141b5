// scaletrain.hpp: gradients exchanged between ranks while backward goes on.
#include <gtest/gtest.h>

#include <scaletrain.hpp>
#include <thread>
#include <vector>

namespace {

using namespace scaletrain;

TEST(HppDataParallel, LeavesTheMeanOrTheSumOnEachRank) {
  const Context context;
  const std::vector<Communicator> ranks = Communicator::local(context, 2);
  const auto act = [](const Communicator& own) {
    std::vector<float> w(3, static_cast<float>(own.rank())), v(2, 4);
    const DataParallel mean(own, {{"w", view(w)}, {"v", view(v)}});
    mean.gradient_ready(1);
    EXPECT_THROW(mean.synchronize(), Error);
    mean.gradient_ready(0);
    mean.synchronize();
    EXPECT_EQ(w, std::vector<float>(3, 0.5F));
    EXPECT_EQ(v, std::vector<float>(2, 4));
    const DataParallel sum(own, {{"w", view(w)}}, {ReduceOp::sum, 8});
    sum.no_sync(true);
    sum.gradient_ready(0);
    sum.synchronize();
    sum.no_sync(false);
    sum.gradient_ready(0);
    sum.synchronize();
    EXPECT_EQ(w, std::vector<float>(3, 1));
  };
  std::thread other([&] { act(ranks[1]); });
  act(ranks[0]);
  other.join();
}

}  // namespace

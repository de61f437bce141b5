// A rank that waits for its rows, while another rank ends the group, says who did and why.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "../../equivalence/rank_group.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

/// Rows that rank 0's disk does not give, and for which the other ranks wait until `released`.
class LateRows : public Sequences {
 public:
  LateRows(int rank, const std::atomic<bool>& released)
      : Sequences(50, odd_gpt().context, odd_gpt().vocabulary), rank_(rank), released_(released) {}
  bool calls_host() const override { return true; }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override {
    if (rank_ == 0) fail(Code::io, "the disk of these rows is gone");
    while (!released_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Sequences::fill_checked(rows, out);
  }

 private:
  int rank_;
  const std::atomic<bool>& released_;
};

TEST(WaitingForRows, TellsWhichRankHasEndedTheGroupAndWhy) {
  for (const auto& [ranks, stages] : {std::pair{3, 1}, {2, 2}}) {
    std::atomic<bool> released = false;
    std::latch others_have_ended(ranks - 1);
    each_of_group(ranks, [&, all = ranks, of_pipeline = stages](int rank, Communicator& own) {
      Training training;
      training.recipe.ranks = all;
      training.recipe.stages = of_pipeline;
      training.recipe.batch = 2;
      training.recipe.micro_batches = all;
      training.recipe.device = "reference";
      Trainer trainer(training.model(), training.recipe, std::make_shared<LateRows>(rank, released), {}, &own);
      const Error error = error_of([&] { trainer.step(); });
      if (rank == 0) {
        own.abort(error.message());
        others_have_ended.wait();
        released = true;
        EXPECT_EQ(error.code(), Code::io) << error.message();
        return;
      }
      others_have_ended.count_down();
      EXPECT_EQ(error.code(), Code::rank_failed);
      EXPECT_EQ(error.place.rank, 0) << error.message();
      EXPECT_NE(error.message().find("the disk of these rows is gone"), std::string::npos) << error.message();
    });
  }
}

}  // namespace
}  // namespace st

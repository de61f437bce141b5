// scaletrain.hpp: a program's own stages under a schedule.
#include <gtest/gtest.h>

#include <cmath>

#include "each_rank.h"

namespace {

using namespace scaletrain;

constexpr int64_t kElements = 5;

/// y = w x of each part; the last part's loss is the sum of y. Each micro-batch is one array of its number + 1.
struct Scaling {
  std::vector<double> weight_gradients = std::vector<double>(2);  // by chunk
  int32_t fails_at = -1;

  static double input(const StageWork& work) { return work.input.data() != nullptr ? *work.input.as<double>() : work.micro_batch + 1; }
  static double gradient(const StageWork& work) { return work.output_gradient.data() != nullptr ? *work.output_gradient.as<double>() : 1; }
  static void fill(const View& view, double value) {
    if (view.data() != nullptr) std::fill_n(view.as<double>(), view.size(), value);
  }
  Stage stage() {
    return {[this](const StageWork& work) {
              if (work.micro_batch == fails_at) throw std::out_of_range("the sensor is gone");
              EXPECT_EQ(work.input_gradient.data(), nullptr);
              EXPECT_EQ(work.input.data() == nullptr, work.part == 0);
              fill(work.output, (2 + work.part) * input(work));
            },
            [](const StageWork& work) { fill(work.input_gradient, (2 + work.part) * gradient(work)); },
            [this](const StageWork& work) { weight_gradients[static_cast<size_t>(work.chunk)] += input(work) * gradient(work); }};
  }
};

std::vector<OpType> types(size_t chunks) { return std::vector<OpType>(chunks, {DType::f64, {kElements}}); }

TEST(HppPipeline, HasTheSumsOfOneRankInEverySchedule) {
  const Context context;
  // 3 micro-batches, inputs 1 + 2 + 3. The gradient of a weight: its input times the later weights. By stage and chunk.
  const std::vector<std::pair<const char*, std::vector<std::vector<double>>>> sums = {{"gpipe", {{18, 0}, {12, 0}}},
                                                                                      {"1f1b", {{18, 0}, {12, 0}}},
                                                                                      {"zb-h1", {{18, 0}, {12, 0}}},
                                                                                      {"interleaved", {{360, 180}, {240, 144}}},
                                                                                      {"zb-v", {{360, 144}, {240, 180}}}};
  for (const auto& [schedule, expected] : sums)
    test::on_ranks(context, 2, [name = schedule, &sums = expected](const Communicator& own) {
      Scaling host;
      const size_t chunks = sums[0][1] == 0 ? 1 : 2;
      const Pipeline pipeline(own, name, types(chunks), types(chunks), host.stage());
      pipeline.run(3);
      EXPECT_EQ(host.weight_gradients, sums[static_cast<size_t>(own.rank())]) << name;
    });
}

TEST(HppPipeline, TheCallersOwnExceptionArrivesAndItsTextOnTheOtherRank) {
  const Context context;
  test::on_ranks(context, 2, [](const Communicator& own) {
    Scaling host;
    if (own.rank() == 1) host.fails_at = 2;
    const Pipeline pipeline(own, "1f1b", types(1), types(1), host.stage());
    try {
      pipeline.run(4);
      ADD_FAILURE() << "a function has thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(own.rank(), 1);
      EXPECT_STREQ(error.what(), "the sensor is gone");
    } catch (const Error& error) {
      EXPECT_EQ(own.rank(), 0);
      EXPECT_EQ(error.status(), Status::rank_failed);
      EXPECT_NE(std::string(error.what()).find("the sensor is gone"), std::string::npos) << error.what();
    }
  });
}

TEST(HppPipeline, SaysItsScheduleAndHoldsItsStageUntilItIsClosed) {
  const Context context;
  const auto token = std::make_shared<int>(1);
  test::on_ranks(context, 1, [&token](const Communicator& own) {
    const StageFunction nothing = [token](const StageWork&) {};
    {
      Pipeline first(own, "gpipe", types(1), types(1), {nothing, nothing, {}});
      const Pipeline pipeline = std::move(first);
      EXPECT_NE(pipeline.schedule(2).find(R"("bubble":0,"table":"0F0,0F1,0B0,0B1\n")"), std::string::npos) << pipeline.schedule(2);
      pipeline.run(2);
      EXPECT_THROW(first.run(2), Error);
      EXPECT_EQ(token.use_count(), 4);
    }
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_THROW(Pipeline(own, "gpipe", types(1), types(2), {nothing, nothing, {}}), Error);
    EXPECT_THROW(Pipeline(own, "gpipe", types(1), types(1), {nothing, {}, {}}), Error);
    const std::vector<OpType> wide = {{DType::f32, std::vector<int64_t>(9, 1)}};
    EXPECT_THROW(Pipeline(own, "gpipe", wide, wide, {nothing, nothing, {}}), Error);
  });
}

}  // namespace

#include "parts/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <thread>

#include "base/text.h"
#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr int64_t kElements = 37;

/// A host's model of scaling parts, y = w x + part: the gradient of a weight is a sum over the micro-batches, in their order.
class Host {
 public:
  explicit Host(int32_t chunks) : weight_gradients_(static_cast<size_t>(chunks)), kept_(static_cast<size_t>(chunks)) {}

  void compute(const Pipeline::Work& work) {
    const float w = 0.9F + 0.03F * static_cast<float>(work.part);
    const auto *input = static_cast<const float*>(work.input), *output_gradient = static_cast<const float*>(work.output_gradient);
    auto& kept = kept_[static_cast<size_t>(work.chunk)];
    if (kept.size() <= static_cast<size_t>(work.micro_batch)) kept.resize(static_cast<size_t>(work.micro_batch) + 1);
    std::vector<float>& y = kept[static_cast<size_t>(work.micro_batch)];
    for (int64_t i = 0; i < kElements; ++i) {
      const auto at = static_cast<size_t>(i);
      const float x = input != nullptr ? input[i] : 0.1F * static_cast<float>(i + 3 * work.micro_batch);
      if (work.phase == Phase::forward) {
        y.resize(kElements);
        y[at] = w * x + static_cast<float>(work.part);
        if (work.output != nullptr) static_cast<float*>(work.output)[i] = y[at];
        continue;
      }
      const float dy = output_gradient != nullptr ? output_gradient[i] : y[at] - 1;  // the last part has the loss
      if (work.phase == Phase::backward_weight)
        weight_gradients_[static_cast<size_t>(work.chunk)] += x * dy;
      else if (work.input_gradient != nullptr)
        static_cast<float*>(work.input_gradient)[i] = w * dy;
    }
  }

  const std::vector<float>& weight_gradients() const { return weight_gradients_; }

 private:
  std::vector<float> weight_gradients_;                // by chunk
  std::vector<std::vector<std::vector<float>>> kept_;  // outputs by chunk and micro-batch
};

std::vector<PipelinePart> chunks_of(int32_t stage, int32_t stages, int32_t chunks, bool is_v) {
  std::vector<PipelinePart> all(static_cast<size_t>(chunks));
  const PipelineSchedule places{.stages = stages,
                                .chunks = chunks,
                                .placement = is_v ? PipelineSchedule::Placement::v : PipelineSchedule::Placement::loop,
                                .actions = {}};
  for (int32_t c = 0; c < chunks; ++c) {
    const int32_t part = places.part_of(stage, c);
    if (part > 0) all[static_cast<size_t>(c)].input = {DType::f32, {kElements}};
    if (part + 1 < stages * chunks) all[static_cast<size_t>(c)].output = {DType::f32, {kElements}};
  }
  return all;
}

/// Runs `body` on all stages, as threads; returns their exceptions.
std::vector<std::exception_ptr> on_stages(int32_t stages, const std::function<void(Communicator& ranks)>& body) {
  auto group = make_thread_group(stages);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(stages));
  std::vector<std::thread> threads;
  for (int32_t s = 0; s < stages; ++s)
    threads.emplace_back([&, s] {
      try {
        CommunicatorOptions options;
        options.deadline = 20;
        DirectExchange ranks(std::move(group[static_cast<size_t>(s)]), options);
        body(ranks);
      } catch (...) {
        errors[static_cast<size_t>(s)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// By part: the gradients of the weights after a run of each of these numbers of micro-batches.
std::vector<float> gradients(const std::string& schedule, int32_t stages, int32_t chunks, std::initializer_list<int32_t> runs) {
  std::vector<float> all(static_cast<size_t>(stages * chunks));
  const auto errors = on_stages(stages, [&](Communicator& ranks) {
    Host host(chunks);
    Pipeline pipeline(ranks, schedule, chunks_of(ranks.rank(), stages, chunks, schedule == "zb-v"), std::make_shared<MemorySource>(), {});
    std::vector<int64_t> in_flight_of(static_cast<size_t>(chunks));
    for (const int32_t micro_batches : runs) {
      pipeline.run(micro_batches, [&](const Pipeline::Work& work) { host.compute(work); });
      for (int32_t c = 0; c < chunks; ++c) {
        int64_t& most = in_flight_of[static_cast<size_t>(c)];
        most = std::max<int64_t>(most, in_flight(pipeline.schedule(), ranks.rank(), c));
      }
    }
    const int64_t frames = std::accumulate(in_flight_of.begin(), in_flight_of.end(), int64_t{0});
    for (int32_t c = 0; c < chunks; ++c)
      all[static_cast<size_t>(pipeline.schedule().part_of(ranks.rank(), c))] = host.weight_gradients()[static_cast<size_t>(c)];
    EXPECT_LE(pipeline.allocated_bytes(), (frames * 4 + chunks * 2) * kElements * 4)
        << "an input, an output and their gradients of those in flight, and what is expected";
    if (runs.size() > 1) return;
    EXPECT_EQ(pipeline.allocated_bytes(), pipeline.buffer_bytes(pipeline.schedule()));
    EXPECT_EQ(pipeline.sent_bytes(), pipeline.send_bytes(pipeline.schedule()));
  });
  for (const auto& error : errors) EXPECT_TRUE(is_error(error_of(error), Code::ok)) << schedule;
  return all;
}

TEST(Pipeline, HasTheSumsOfOneStageInEverySchedule) {
  for (const int32_t parts : {1, 2, 3, 4, 6})
    for (const int32_t m : {1, 2, 3, 5, 8}) {
      const std::vector<float> one = gradients(parts == 1 ? "gpipe" : "interleaved", 1, parts, {m});
      SCOPED_TRACE(text(parts, " parts, ", m, " micro-batches"));
      for (const char* name : {"gpipe", "1f1b", "zb-h1"}) EXPECT_EQ(gradients(name, parts, 1, {m}), one) << name;
      for (const int32_t chunks : {2, 3})
        if (parts % chunks == 0) {
          EXPECT_EQ(gradients("interleaved", parts / chunks, chunks, {m}), one) << chunks << " chunks";
        }
      if (parts % 2 == 0) {
        EXPECT_EQ(gradients("zb-v", parts / 2, 2, {m}), one);
      }
    }
}

TEST(Pipeline, RunsAgainWithAnotherNumberOfMicroBatches) {
  EXPECT_EQ(gradients("1f1b", 3, 1, {2, 7, 1}), gradients("zb-h1", 3, 1, {2, 7, 1}));
  EXPECT_EQ(gradients("0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1B0,1F1,1B1", 2, 1, {2, 2}), gradients("1f1b", 2, 1, {2, 2}));
}

TEST(Pipeline, AFailingStageEndsAllWithItsName) {
  for (const auto& [phase, micro_batch] :
       {std::pair(Phase::forward, 2), std::pair(Phase::backward_input, 2), std::pair(Phase::backward_weight, 2),
        std::pair(Phase::backward_weight, 5)}) {  // the last one: no other stage waits for it
    const auto errors = on_stages(3, [&, phase = phase, micro_batch = micro_batch](Communicator& ranks) {
      Host host(1);
      Pipeline pipeline(ranks, "1f1b", chunks_of(ranks.rank(), 3, 1, false), std::make_shared<MemorySource>(), {});
      pipeline.run(6, [&](const Pipeline::Work& work) {
        if (work.part == 1 && work.micro_batch == micro_batch && work.phase == phase) fail(Code::callback, "the host's reason");
        host.compute(work);
      });
    });
    EXPECT_TRUE(is_error(error_of(errors[1]), Code::callback, {"the host's reason"}));
    for (const size_t other : {size_t{0}, size_t{2}})
      EXPECT_TRUE(is_error(error_of(errors[other]), Code::rank_failed, {"stage 1 has failed: the host's reason"}));
  }
}

/// Each call of these stages takes so long.
std::vector<std::exception_ptr> slow_stages(int32_t stages, double deadline,
                                            const std::function<double(const Pipeline::Work& work)>& seconds) {
  return on_stages(stages, [&](Communicator& ranks) {
    Host host(1);
    CommunicatorOptions options;
    options.deadline = deadline;
    Pipeline pipeline(ranks, "1f1b", chunks_of(ranks.rank(), stages, 1, false), std::make_shared<MemorySource>(), options);
    pipeline.run(2, [&](const Pipeline::Work& work) {
      host.compute(work);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds(work)));
    });
  });
}

TEST(Pipeline, WaitsForLongerThanTheDeadlineWhereEachStageComputesForLess) {
  for (const auto& error : slow_stages(4, 1, [](const Pipeline::Work&) { return 0.15; }))  // 1.35 s from stage 0's forward to its backward
    EXPECT_TRUE(is_error(error_of(error), Code::ok));
}

TEST(Pipeline, AStageThatComputesForLongerThanTheDeadlineIsNamed) {
  const auto errors =
      slow_stages(3, 0.1, [](const Pipeline::Work& work) { return work.part == 1 && work.phase == Phase::backward_input ? 0.4 : 0; });
  for (const auto& error : errors)
    EXPECT_TRUE(is_error(error_of(error), Code::rank_failed,
                         {"stage 1 has computed for longer than the deadline of 0.1 s: backward of part 1, micro-batch 0"}));
}

TEST(Pipeline, RefusesOnAllRanksWhatDoesNotFit) {
  const auto expect = [](const std::function<void(Communicator&)>& body, Code code, const std::vector<std::string>& words) {
    for (const auto& error : on_stages(2, body)) EXPECT_TRUE(is_error(error_of(error), code, words));
  };
  const auto make = [](Communicator& ranks, const std::string& schedule, const std::vector<PipelinePart>& chunks) {
    return Pipeline(ranks, schedule, chunks, std::make_shared<MemorySource>(), {});
  };
  expect([&](Communicator& ranks) { make(ranks, ranks.rank() == 0 ? "1f1b" : "gpipe", chunks_of(ranks.rank(), 2, 1, false)); },
         Code::rank_mismatch, {"another schedule"});
  expect(
      [&](Communicator& ranks) {
        auto chunks = chunks_of(ranks.rank(), 2, 1, false);
        if (ranks.rank() == 1) chunks[0].input.shape = {kElements, 1};
        make(ranks, "1f1b", chunks);
      },
      Code::rank_mismatch, {"part 1 on rank 1", "takes f32[37, 1]", "gives f32[37]"});
  expect([&](Communicator& ranks) { make(ranks, "1f1b", chunks_of(ranks.rank(), 2, 2, false)); }, Code::invalid_argument, {"1 chunk"});
  expect([&](Communicator& ranks) { make(ranks, "0F0,0B0", chunks_of(ranks.rank(), 2, 1, false)); }, Code::invalid_argument,
         {"of 1 stages", "2 ranks"});
  expect(
      [&](Communicator& ranks) {
        make(ranks, "1f1b", chunks_of(ranks.rank(), 2, 1, false)).run(3 + ranks.rank(), [](const Pipeline::Work&) {});
      },
      Code::rank_mismatch, {"runs 4 micro-batches, rank 0 3"});
}

}  // namespace
}  // namespace st

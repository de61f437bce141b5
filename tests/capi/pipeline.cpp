// st_pipeline: a host's own stages under every schedule.
#include <cmath>
#include <string>
#include <vector>

#include "thread_ranks.h"

namespace {

using namespace st::test;

constexpr int64_t kElements = 19;

/// y = w x + part, elementwise; the last part's loss is half the sum of (y - 1)^2.
struct Host {
  explicit Host(int32_t chunks) : weight_gradients(static_cast<size_t>(chunks)) {}

  std::vector<float> weight_gradients;      // by chunk
  std::vector<std::vector<float>> outputs;  // of the last part, by micro-batch
  int32_t fails_at = -1;                    // micro-batch
  int calls = 0;

  static float weight(int32_t part) { return 0.9F + 0.03F * static_cast<float>(part); }
  static float input(const st_stage_work& work, int64_t i) {
    return work.input.data != nullptr ? static_cast<const float*>(work.input.data)[i] : 0.1F * static_cast<float>(i + 3 * work.micro_batch);
  }
  float output_gradient(const st_stage_work& work, int64_t i) const {
    if (work.output_gradient.data != nullptr) return static_cast<const float*>(work.output_gradient.data)[i];
    return outputs[static_cast<size_t>(work.micro_batch)][static_cast<size_t>(i)] - 1;
  }

  static st_status forward(void* user, const st_stage_work* work) {
    Host& host = *static_cast<Host*>(user);
    ++host.calls;
    if (work->micro_batch == host.fails_at) {
      EXPECT_EQ(st_callback_error("the sensor is gone"), ST_OK);
      return ST_IO;
    }
    EXPECT_EQ(work->output_gradient.data, nullptr);
    EXPECT_EQ(work->input_gradient.data, nullptr);
    std::vector<float> own(kElements);
    float* const y = work->output.data != nullptr ? static_cast<float*>(work->output.data) : own.data();
    for (int64_t i = 0; i < kElements; ++i) y[i] = weight(work->part) * input(*work, i) + static_cast<float>(work->part);
    if (work->output.data != nullptr) return ST_OK;
    if (host.outputs.size() <= static_cast<size_t>(work->micro_batch)) host.outputs.resize(static_cast<size_t>(work->micro_batch) + 1);
    host.outputs[static_cast<size_t>(work->micro_batch)] = own;
    return ST_OK;
  }
  static st_status backward_input(void* user, const st_stage_work* work) {
    const Host& host = *static_cast<Host*>(user);
    if (work->input_gradient.data == nullptr) return ST_OK;
    EXPECT_EQ(work->input_gradient.bytes, kElements * 4);
    EXPECT_EQ(work->input_gradient.device, 0);
    for (int64_t i = 0; i < kElements; ++i)
      static_cast<float*>(work->input_gradient.data)[i] = weight(work->part) * host.output_gradient(*work, i);
    return ST_OK;
  }
  static st_status backward_weight(void* user, const st_stage_work* work) {
    Host& host = *static_cast<Host*>(user);
    for (int64_t i = 0; i < kElements; ++i)
      host.weight_gradients[static_cast<size_t>(work->chunk)] += input(*work, i) * host.output_gradient(*work, i);
    return ST_OK;
  }
  static st_status backward_all(void* user, const st_stage_work* work) {
    const st_status status = backward_weight(user, work);
    return status == ST_OK ? backward_input(user, work) : status;
  }
};

st_pipeline_callbacks callbacks_of_host() {
  auto callbacks = filled(st_pipeline_callbacks_init);
  callbacks.forward = Host::forward;
  callbacks.backward_input = Host::backward_input;
  callbacks.backward_weight = Host::backward_weight;
  return callbacks;
}

/// The same type between all parts.
std::vector<st_op_type> types(int32_t chunks, int64_t elements = kElements) {
  return std::vector<st_op_type>(static_cast<size_t>(chunks), {ST_F32, 1, {elements}});
}

/// By stage, the gradients of its chunks' weights after a run.
std::vector<std::vector<float>> gradients(const char* schedule, int stages, int32_t chunks, int32_t micro_batches,
                                          const st_pipeline_callbacks& callbacks) {
  const ThreadRanks ranks(stages);
  std::vector<std::vector<float>> all(static_cast<size_t>(stages));
  ranks.each([&](int rank, st_communicator* own) {
    Host host(chunks);
    const auto alike = types(chunks);
    const auto pipeline = hold<HeldPipeline>(st_pipeline_create, own, schedule, chunks, alike.data(), alike.data(), &callbacks, &host);
    EXPECT_TRUE(works(st_pipeline_run(pipeline, micro_batches)));
    all[static_cast<size_t>(rank)] = host.weight_gradients;
  });
  return all;
}

TEST(Pipelines, HaveTheGradientsOfOneRankInEverySchedule) {
  const auto callbacks = callbacks_of_host();
  auto unsplit = callbacks_of_host();
  unsplit.backward_input = Host::backward_all;
  unsplit.backward_weight = nullptr;
  for (const int32_t m : {1, 5}) {
    const std::vector<float> one = gradients("interleaved", 1, 4, m, callbacks)[0];  // by part
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
      EXPECT_EQ(gradients(schedule, 4, 1, m, callbacks), (std::vector<std::vector<float>>{{one[0]}, {one[1]}, {one[2]}, {one[3]}}));
      EXPECT_EQ(gradients(schedule, 4, 1, m, unsplit), gradients(schedule, 4, 1, m, callbacks));
    }
    EXPECT_EQ(gradients("interleaved", 2, 2, m, callbacks), (std::vector<std::vector<float>>{{one[0], one[2]}, {one[1], one[3]}}));
    EXPECT_EQ(gradients("zb-v", 2, 2, m, callbacks), (std::vector<std::vector<float>>{{one[0], one[3]}, {one[1], one[2]}}));
  }
}

TEST(Pipeline, SaysWhatARunIs) {
  const ThreadRanks ranks(2);
  const auto callbacks = callbacks_of_host();
  ranks.each([&](int rank, st_communicator* own) {
    Host host(1);
    const auto alike = types(1);
    const auto pipeline = hold<HeldPipeline>(st_pipeline_create, own, "1f1b", 1, alike.data(), alike.data(), &callbacks, &host);
    const char* json = nullptr;
    EXPECT_TRUE(works(st_pipeline_schedule(pipeline, 4, &json)));
    // Rank 0 has outputs and their gradients of two micro-batches, rank 1 an input and its gradient of one, and each has the gradient or
    // input that it expects next; each sends four messages.
    const std::string buffers = std::to_string((rank == 0 ? 5 : 3) * kElements * 4);
    EXPECT_EQ(std::string(json), R"({"stages":2,"chunks":1,"micro_batches":4,"in_flight":[2,1],"buffer_bytes":)" + buffers +
                                     R"(,"send_bytes":)" + std::to_string(4 * kElements * 4) +
                                     R"(,"bubble":0.2,"table":"0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"})");
    EXPECT_EQ(host.calls, 0);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_pipeline_schedule(pipeline, 0, &json), {"1 to 1048576", "got 0"}));
    EXPECT_TRUE(works(st_pipeline_run(pipeline, 4)));
    EXPECT_EQ(host.calls, 4);
  });
}

TEST(Pipeline, ACallbackThatFailsEndsAllRanks) {
  const ThreadRanks ranks(3);
  const auto callbacks = callbacks_of_host();
  ranks.each([&](int rank, st_communicator* own) {
    Host host(1);
    if (rank == 1) host.fails_at = 2;
    const auto alike = types(1);
    const auto pipeline = hold<HeldPipeline>(st_pipeline_create, own, "zb-h1", 1, alike.data(), alike.data(), &callbacks, &host);
    const st_status status = st_pipeline_run(pipeline, 6);
    if (rank == 1)
      EXPECT_TRUE(fails(ST_CALLBACK, status, {"forward of part 1, micro-batch 2", "the sensor is gone"}));
    else
      EXPECT_TRUE(fails(ST_RANK_FAILED, status, {"stage 1 has failed", "the sensor is gone"}));
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_communicator_barrier(own, nullptr, nullptr), {"stage 1 has failed"}));
  });
}

TEST(Pipeline, RefusesWhatDoesNotFit) {
  const auto callbacks = callbacks_of_host();
  const auto expect = [&](const char* schedule, int32_t n, const std::vector<st_op_type>& types, st_status status,
                          std::initializer_list<std::string_view> words, const st_pipeline_callbacks* given) {
    const ThreadRanks ranks(2);
    ranks.each([&](int, st_communicator* own) {
      HeldPipeline pipeline;
      EXPECT_TRUE(fails(status, st_pipeline_create(own, schedule, n, types.data(), types.data(), given, nullptr, pipeline.out()), words));
      EXPECT_TRUE(works(st_communicator_barrier(own, nullptr, nullptr))) << "the group stays usable";
    });
  };
  const auto alike = types(2);
  expect("2f2b", 1, alike, ST_INVALID_ARGUMENT, {"\"2f2b\"", "gpipe, 1f1b"}, &callbacks);
  expect("1f1b", 2, alike, ST_INVALID_ARGUMENT, {"1 chunk(s) a stage, got 2"}, &callbacks);
  expect("1f1b", 0, alike, ST_INVALID_ARGUMENT, {"n is 0"}, &callbacks);
  expect("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", 1, alike, ST_INVALID_ARGUMENT, {"never ends", "stage 0 waits in 0B0"}, &callbacks);
  const auto none = filled(st_pipeline_callbacks_init);
  expect("1f1b", 1, alike, ST_INVALID_ARGUMENT, {"forward and backward_input are needed"}, &none);
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    HeldPipeline pipeline;
    const auto some = types(1), others = types(1, kElements + rank);
    EXPECT_TRUE(fails(ST_RANK_MISMATCH, st_pipeline_create(own, "1f1b", 1, others.data(), some.data(), &callbacks, nullptr, pipeline.out()),
                      {"part 1", "takes f32[20]", "gives f32[19]"}));
    const st_op_type bad[] = {{ST_BOOL, 1, {4}}, {ST_F32, 0, {}}, {ST_F32, 9, {}}, {ST_F32, 1, {-1}}, {ST_F32, 2, {1LL << 40, 1LL << 40}}};
    for (const st_op_type& type : bad)
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_pipeline_create(own, "1f1b", 1, &type, &type, &callbacks, nullptr, pipeline.out()),
                        {rank == 0 ? "the output of chunk 0" : "the input of chunk 0"}));
  });
}

TEST(Pipeline, IsBusyWithinItsCallbacks) {
  const ThreadRanks ranks(1);
  struct Nested {
    st_pipeline* pipeline = nullptr;
    st_communicator* own = nullptr;
  } nested;
  auto callbacks = callbacks_of_host();
  callbacks.forward = [](void* user, const st_stage_work*) {
    const Nested& it = *static_cast<Nested*>(user);
    EXPECT_EQ(st_pipeline_run(it.pipeline, 1), ST_BUSY);
    EXPECT_EQ(st_communicator_barrier(it.own, nullptr, nullptr), ST_BUSY);
    return st_status{ST_OK};
  };
  callbacks.backward_input = [](void*, const st_stage_work*) { return st_status{ST_OK}; };
  callbacks.backward_weight = nullptr;
  const auto alike = types(1);
  const auto pipeline = hold<HeldPipeline>(st_pipeline_create, ranks[0], "gpipe", 1, alike.data(), alike.data(), &callbacks, &nested);
  nested = {pipeline, ranks[0]};
  EXPECT_TRUE(works(st_pipeline_run(pipeline, 2)));
}

}  // namespace

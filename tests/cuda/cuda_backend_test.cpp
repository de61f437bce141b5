// The plug-in's backend, on the simulated device, as the library sees it.
#include "backend/backend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "backend/device_registry.h"
#include "device_call.h"
#include "simulated_host.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

std::unique_ptr<Backend> simulated(int index = 0) { return open_device(text("cuda-simulated:", index), nullptr); }

DeviceCall sum_of_two(Backend& backend) {
  DeviceCall call(backend, Op::add);
  call.input<float>(DType::f32, {3}, {1, 2, 3}).input<float>(DType::f32, {3}, {10, 20, 30}).output(DType::f32, {3});
  return call;
}

/// On a thread that has chosen no device.
template <class Body>
void on_a_fresh_thread(const Body& body) {
  std::thread(body).join();
}

std::unique_ptr<Trainer> trainer_on(int device) {
  return Training{.device = text("cuda-simulated:", device), .recipe = {.batch = 2}}.trainer();
}

// The first test that opens a device: contexts last.
TEST(CudaBackend, MakesAContextOfItsOwnDeviceAlone) {
  const auto& host = simulated::host_runtime();
  ASSERT_EQ(host.contexts(), 0U) << "of tests before";
  uint32_t made = 0;
  for (const int device : {1, 2}) {
    std::unique_ptr<Trainer> trainer;
    on_a_fresh_thread([&] { trainer = trainer_on(device); });
    on_a_fresh_thread([&] { trainer->step(); });
    on_a_fresh_thread([&] { trainer.reset(); });
    EXPECT_EQ(host.contexts(), made |= 1U << device);
  }
}

TEST(CudaBackend, RunsAndRecordsPreparedKernels) {
  const auto backend = simulated(1);
  EXPECT_EQ(backend->name(), "cuda-simulated");
  EXPECT_FALSE(backend->is_host_memory());
  DeviceCall call = sum_of_two(*backend);
  const auto kernel = call.prepare();
  const auto stream = backend->make_stream();
  kernel->enqueue(*stream);
  stream->finish();
  EXPECT_EQ(call.out(), (std::vector<float>{11, 22, 33}));
  ASSERT_TRUE(stream->can_record());
  stream->begin_recording();
  kernel->enqueue(*stream);
  const auto recording = stream->end_recording();
  const std::vector<float> others = {4, 5, 6};
  backend->to_device(call.inputs()[0].data, others.data(), 12);
  recording->launch(*stream);
  stream->finish();
  EXPECT_EQ(call.out(), (std::vector<float>{14, 25, 36}));
}

TEST(CudaBackend, ThrowsAnIndexOutOfRangeWhereTheHostWaitsAndUpdatesNothing) {
  const auto backend = simulated();
  DeviceCall first(*backend, Op::embedding), second(*backend, Op::embedding), update(*backend, Op::sgd);
  const std::vector<float> weight = {1, 2, 3, 4};
  for (DeviceCall* const call : {&first, &second}) call->input<float>(DType::f32, {2, 2}, weight);
  first.input<int32_t>(DType::i32, {2, 2}, {0, 1, 1, 0}).output(DType::f32, {2, 2, 2});
  second.input<int64_t>(DType::i64, {3}, {1, 0, -5}).output(DType::f32, {3, 2});
  update.input<float>(DType::f32, {3}, {1, 1, 1}).input<float>(DType::f32, {}, {1}).input<uint8_t>(DType::boolean, {}, {0});
  update.input<double>(DType::f64, {2}, {0.5, 1}).slot(DType::f32, {3});
  const auto right = first.prepare(), wrong = second.prepare(), step = update.prepare();
  const auto stream = backend->make_stream();
  for (Prepared* const kernel : {right.get(), wrong.get(), step.get()}) kernel->enqueue(*stream);
  const Error error = error_of([&] { stream->finish(); });
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.message(),
            "embedding: token -5 at [2] is outside the vocabulary 0..1; check the tokenizer and the weight's first dimension");
  EXPECT_EQ(error.place.op, "embedding");
  EXPECT_EQ(stream->failed(), wrong.get());
  EXPECT_EQ(update.first_slot(), (std::vector<float>{0, 0, 0}));
  // The stream is as before: what comes now is not about that index.
  right->enqueue(*stream);
  step->enqueue(*stream);
  stream->finish();
  EXPECT_EQ(stream->failed(), nullptr);
  EXPECT_EQ(first.out(), (std::vector<float>{1, 2, 3, 4, 3, 4, 1, 2}));
  EXPECT_EQ(update.first_slot(), (std::vector<float>{-0.5F, -0.5F, -0.5F}));
}

TEST(CudaBackend, RefusesWhatItsKernelsCannotDo) {
  const auto backend = simulated();
  EXPECT_EQ(error_of([&] { simulated(8); }).message(),
            "context: device must be cuda-simulated:0 to cuda-simulated:7, got \"cuda-simulated:8\"");
  EXPECT_FALSE(backend->has_kernel(Op::host));
  EXPECT_EQ(error_of([&] { backend->prepare(Op::host, {}); }).message(), "cuda-simulated: no kernel for host");
  for (const Error& error : {error_of([&] { backend->kernels(); }), error_of([&] { backend->gemm(); }),
                             error_of([&] { backend->of_host(nullptr); }), error_of([&] { backend->allocate_in_file(4, "/tmp"); })})
    EXPECT_EQ(error.code(), Code::unsupported) << error.message();
}

TEST(CudaBackend, LeavesAHostsOwnContextCurrent) {
  const auto& host = simulated::host_runtime();
  std::unique_ptr<Trainer> trainer;
  const std::function<void()> calls[] = {[&] { trainer = trainer_on(1); }, [&] { trainer->step(); }, [&] { trainer.reset(); }};
  for (const auto& call : calls) {
    host.push_context(0);
    call();
    EXPECT_TRUE(host.pop_context());
  }
}

TEST(CudaBackendDeathTest, AKernelThatFailsIsNamedWhereTheHostWaitsForEachAndTheHostGoesOn) {
  const auto fails = [](const char* waits) {
    setenv("SCALETRAIN_CUDA_SYNC", waits, 1);
    const auto backend = simulated();
    DeviceCall call = sum_of_two(*backend);
    float hosts[3] = {};
    call.inputs()[1].data = {reinterpret_cast<uintptr_t>(hosts)};
    const auto kernel = call.prepare();
    const auto stream = backend->make_stream();
    const Error error = error_of([&] {
      kernel->enqueue(*stream);
      stream->finish();
    });
    const Error later = error_of([&] { backend->allocate(4, MemoryRole::other); });
    const double loss = Training{.device = "cpu", .recipe = {.batch = 2}}.trainer()->step().loss;
    std::fprintf(stderr, "%s|%s|%d|%s|%s", error.message().c_str(), error.place.op.c_str(), stream->can_record(), later.message().c_str(),
                 loss > 0 ? "trains" : "does not train");
    std::_Exit(7);  // the device is lost to this process
  };
  EXPECT_EXIT(
      fails("1"), testing::ExitedWithCode(7),
      "^add: cuda: cudaStreamSynchronize returned 719 .*start a new process.*\\|add\\|0\\|cuda: .* start a new process.*\\|trains$");
  EXPECT_EXIT(fails("0"), testing::ExitedWithCode(7),
              "^cuda: cuda.* returned 719 .*SCALETRAIN_CUDA_SYNC=1 .*\\|\\|1\\|cuda: .* start a new process.*\\|trains$");
}

}  // namespace
}  // namespace st

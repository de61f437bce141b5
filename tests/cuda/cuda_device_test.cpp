// The plug-in's device, memory, streams and events, on a runtime that is not CUDA's, in every order of streams.
#include "backend/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <device/threads.h>

#include "backend/cuda/device_profile.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/runtime_status.h"
#include "backend/kernel_side.h"
#include "base/text.h"
#include "exec/recorded_kernels.h"
#include "models/mlp.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"
#include "refusal.h"
#include "simulated_driver.h"
#include "simulated_runtime.h"
#include "thrown_error.h"
#include "unit/base/allocations.h"

namespace st::cuda {
namespace {

constexpr int64_t kMemory = 1 << 20;  // of a device

class CudaDevices : public testing::TestWithParam<Order> {
 protected:
  CudaDevices() { simulated::start_runtime({.order = GetParam(), .memory = kMemory}); }
  ~CudaDevices() override { EXPECT_EQ(simulated::live_objects(), 0); }

  std::vector<float> floats(CudaDevice& device, Address at, int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    device.to_host(values.data(), at, n * 4);
    return values;
  }

  std::shared_ptr<MemorySource> memory_ = std::make_shared<MemorySource>();
};
const char* name_of(Order order) { return order == Order::eager ? "Eager" : order == Order::late ? "Late" : "Random"; }
INSTANTIATE_TEST_SUITE_P(, CudaDevices, testing::ValuesIn(kOrders), [](const auto& given) { return name_of(given.param); });

int current_device() {
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  return device;
}

TEST_P(CudaDevices, BuffersAreZeroedAndCounted) {
  CudaDevice device(simulated::held_context(0), memory_);
  const auto buffer = device.allocate(4000, MemoryRole::stash), none = device.allocate(0, MemoryRole::stash);
  EXPECT_EQ(floats(device, buffer->data(), 1000), std::vector<float>(1000));
  EXPECT_EQ(buffer->size(), 4000);
  EXPECT_FALSE(none->data());
  EXPECT_EQ(memory_->account().uses().of[static_cast<size_t>(MemoryRole::stash)].now, 4000);
  EXPECT_TRUE(device.holds(buffer->data() + 96, 3904));
  EXPECT_FALSE(device.holds(buffer->data() + 96, 3905));
  EXPECT_FALSE(device.holds(address_of(&device), 1));
  EXPECT_EQ(device.free_bytes(), kMemory - 4000);
  EXPECT_EQ(error_of([&] { buffer->move_to_file("/tmp"); }).code(), Code::unsupported);
}

TEST_P(CudaDevices, ABufferMayOutliveItsDevice) {
  std::unique_ptr<Buffer> buffer;
  std::unique_ptr<PinnedMemory> pinned;
  {
    CudaDevice device(simulated::held_context(1), memory_);
    buffer = device.allocate(64, MemoryRole::other);
    pinned = device.allocate_pinned(32);
  }
  EXPECT_EQ(memory_->account().bytes(), 96);
  buffer.reset();
  pinned.reset();
  EXPECT_EQ(memory_->account().bytes(), 0);
}

TEST_P(CudaDevices, TooLittleMemoryIsSaidWithBothSizes) {
  CudaDevice device(simulated::held_context(1), memory_);
  const auto half = device.allocate(kMemory / 2, MemoryRole::parameters);
  const Error error = error_of([&] { device.allocate(kMemory / 2 + 1, MemoryRole::parameters); });
  EXPECT_EQ(error.code(), Code::out_of_memory);
  EXPECT_EQ(
      error.message(),
      "allocate: cuda:1 has not 524289 bytes for parameters, of its memory 524288 are free; end other programs that use it (nvidia-smi "
      "lists them), or see what saves memory and what it costs: scaletrain plan, or st_plan_create");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the host's own calls do not see it";
  EXPECT_EQ(memory_->account().bytes(), kMemory / 2);
}

TEST(CudaErrors, OfADeviceThatAnotherProcessHasNameTheWayOut) {
  const Error error = error_of([] { must(cudaErrorDevicesUnavailable, "cuDevicePrimaryCtxRetain"); });
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_TRUE(says(error.message(),
                   {"cuDevicePrimaryCtxRetain", "another process has it (compute mode Exclusive_Process)", "nvidia-smi -c DEFAULT"}));
}

TEST_P(CudaDevices, AnyAllocationMayFailAndLeavesNothing) {
  for (int64_t n = 1;; ++n) {
    simulated::fail_allocation(n);
    const Error error = error_of([&] {
      CudaDevice device(simulated::held_context(0), memory_);
      const auto buffer = device.allocate(400, MemoryRole::other);
      const auto pinned = device.allocate_pinned(400);
      const auto stream = device.make_stream();
      const auto event = device.make_event();
      stream->copy_to_device(buffer->data(), pinned->data(), 400);
      stream->finish();
    });
    EXPECT_EQ(simulated::live_objects(), 0);
    EXPECT_EQ(memory_->account().bytes(), 0);
    if (!simulated::has_allocation_failed()) {
      EXPECT_EQ(n, 6) << "a device's own stream, a buffer, pinned memory, a stream and an event";
      EXPECT_EQ(error.code(), Code::ok);
      break;
    }
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_NE(error.message().find(n == 2 || n == 3 ? "400 bytes" : "returned 2 (cudaErrorMemoryAllocation: out of memory)"),
              std::string::npos)
        << error.message();
  }
}

TEST_P(CudaDevices, StreamsRunInOrderAndWaitForEvents) {
  constexpr int64_t kFloats = 3000;
  CudaDevice device(simulated::held_context(0), memory_);
  const auto x = device.allocate(kFloats * 4, MemoryRole::other), y = device.allocate(kFloats * 2, MemoryRole::other),
             z = device.allocate(kFloats * 4, MemoryRole::other);
  const auto up = device.allocate_pinned(kFloats * 4), down = device.allocate_pinned(kFloats * 4);
  const auto first = device.make_stream(), second = device.make_stream();
  const auto uploaded = device.make_event(), computed = device.make_event(), downloaded = device.make_event();
  for (int round = 0; round < 4; ++round) {
    for (int64_t i = 0; i < kFloats; ++i) reinterpret_cast<float*>(up->data())[i] = static_cast<float>(i % 200 + round);
    first->copy_to_device(x->data(), up->data(), kFloats * 4);
    first->record(*uploaded);
    enqueue_cast(first->handle(), DType::bf16, pointer_to(y->data()), DType::f32, pointer_to(x->data()), kFloats);
    first->wait(*downloaded);  // of the round before; not recorded at first
    enqueue_cast(first->handle(), DType::f32, pointer_to(z->data()), DType::bf16, pointer_to(y->data()), kFloats);
    first->record(*computed);
    uploaded->wait();
    std::fill_n(reinterpret_cast<float*>(up->data()), kFloats, -1.0F);  // the pinned memory may be written again
    second->wait(*computed);
    second->copy_to_host(down->data(), z->data(), kFloats * 4);
    second->record(*downloaded);
    if (round < 3) continue;
    second->finish();
    for (int64_t i = 0; i < kFloats; ++i) ASSERT_EQ(reinterpret_cast<float*>(down->data())[i], static_cast<float>(i % 200 + 3)) << i;
  }
  first->finish();
}

TEST_P(CudaDevices, ARecordingIsLaunchedAnyNumberOfTimesAndNotWhileItIsMade) {
  CudaDevice device(simulated::held_context(0), memory_);
  const auto x = device.allocate(400, MemoryRole::other), y = device.allocate(200, MemoryRole::other);
  const auto stream = device.make_stream();
  stream->begin_recording();
  enqueue_cast(stream->handle(), DType::bf16, pointer_to(y->data()), DType::f32, pointer_to(x->data()), 100);
  enqueue_fill(stream->handle(), DType::f32, pointer_to(x->data()), 0x40000000, 100);
  const auto recording = stream->end_recording();
  stream->finish();
  EXPECT_EQ(floats(device, x->data(), 100), std::vector<float>(100));
  recording->launch(*stream);
  recording->launch(*stream);
  stream->finish();
  EXPECT_EQ(floats(device, x->data(), 100), std::vector<float>(100, 2.0F));
  std::vector<uint16_t> halves(100);
  device.to_host(halves.data(), y->data(), 200);
  EXPECT_EQ(halves, std::vector<uint16_t>(100, 0x4000));
}

/// The messages of an error within a recording, and of end_recording() after it.
std::string said(const char* called, int number, const char* name, const char* words) {
  return text("cuda: ", called, " returned ", number, " (cudaError", name, ": ", words, ")");
}
std::string unsupported(const char* called) {
  return said(called, 900, "StreamCaptureUnsupported", "operation not permitted when stream is capturing");
}
std::string invalid(const char* called) {
  return said(called, 901, "StreamCaptureInvalidated", "operation failed due to a previous error during capture");
}

class CudaRecordings : public CudaDevices {
 protected:
  void fill(float value) { enqueue_fill(stream_->handle(), DType::f32, pointer_to(x_->data()), std::bit_cast<uint32_t>(value), kFloats); }
  /// After an error, the stream works as before.
  void expect_unharmed() {
    fill(2);
    stream_->finish();
    EXPECT_EQ(floats(device_, x_->data(), kFloats), std::vector<float>(kFloats, 2.0F));
  }
  /// A recording with one error, which makes all of it invalid.
  template <class Call>
  void expect_refused(const std::string& message, const Call& call) {
    stream_->begin_recording();
    fill(1);
    EXPECT_EQ(error_of(call).message(), message);
    EXPECT_EQ(error_of([&] { fill(1); }).message(), invalid("cudaLaunchKernelExC"));
    EXPECT_EQ(error_of([&] { stream_->zero(x_->data(), 4); }).message(), invalid("cudaMemsetAsync"));
    EXPECT_EQ(error_of([&] { stream_->end_recording(); }).message(), invalid("cudaStreamEndCapture"));
    expect_unharmed();
  }

  static constexpr int64_t kFloats = 100;
  CudaDevice device_{simulated::held_context(0), memory_};
  std::unique_ptr<Buffer> x_ = device_.allocate(kFloats * 4, MemoryRole::other);
  std::unique_ptr<CudaStream> stream_ = device_.make_stream(), other_ = device_.make_stream();
};
INSTANTIATE_TEST_SUITE_P(, CudaRecordings, testing::ValuesIn(kOrders), [](const auto& given) { return name_of(given.param); });

TEST_P(CudaRecordings, RefuseWhatTheHostWouldWaitFor) {
  expect_refused(unsupported("cudaMalloc"), [&] { device_.allocate(4, MemoryRole::other); });
  expect_refused(unsupported("cudaMallocHost"), [&] { device_.allocate_pinned(4); });
  expect_refused(unsupported("cudaStreamSynchronize"), [&] { stream_->finish(); });
  expect_refused(unsupported("cudaMemcpyAsync"), [&] {
    std::byte not_pinned[4];
    stream_->copy_to_host(not_pinned, x_->data(), 4);
  });
  const auto event = device_.make_event();
  const char* const captured = "operation not permitted on an event last recorded in a capturing stream";
  const auto ask = [&](const auto& call) {
    stream_->record(*event);
    call();
  };
  expect_refused(said("cudaEventSynchronize", 907, "CapturedEvent", captured), [&] { ask([&] { event->wait(); }); });
  expect_refused(said("cudaEventQuery", 907, "CapturedEvent", captured), [&] { ask([&] { event->has_passed(); }); });
  EXPECT_EQ(error_of([&] { other_->wait(*event); }).message(), said("cudaStreamWaitEvent", 907, "CapturedEvent", captured));
  stream_->record(*event);
  event->wait();
  EXPECT_TRUE(event->has_passed());
}

TEST_P(CudaRecordings, ThatThereIsNoMemoryForHarmNothing) {
  simulated::fail_allocation(1);
  stream_->begin_recording();
  EXPECT_EQ(error_of([&] { stream_->end_recording(); }).code(), Code::out_of_memory);
  const int64_t before = simulated::live_objects();
  stream_->begin_recording();
  fail_allocation(1);  // of the host's: the object that would own the graph
  EXPECT_THROW(stream_->end_recording(), std::bad_alloc);
  fail_allocation(0);
  EXPECT_EQ(simulated::live_objects(), before);
  expect_unharmed();
}

TEST_P(CudaRecordings, ThatAreAbandonedRunNothing) {
  const int64_t before = simulated::live_objects();
  stream_->begin_recording();
  fill(1);
  stream_->abandon_recording();
  stream_->begin_recording();
  error_of([&] { stream_->finish(); });
  stream_->abandon_recording();  // of one that is invalid
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(simulated::live_objects(), before);
  stream_->finish();
  EXPECT_EQ(floats(device_, x_->data(), kFloats), std::vector<float>(kFloats));
  expect_unharmed();
}

/// The error of what is given to a recording, not the one that CUDA returns at its end.
TEST_P(CudaRecordings, OfAPlansKernelsThrowTheFirstError) {
  const auto cpu = make_cpu_backend();
  const Plan plan = plan_training(build_mlp({.inputs = 3, .hidden = {4}, .outputs = 2}), Recipe{.batch = 1}, kernel_needs(*cpu, 1));
  RecordedKernels recorded(plan);
  const auto* const first = recorded.at(segments_of(plan)[0].begin);
  const Error error = error_of([&] { recorded.launch(*stream_, *first, true, [&](size_t) { stream_->finish(); }); });
  EXPECT_EQ(error.message(), unsupported("cudaStreamSynchronize"));
  EXPECT_TRUE(recorded.is_empty());
  recorded.launch(*stream_, *first, true, [&](size_t) { fill(4); });
  stream_->finish();
  EXPECT_EQ(floats(device_, x_->data(), 1), std::vector<float>{4});
}

/// Planted faults: a recording that waits for what is outside of it, one that waits for another one, one whose fork is not joined again or
/// ends it, and a thread that ends another's.
TEST_P(CudaRecordings, WithForksThatCudaRefusesAreRefusedByName) {
  const auto outside = device_.make_event(), fork = device_.make_event();
  other_->record(*outside);
  expect_refused(said("cudaStreamWaitEvent", 905, "StreamCaptureIsolation", "dependency created on uncaptured work in another stream"),
                 [&] { stream_->wait(*outside); });
  other_->begin_recording();
  other_->record(*fork);
  expect_refused(said("cudaStreamWaitEvent", 902, "StreamCaptureMerge", "operation would result in a merge of separate capture sequences"),
                 [&] { stream_->wait(*fork); });
  EXPECT_EQ(error_of([&] { other_->end_recording(); }).message(), invalid("cudaStreamEndCapture"));

  const auto fork_other = [&] {
    stream_->begin_recording();
    stream_->record(*fork);
    other_->wait(*fork);
    other_->zero(x_->data(), 4);
  };
  fork_other();
  fill(1);
  EXPECT_EQ(error_of([&] { stream_->end_recording(); }).message(),
            said("cudaStreamEndCapture", 904, "StreamCaptureUnjoined", "capturing stream has unjoined work"));
  fork_other();
  EXPECT_EQ(error_of([&] { other_->end_recording(); }).message(),
            said("cudaStreamEndCapture", 903, "StreamCaptureUnmatched", "capture was not ended in the same stream as it began"));
  EXPECT_EQ(error_of([&] { other_->zero(x_->data(), 4); }).message(), invalid("cudaMemsetAsync"));
  EXPECT_EQ(error_of([&] { stream_->end_recording(); }).message(), invalid("cudaStreamEndCapture"));
  stream_->begin_recording();
  std::thread([&] {
    EXPECT_EQ(error_of([&] { stream_->end_recording(); }).message(),
              said("cudaStreamEndCapture", 908, "StreamCaptureWrongThread",
                   "attempt to terminate a thread-local capture sequence from another thread"));
    device_.allocate(4, MemoryRole::other);  // this thread records nothing
  }).join();
  EXPECT_EQ(error_of([&] { stream_->end_recording(); }).message(), invalid("cudaStreamEndCapture"));
  other_->finish();
  expect_unharmed();
}

TEST_P(CudaRecordings, MayForkAndJoinOtherStreams) {
  const auto fork = device_.make_event(), join = device_.make_event();
  stream_->begin_recording();
  fill(3);
  stream_->record(*fork);
  other_->wait(*fork);
  other_->zero(x_->data(), 4);
  other_->record(*join);
  stream_->wait(*join);
  const auto recording = stream_->end_recording();
  recording->launch(*stream_);
  stream_->finish();
  EXPECT_EQ(floats(device_, x_->data(), 2), (std::vector<float>{0, 3}));
  other_->finish();
  expect_unharmed();
}

TEST_P(CudaDevices, CopiesOfTheHostsMemoryAreDoneAtOnce) {
  CudaDevice device(simulated::held_context(0), memory_);
  const auto a = device.allocate(400, MemoryRole::other), b = device.allocate(400, MemoryRole::other);
  const std::vector<float> given(100, 2.5F);
  device.to_device(a->data(), given.data(), 400);
  device.copy(b->data(), a->data(), 400);
  EXPECT_EQ(floats(device, b->data(), 100), given);
  device.zero(b->data() + 4, 396);
  EXPECT_EQ(floats(device, b->data(), 2), (std::vector<float>{2.5F, 0}));
  device.to_host(nullptr, {}, 0);
}

TEST_P(CudaDevices, TheHostFindsItsOwnDeviceAgain) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  CudaDevice device(simulated::held_context(0), memory_);
  const auto buffer = device.allocate(400, MemoryRole::other);
  const auto pinned = device.allocate_pinned(4);
  const auto stream = device.make_stream();
  const auto event = device.make_event();
  EXPECT_EQ(current_device(), 1);
  EXPECT_EQ(device.free_bytes(), kMemory - 400) << "of device 0";
  EXPECT_EQ(error_of([&] { device.allocate(int64_t{1} << 40, MemoryRole::other); }).code(), Code::out_of_memory);
  EXPECT_EQ(current_device(), 1);
  // A kernel is launched on the current device.
  const auto launch_one = [&] { enqueue_fill(stream->handle(), DType::f32, pointer_to(buffer->data()), 0, 100); };
  EXPECT_EQ(error_of(launch_one).code(), Code::internal);
  {
    const auto context = simulated::held_context(0);
    const CurrentDevice current(*context);
    launch_one();
    EXPECT_EQ(current_device(), 0);
  }
  EXPECT_EQ(current_device(), 1);
  const Error error = error_of([&] { simulated::held_context(2); });
  EXPECT_EQ(error.message(), "cuda: cuDeviceGet returned 101 (cudaErrorInvalidDevice: invalid device ordinal)");
  EXPECT_EQ(current_device(), 1);
  stream->finish();
}

TEST_P(CudaDevices, AnEventOfAnotherDeviceIsRefused) {
  CudaDevice first(simulated::held_context(0), memory_), second(simulated::held_context(1), memory_);
  const auto stream = first.make_stream();
  const auto event = second.make_event();
  EXPECT_EQ(error_of([&] { stream->record(*event); }).message(),
            "cuda: cudaEventRecord returned 400 (cudaErrorInvalidResourceHandle: invalid resource handle)");
}

TEST_P(CudaDevices, MemoryOfTheHostIsNoDevicesMemory) {
  CudaDevice device(simulated::held_context(0), memory_);
  const auto buffer = device.allocate(400, MemoryRole::other);
  std::vector<float> host(100);
  const auto stream = device.make_stream();
  EXPECT_EQ(error_of([&] { stream->copy(buffer->data(), address_of(host.data()), 400); }).message(),
            "cuda: cudaMemcpyAsync returned 1 (cudaErrorInvalidValue: invalid argument)");
  EXPECT_EQ(error_of([&] { device.to_host(host.data(), buffer->data() + 4, 400); }).code(), Code::unavailable) << "past its end";
}

KERNEL(64) waits_for_ever(int* /*y*/) {
  if (thread_index() < 32) sync_block();
}

TEST_P(CudaDevices, AFaultOfAKernelIsToldByFinishAndLasts) {
  CudaDevice device(simulated::held_context(0), memory_);
  const auto buffer = device.allocate(400, MemoryRole::other);
  const auto stream = device.make_stream();
  launch(stream->handle(), {1, 64}, waits_for_ever, pointer_to<int>(buffer->data()));
  const std::string lost =
      "returned 719 (cudaErrorLaunchFailure: unspecified launch failure); this process cannot use the device any more: save nothing from "
      "it, and start a new process, with SCALETRAIN_CUDA_SYNC=1 to see whose kernel it was";
  EXPECT_EQ(error_of([&] { stream->finish(); }).message(), "cuda: cudaStreamSynchronize " + lost);
  EXPECT_NE(simulated::kernel_failure().find("waits at sync_block"), std::string::npos) << simulated::kernel_failure();
  EXPECT_EQ(error_of([&] { device.free_bytes(); }).message(), "cuda: cudaMemGetInfo " + lost);
  simulated::start_runtime({.order = GetParam(), .memory = kMemory});  // so that the buffer can go
}

/// Those of which the toolkit's header says so.
std::vector<cudaError_t> lasting_errors() {
  std::ifstream header(ST_CUDA_INCLUDE "/driver_types.h");
  std::vector<cudaError_t> found;
  std::string words, line;
  for (int code = 0; std::getline(header, line);) {
    for (std::istringstream parts(line); parts >> line;)
      if (line != "*") words.append(line).append(1, ' ');
    const size_t name = words.find(" cudaError"), is = words.find(" = ", name);
    if (name == std::string::npos || is == std::string::npos || std::sscanf(words.c_str() + is, " = %d,", &code) != 1) continue;
    if (words.find("the process must be terminated and relaunched") < name) found.push_back(static_cast<cudaError_t>(code));
    words.clear();
  }
  return found;
}

TEST(RuntimeStatus, ErrorsAfterWhichCudaNeedsANewProcessSaySo) {
  const std::vector<cudaError_t> lasting = lasting_errors();
  EXPECT_GE(lasting.size(), 13U);
  for (const cudaError_t status : lasting)
    EXPECT_NE(error_of([&] { must(status, "f"); }).message().find("start a new process"), std::string::npos) << status;
  for (const cudaError_t status : {cudaErrorInvalidValue, cudaErrorMemoryAllocation, cudaErrorDevicesUnavailable})
    EXPECT_EQ(error_of([&] { must(status, "f"); }).message().find("start a new process"), std::string::npos) << status;
}

TEST(DeviceCode, OfANewerToolkitThanTheDriverIsRefusedWhereItIsToBeCompiled) {
  check_compiles("compute_80:sm_103/148", 13020, 13020);
  check_compiles("sm_90a/132", 13000, 13020);
  const Error error = error_of([] { check_compiles("compute_80:sm_103/148", 13000, 13020); });
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_TRUE(says(error.message(), {"(compute_80:sm_103/148)", "of CUDA 13.0", "the toolkit 13.2", "update the driver"}));
}

TEST_P(CudaDevices, AKernelThatGetsAnAddressOfTheHostsFails) {
  CudaDevice device(simulated::held_context(0), memory_);
  std::vector<float> host(100);
  const auto stream = device.make_stream();
  enqueue_fill(stream->handle(), DType::f32, host.data(), 0, 100);
  EXPECT_EQ(error_of([&] { stream->finish(); }).code(), Code::unavailable);
  EXPECT_EQ(simulated::kernel_failure(), "device memory: a kernel got an address of the host's");
  simulated::start_runtime({.order = GetParam(), .memory = kMemory});
}

}  // namespace
}  // namespace st::cuda

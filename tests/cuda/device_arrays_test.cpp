// Arrays that a host has in a device's memory, written and read on a stream of its own, by the C ABI on device cuda-simulated. In the
// orders late and random a wait that is missing shows: the host's copies have not run when a call begins.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "capi/dlpack_of_others.h"
#include "capi/held.h"
#include "simulated_host.h"

namespace {

using namespace st::test;
using st::simulated::HostRuntime;

constexpr int kDevice = 1;                // of the contexts
constexpr int32_t kNumber = kDevice + 1;  // in views
constexpr int64_t kRows = 8;

HeldContext opened(const std::string& device) {
  auto options = filled(st_context_options_init);
  options.device = device.c_str();
  options.threads = 1;
  return hold<HeldContext>(st_context_create, &options);
}

const HostRuntime& host() { return st::simulated::host_runtime(); }

bool is_late() {
  const char* const order = std::getenv("SCALETRAIN_SIMULATED_ORDER");
  return order != nullptr && std::string_view(order) == "late";
}

class HostStream {
 public:
  explicit HostStream(int device = kDevice) : handle_(host().make_stream(device)) {}
  ~HostStream() { host().end_stream(handle_); }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  operator int64_t() const { return handle_; }

 private:
  int64_t handle_;
};

/// Floats in a device's memory, and what the host copies there and back.
class DeviceArray {
 public:
  explicit DeviceArray(std::vector<int64_t> dims, int device = kDevice, int32_t number = kNumber)
      : dims_(std::move(dims)), number_(number) {
    for (const int64_t dim : dims_) count_ *= dim;
    data_ = static_cast<float*>(host().allocate(device, bytes()));
  }
  ~DeviceArray() {
    host().free(data_);
    for (float* const pinned : pinned_) host().free_pinned(pinned);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  int64_t bytes() const { return count_ * 4; }
  float* data() const { return data_; }
  int64_t* dims() { return dims_.data(); }
  st_view view() const {
    return {.dtype = ST_F32,
            .rank = static_cast<int32_t>(dims_.size()),
            .dims = dims_.data(),
            .strides = nullptr,
            .data = data_,
            .bytes = bytes(),
            .device = number_,
            .reserved = 0};
  }
  /// Gives the copies to the stream and does not wait.
  void write(int64_t stream, const std::vector<float>& values) {
    float* const from = pin();
    std::memcpy(from, values.data(), static_cast<size_t>(bytes()));
    host().to_device(stream, data_, from, bytes());
  }
  /// Read what is returned after finish() of the stream.
  std::span<const float> read(int64_t stream) {
    float* const to = pin();
    host().to_host(stream, to, data_, bytes());
    return {to, static_cast<size_t>(count_)};
  }

 private:
  float* pin() { return pinned_.emplace_back(static_cast<float*>(host().allocate_pinned(bytes()))); }

  std::vector<int64_t> dims_;
  int32_t number_;
  int64_t count_ = 1;
  float* data_;
  std::vector<float*> pinned_;
};

std::vector<float> values_of(std::span<const float> values) { return {values.begin(), values.end()}; }

std::vector<float> rows_of(float first) {
  std::vector<float> rows;
  for (int64_t i = 0; i < kRows; ++i) rows.push_back(first + 0.25F * static_cast<float>(i));
  return rows;
}

std::vector<float> sines(const std::vector<float>& x) {
  std::vector<float> y;
  for (const float each : x) y.push_back(std::sin(each));
  return y;
}

/// A model of one number on the device, and its trainer.
struct Trained {
  explicit Trained(const char* recipe_json = R"({"batch": 8, "warmup": 0, "lr": 0.01, "ema_decay": 0.5})",
                   const std::string& device = "cuda-simulated:1")
      : context(opened(device)) {
    EXPECT_TRUE(works(st_model_builtin(context, "mlp", R"({"inputs": 1, "hidden": [8], "outputs": 1})", 1, model.out())));
    EXPECT_TRUE(works(st_recipe_create(recipe_json, recipe.out())));
    EXPECT_TRUE(works(st_recipe_set(recipe, "device", ('"' + device + '"').c_str())));
    EXPECT_TRUE(works(st_trainer_create(model, recipe, nullptr, trainer.out())));
  }
  st_status step(const st_view& x, const st_view& y) {
    const st_named_view batch[] = {{"x", x}, {"y", y}};
    return st_trainer_step(trainer, 2, batch, nullptr);
  }
  /// Arrays of the host.
  st_status step(std::vector<float> x, std::vector<float> y) {
    const int64_t dims[] = {static_cast<int64_t>(x.size()), 1};
    const auto bytes = static_cast<int64_t>(x.size() * 4);
    return step(st_view{ST_F32, 2, dims, nullptr, x.data(), bytes, 0, 0}, st_view{ST_F32, 2, dims, nullptr, y.data(), bytes, 0, 0});
  }
  std::string digest() const { return text_of(st_trainer_digest, trainer); }

  HeldContext context;
  HeldModel model;
  HeldRecipe recipe;
  HeldTrainer trainer;
};

TEST(DeviceArrays, ABatchIsReadAfterTheHostsStreamHasWrittenIt) {
  for (const char* const recipe : {R"({"batch": 8, "warmup": 0})", R"({"batch": 2, "accumulate": 4, "warmup": 0})",
                                   R"({"batch": 2, "accumulate": 2, "ranks": 2, "zero": 1, "warmup": 0})"}) {
    Trained by_host(recipe), by_device(recipe);
    const HostStream stream;
    ASSERT_TRUE(works(st_context_use_stream(by_device.context, stream)));
    DeviceArray x({kRows, 1}), y({kRows, 1});
    for (const float first : {-1.0F, 0.5F, 2.0F}) {
      ASSERT_TRUE(works(by_host.step(rows_of(first), sines(rows_of(first)))));
      x.write(stream, rows_of(first));
      y.write(stream, sines(rows_of(first)));
      ASSERT_TRUE(works(by_device.step(x.view(), y.view())));
    }
    EXPECT_EQ(by_device.digest(), by_host.digest()) << recipe;
  }
}

TEST(DeviceArrays, AreInTheOrderOfTheDefaultStreamUnlessAnotherIsSet) {
  const char* const recipe = R"({"batch": 8, "warmup": 0})";
  Trained by_host(recipe, "cuda-simulated"), by_device(recipe, "cuda-simulated");
  EXPECT_EQ(asked<int64_t>(st_context_stream, by_device.context), 1);
  DeviceArray x({kRows, 1}, 0, 1), y({kRows, 1}, 0, 1);
  x.write(1, rows_of(0));
  y.write(1, sines(rows_of(0)));
  ASSERT_TRUE(works(by_device.step(x.view(), y.view())));
  ASSERT_TRUE(works(by_host.step(rows_of(0), sines(rows_of(0)))));
  EXPECT_EQ(by_device.digest(), by_host.digest());
}

TEST(DeviceArrays, WithoutTheStreamAreReadEarly) {
  if (!is_late()) GTEST_SKIP() << "only the order late says what runs first";
  Trained run(R"({"batch": 8, "warmup": 0})");
  const HostStream stream;
  ASSERT_TRUE(works(st_context_use_stream(run.context, -1)));
  EXPECT_EQ(asked<int64_t>(st_context_stream, run.context), -1);
  DeviceArray x({kRows, 1}), y({kRows, 1});
  x.write(stream, rows_of(0));
  y.write(stream, sines(rows_of(0)));
  auto report = filled(st_step_report_init);
  const st_named_view batch[] = {{"x", x.view()}, {"y", y.view()}};
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 2, batch, &report)));
  EXPECT_TRUE(std::isnan(report.loss)) << "what was in the memory before";
  host().finish(stream);
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 2, batch, &report)));
  EXPECT_FALSE(std::isnan(report.loss)) << "the host has waited";
}

TEST(DeviceArrays, APredictionIsWrittenAfterTheHostsStreamHasReadTheLastOne) {
  Trained run;
  const HostStream stream;
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const auto predict = [&](const st_view& x, const st_view& prediction) {
    const st_named_view in = {"x", x}, out = {"prediction", prediction};
    return st_predictor_run(predictor, 1, &in, 1, &out);
  };
  std::vector<std::vector<float>> wanted;
  const int64_t dims[] = {kRows, 1};
  for (const float first : {-1.0F, 1.0F}) {
    std::vector<float> x = rows_of(first), made(kRows);
    ASSERT_TRUE(works(predict({ST_F32, 2, dims, nullptr, x.data(), 32, 0, 0}, {ST_F32, 2, dims, nullptr, made.data(), 32, 0, 0})));
    wanted.push_back(made);
  }
  ASSERT_NE(wanted[0], wanted[1]);
  DeviceArray x({kRows, 1}), prediction({kRows, 1});
  ASSERT_TRUE(works(st_context_use_stream(run.context, stream)));
  std::vector<std::span<const float>> read;
  for (const float first : {-1.0F, 1.0F}) {
    x.write(stream, rows_of(first));
    ASSERT_TRUE(works(predict(x.view(), prediction.view())));
    read.push_back(prediction.read(stream));
  }
  host().finish(stream);
  EXPECT_EQ(values_of(read[0]), wanted[0]);
  EXPECT_EQ(values_of(read[1]), wanted[1]);

  if (!is_late()) return;
  const HostStream reader;  // for which no call waits: it reads too late
  x.write(stream, rows_of(-1));
  ASSERT_TRUE(works(predict(x.view(), prediction.view())));
  const auto first = prediction.read(reader);
  x.write(stream, rows_of(1));
  ASSERT_TRUE(works(predict(x.view(), prediction.view())));
  host().finish(reader);
  EXPECT_EQ(values_of(first), wanted[1]);
}

TEST(DeviceArrays, HoldWeightsGradientsAndAverages) {
  Trained run;
  const HostStream stream;
  ASSERT_TRUE(works(st_context_use_stream(run.context, stream)));
  ASSERT_TRUE(works(run.step(rows_of(0), sines(rows_of(0)))));
  auto info = filled(st_parameter_info_init, st_model_parameter, run.model, int64_t{0});
  const std::vector<int64_t> dims(info.dims, info.dims + info.rank);
  DeviceArray array(dims);
  std::vector<float> by_host(static_cast<size_t>(array.bytes() / 4));
  const st_view to = {ST_F32, info.rank, array.dims(), nullptr, by_host.data(), array.bytes(), 0, 0};
  const std::function<st_status(const st_view*)> readers[] = {
      [&](const st_view* view) { return st_model_get(run.model, info.name, view); },
      [&](const st_view* view) { return st_trainer_gradient(run.trainer, info.name, view); },
      [&](const st_view* view) { return st_trainer_average(run.trainer, info.name, view); }};
  for (const auto& read : readers) {
    ASSERT_TRUE(works(read(&to)));
    array.write(stream, std::vector<float>(by_host.size(), 7));  // what the call writes comes after this
    const st_view device = array.view();
    ASSERT_TRUE(works(read(&device)));
    const auto there = array.read(stream);
    host().finish(stream);
    EXPECT_EQ(values_of(there), by_host);
  }

  std::vector<float> next(by_host.size());
  for (size_t i = 0; i < next.size(); ++i) next[i] = 0.5F * static_cast<float>(i);
  array.write(stream, next);
  const st_view from = array.view();
  ASSERT_TRUE(works(st_model_set(run.model, info.name, &from)));
  ASSERT_TRUE(works(st_model_get(run.model, info.name, &to)));
  EXPECT_EQ(by_host, next);

  next[1] = std::nanf("");
  array.write(stream, next);
  EXPECT_TRUE(fails(ST_NOT_FINITE, st_model_set(run.model, info.name, &from), {info.name, "NaN at element 1"}));
  st_view halves = array.view();
  halves.dtype = ST_F16;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_get(run.model, info.name, &halves), {info.name, "f32", "f16", "device's memory"}));
}

TEST(DeviceArrays, HoldTheOutputsOfAHostsOwnLossAndTheirGradients) {
  Trained by_host, by_device;
  const HostStream stream;
  ASSERT_TRUE(works(st_context_use_stream(by_device.context, stream)));
  const int64_t dims[] = {kRows, 1};
  DeviceArray x({kRows, 1}), gradient({kRows, 1}), prediction({kRows, 1});
  for (Trained* const run : {&by_host, &by_device}) {
    std::vector<float> rows = rows_of(0), gradients(kRows);
    if (run == &by_device) x.write(stream, rows);
    const st_named_view of_host = {"x", st_view{ST_F32, 2, dims, nullptr, rows.data(), 32, 0, 0}};
    const st_named_view batch = run == &by_device ? st_named_view{"x", x.view()} : of_host;
    std::span<const float> there;
    if (run == &by_device) {
      const st_named_view into = {"prediction", prediction.view()};
      prediction.write(stream,
                       std::vector<float>(kRows, 7));  // what the call writes comes after this, which a batch of the host does not await
      ASSERT_TRUE(works(st_trainer_forward_into(run->trainer, 1, &of_host, 1, &into)));
      there = prediction.read(stream);
      host().finish(stream);
    }
    int64_t n = 0;
    const st_named_view* outputs = nullptr;
    ASSERT_TRUE(works(st_trainer_forward(run->trainer, 1, &batch, &n, &outputs)));  // it replaces the forward before
    ASSERT_EQ(n, 1);
    EXPECT_EQ(outputs[0].view.device, 0);
    const auto* const here = static_cast<const float*>(outputs[0].view.data);
    if (run == &by_device) {
      EXPECT_EQ(values_of(there), std::vector<float>(here, here + kRows));
    }
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = here[i] - std::sin(rows[i]);
    if (run == &by_device) gradient.write(stream, gradients);
    const st_named_view back = {outputs[0].name,
                                run == &by_device ? gradient.view() : st_view{ST_F32, 2, dims, nullptr, gradients.data(), 32, 0, 0}};
    ASSERT_TRUE(works(st_trainer_backward(run->trainer, 1, &back)));
    ASSERT_TRUE(works(st_trainer_apply(run->trainer, nullptr)));
  }
  EXPECT_EQ(by_device.digest(), by_host.digest());
}

/// Another library's tensor on a device; counts its releases.
struct Foreign {
  explicit Foreign(DeviceArray& array, int32_t type = 2, int32_t index = kDevice) {
    managed.dl_tensor = {array.data(), {type, index}, 2, {2, 32, 1}, array.dims(), nullptr, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }
  DLManagedTensor managed{};
  int deleted = 0;
};

TEST(DeviceArrays, ComeAndGoAsDlpackInTheOrderOfTheirStreams) {
  Trained by_host, by_device;
  const HostStream context_stream, producer, consumer;
  ASSERT_TRUE(works(st_context_use_stream(by_device.context, context_stream)));
  DeviceArray x({kRows, 1}), y({kRows, 1});
  Foreign foreign_x(x), foreign_y(y);
  {
    x.write(producer, rows_of(0));
    y.write(producer, sines(rows_of(0)));
    const auto tensor_x = hold<HeldTensor>(st_tensor_from_dlpack_on, by_device.context, &foreign_x.managed, static_cast<int64_t>(producer));
    const auto tensor_y = hold<HeldTensor>(st_tensor_from_dlpack_on, by_device.context, &foreign_y.managed, static_cast<int64_t>(producer));
    int32_t type = 0, index = 0;
    ASSERT_TRUE(works(st_tensor_dlpack_device(tensor_x, &type, &index)));
    EXPECT_EQ(type, 2) << "kDLCUDA";
    EXPECT_EQ(index, kDevice);
    const auto view_x = asked<st_view>(st_tensor_view, tensor_x), view_y = asked<st_view>(st_tensor_view, tensor_y);
    EXPECT_EQ(view_x.device, kNumber);
    EXPECT_EQ(view_x.data, x.data());
    ASSERT_TRUE(works(by_device.step(view_x, view_y)));
    ASSERT_TRUE(works(by_host.step(rows_of(0), sines(rows_of(0)))));
    EXPECT_EQ(by_device.digest(), by_host.digest());

    x.write(context_stream, rows_of(3));  // what the receiver reads
    DLManagedTensor* managed = nullptr;
    ASSERT_TRUE(works(st_tensor_to_dlpack_on(tensor_x, consumer, &managed)));
    EXPECT_EQ(managed->dl_tensor.device.device_type, 2);
    EXPECT_EQ(managed->dl_tensor.device.device_id, kDevice);
    EXPECT_EQ(managed->dl_tensor.data, x.data());
    const auto there = x.read(consumer);
    host().finish(consumer);
    EXPECT_EQ(values_of(there), rows_of(3));
    managed->deleter(managed);
  }
  EXPECT_EQ(foreign_x.deleted, 1);
  EXPECT_EQ(foreign_y.deleted, 1);
}

TEST(DeviceArrays, OfTheLibraryAreInTheDevicesMemory) {
  Trained run;
  auto info = filled(st_parameter_info_init, st_model_parameter, run.model, int64_t{0});
  const int64_t before = memory_of(run.context).role_bytes[ST_MEMORY_TENSORS];
  auto tensor = hold<HeldTensor>(st_tensor_create, run.context, ST_F32, info.rank, info.dims);
  const auto view = asked<st_view>(st_tensor_view, tensor);
  EXPECT_EQ(view.device, kNumber);
  EXPECT_EQ(memory_of(run.context).role_bytes[ST_MEMORY_TENSORS], before + view.bytes);
  std::vector<float> weights(static_cast<size_t>(view.bytes / 4)), there(weights.size());
  const st_view host_view = {ST_F32, info.rank, info.dims, nullptr, weights.data(), view.bytes, 0, 0};
  ASSERT_TRUE(works(st_model_get(run.model, info.name, &host_view)));
  ASSERT_TRUE(works(st_model_get(run.model, info.name, &view)));
  std::vector<float> zeros(weights.size());
  const st_view of_zeros = {ST_F32, info.rank, info.dims, nullptr, zeros.data(), view.bytes, 0, 0};
  ASSERT_TRUE(works(st_model_set(run.model, info.name, &of_zeros)));
  ASSERT_TRUE(works(st_model_set(run.model, info.name, &view)));
  const st_view of_there = {ST_F32, info.rank, info.dims, nullptr, there.data(), view.bytes, 0, 0};
  ASSERT_TRUE(works(st_model_get(run.model, info.name, &of_there)));
  EXPECT_EQ(there, weights);
  DLManagedTensor* managed = nullptr;
  ASSERT_TRUE(works(st_tensor_to_dlpack(tensor, &managed)));
  tensor.reset();
  EXPECT_EQ(managed->dl_tensor.device.device_type, 2);
  const auto again = hold<HeldTensor>(st_tensor_from_dlpack, run.context, managed);
  EXPECT_EQ(asked<st_view>(st_tensor_view, again).data, view.data);
}

TEST(DeviceArrays, ThatDoNotFitAreRefusedByName) {
  Trained run;
  DeviceArray x({kRows, 1}), y({kRows, 1}), elsewhere({kRows, 1}, 0, kNumber);
  const HostStream stream, of_another(0);
  x.write(stream, rows_of(0));
  y.write(stream, sines(rows_of(0)));
  host().finish(stream);
  const std::string before = run.digest();
  const auto refuses = [&](const std::function<void(st_view&)>& change, std::initializer_list<std::string_view> words) {
    st_view changed = x.view();
    change(changed);
    return fails(ST_INVALID_ARGUMENT, run.step(changed, y.view()), words);
  };
  std::vector<float> of_host = rows_of(0);
  const int64_t gaps[] = {2, 1};
  EXPECT_TRUE(refuses([](st_view& v) { v.device = 1; }, {"\"x\"", "device 1", "cuda-simulated:1", "allowed is 2"}));
  EXPECT_TRUE(refuses([](st_view& v) { v.reserved = 3; }, {"\"x\"", "reserved 3"}));
  EXPECT_TRUE(refuses([&](st_view& v) { v.data = of_host.data(); }, {"\"x\"", "32 bytes that are not in the memory of cuda-simulated:1"}));
  EXPECT_TRUE(refuses([&](st_view& v) { v.data = elsewhere.data(); }, {"\"x\"", "not in the memory of cuda-simulated:1"}));
  EXPECT_TRUE(refuses([&](st_view& v) { v.data = x.data() + 4; }, {"\"x\"", "not in the memory"}));
  EXPECT_TRUE(refuses(
      [&](st_view& v) {
        v.strides = gaps;
        v.bytes = 60;
      },
      {"\"x\"", "row-major without gaps"}));
  EXPECT_TRUE(refuses([](st_view& v) { v.dtype = ST_I32; }, {"\"x\"", "f32", "i32"}));
  EXPECT_EQ(run.digest(), before);

  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_use_stream(run.context, of_another), {"device 0", "cuda-simulated:1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_use_stream(run.context, 0), {"0 is no stream", "-1 for none"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_use_stream(run.context, 2), {"2 is another stream on each thread", "give 1"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_context_use_stream(run.context, 0x12345670), {"stream: 305419888 is no stream of", "-1 for none"}));
  EXPECT_EQ(asked<int64_t>(st_context_stream, run.context), 1) << "what was refused changes nothing";

  Foreign on_other(elsewhere, 2, 0), of_rocm(x, 10, 1), mislabelled(elsewhere);
  HeldTensor tensor;
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_tensor_from_dlpack(run.context, &on_other.managed, tensor.out()),
                    {"device 0 of type kDLCUDA (2)", "cuda-simulated:1, kDLCUDA (2) 1", "copy it to the host"}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_tensor_from_dlpack(run.context, &of_rocm.managed, tensor.out()), {"kDLROCM (10)"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_tensor_from_dlpack(run.context, &mislabelled.managed, tensor.out()), {"not in the memory"}));
  EXPECT_EQ(on_other.deleted + of_rocm.deleted + mislabelled.deleted, 0);

  const st_named_view rows = {"x", x.view()};
  HeldData data;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_arrays(run.context, kRows, 1, &rows, nullptr, nullptr, data.out()),
                    {"\"x\"", "device 2", "allowed is 0", "copy it to the host first"}));
  const auto cpu = opened("cpu");
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_context_use_stream(cpu, stream), {"cpu", "no streams"}));
  EXPECT_TRUE(works(st_context_use_stream(cpu, -1)));
}

}  // namespace

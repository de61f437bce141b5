// Tensors through scaletrain.hpp.
#include "capi/dlpack_of_others.h"
#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, ATensorBeginsAsZerosAndIsWritten) {
  const Context context;
  const Tensor tensor(context, DType::f32, {2, 3});
  const View memory = tensor.view();
  EXPECT_EQ(memory.size(), 6);
  EXPECT_EQ(memory.as<float>()[5], 0.0F);
  memory.as<float>()[5] = 1;
  EXPECT_EQ(tensor.view().as<float>()[5], 1.0F);
}

TEST_F(Hpp, AWrappedArrayIsReleasedWithItsLastDlpack) {
  int released = 0;
  std::vector<float> array = {1, 2, 3, 4};
  {
    Context context;
    Tensor first = Tensor::wrap(context, view(array, {2, 2}), [&] { ++released; });
    Tensor second = Tensor::from_dlpack(context, first.to_dlpack());
    first.close();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(second.view().data(), array.data());
    EXPECT_EQ(thrown_status([&] { Tensor::from_dlpack(context, nullptr); }), Status::invalid_argument);
  }
  EXPECT_EQ(released, 1);
}

TEST_F(Hpp, AViewOfADeviceIsRefused) {
  std::vector<float> array = {1, 2, 3, 4}, to(4);
  View host = view(array, {2, 2});
  EXPECT_EQ(host.device(), 0);
  EXPECT_EQ(host.raw().device, 0);
  View other = View(host).strided({1, 2}).on_device(1);
  EXPECT_EQ(View(other.raw()).device(), 1);
  const Context context;
  const auto refuses = [](const auto& call) { return has(refusal(Status::invalid_argument, call), "has device 1; allowed is 0"); };
  EXPECT_TRUE(refuses([&] { convert(other, view(to, {2, 2})); }));
  EXPECT_TRUE(refuses([&] { clip_norm(context, {view(array).on_device(1)}, 1); }));
  EXPECT_TRUE(refuses([&] { Tensor::wrap(context, other, nullptr); }));
  EXPECT_EQ(Tensor(context, DType::f32, {2}).view().device(), 0);
  convert(other.on_device(0), view(to, {2, 2}));
  EXPECT_EQ(to, (std::vector<float>{1, 3, 2, 4}));
}

TEST_F(Hpp, ADlpackOfADeviceIsRefusedByName) {
  const Context context;
  const Tensor tensor(context, DType::f32, {4});
  DLManagedTensor* const managed = tensor.to_dlpack();
  managed->dl_tensor.device.device_type = 10;
  EXPECT_TRUE(has(refusal(Status::unsupported, [&] { Tensor::from_dlpack(context, managed); }), "kDLROCM (10)"));
  managed->dl_tensor.device.device_type = 3;  // pinned
  EXPECT_EQ(Tensor::from_dlpack(context, managed).view().data(), tensor.view().data());
}

TEST_F(Hpp, ATensorOfTheHostNeedsNoStream) {
  const Context context;
  const Tensor tensor(context, DType::f32, {4});
  EXPECT_EQ(tensor.dlpack_device().type, 1);
  EXPECT_EQ(tensor.dlpack_device().index, 0);
  const Tensor other = Tensor::from_dlpack(context, tensor.to_dlpack(2), 2);
  EXPECT_EQ(other.view().data(), tensor.view().data());
  EXPECT_EQ(context.stream(), 1);
  context.use_stream(-1);
  EXPECT_EQ(context.stream(), -1);
  EXPECT_TRUE(has(refusal(Status::unsupported, [&] { context.use_stream(1); }), "cpu has no streams"));
}

}  // namespace

// Tensors through scaletrain.hpp.
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

}  // namespace

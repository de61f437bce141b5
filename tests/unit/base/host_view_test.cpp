#include "base/host_view.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/float16.h"

namespace st {
namespace {

template <class T>
int64_t nan_in(DType dtype, std::vector<T> values, bool is_plain) {
  const auto count = std::ssize(values);
  if (!is_plain) {  // every second element of twice as many
    std::vector<T> spread;
    for (const T value : values) spread.insert(spread.end(), 2, value);
    values.swap(spread);
  }
  HostView view = plain_view("x", dtype, {count}, values.data());
  view.strides[0] = is_plain ? 1 : 2;
  return first_nan(view);
}

TEST(FirstNan, IsFoundInEveryTypeAndInfinitiesAreNone) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  struct {
    std::vector<float> values;
    int64_t at;
  } const rows[] = {{{1, -1, 0}, -1}, {{inf, -inf, -0.0F}, -1}, {{nan, 1}, 0}, {{1, inf, -nan}, 2}, {{1, nan, nan}, 1}};
  for (const auto& [values, at] : rows)
    for (const bool is_plain : {true, false}) {
      std::vector<uint16_t> bf16, f16;
      for (const float value : values) {
        bf16.push_back(bf16_of(value));
        f16.push_back(f16_of(value));
      }
      EXPECT_EQ(nan_in(DType::f32, values, is_plain), at);
      EXPECT_EQ(nan_in(DType::f64, std::vector<double>(values.begin(), values.end()), is_plain), at);
      EXPECT_EQ(nan_in(DType::bf16, bf16, is_plain), at);
      EXPECT_EQ(nan_in(DType::f16, f16, is_plain), at);
    }
}

}  // namespace
}  // namespace st

#include "data/dataset.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/os/machine.h"
#include "thrown_error.h"

namespace st {
namespace {

template <class T>
FieldView view_of(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(values.size() * sizeof(T))};
}

template <class Act>
std::string refusal_of(const Act& act) {
  const Error error = error_of(act);
  return error.code() == Code::ok ? "" : error.message();
}

std::shared_ptr<const TokenSource> counting_tokens(int32_t count) {
  const std::string path = testing::TempDir() + text("st_dataset_", os::process_id(), ".bin");
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  write_tokens(path, count, ids);
  auto source = std::make_shared<const TokenSource>(path);
  std::filesystem::remove(path);  // the mapping stays
  return source;
}

TEST(TokenWindows, GiveInputsAndTheNextTokens) {
  const TokenWindows windows(counting_tokens(100), {10, 25}, 4);
  EXPECT_EQ(windows.rows(), 6);
  ASSERT_EQ(windows.fields().size(), 2U);
  EXPECT_EQ(windows.fields()[0].name, "tokens");
  EXPECT_EQ(windows.fields()[1].name, "targets");
  EXPECT_EQ(windows.fields()[0].shape, Shape{4});
  std::vector<int32_t> tokens(12), targets(12);
  windows.fill(std::array<int64_t, 3>{5, 0, 5}, std::array{view_of(tokens), view_of(targets)});
  EXPECT_EQ(tokens, (std::vector<int32_t>{30, 31, 32, 33, 10, 11, 12, 13, 30, 31, 32, 33}));
  EXPECT_EQ(targets, (std::vector<int32_t>{31, 32, 33, 34, 11, 12, 13, 14, 31, 32, 33, 34}));
}

TEST(TokenWindows, StayInTheirRange) {
  const auto source = counting_tokens(50);
  EXPECT_NE(refusal_of([&] { TokenWindows(source, {40, 11}, 4); }), "");
  EXPECT_EQ(TokenWindows(source, {40, 10}, 9).rows(), 1);
  EXPECT_EQ(TokenWindows(source, {40, 10}, 10).rows(), 0);
}

TEST(Dataset, ChecksRowsAndRoom) {
  const TokenWindows windows(counting_tokens(50), {0, 50}, 4);
  std::vector<int32_t> tokens(8), targets(7);
  const std::array<int64_t, 2> rows = {0, 1};
  EXPECT_NE(refusal_of([&] {
              windows.fill(rows, std::array{view_of(tokens), view_of(targets)});
            }).find("\"targets\": 2 rows of 16 bytes do not fit 28"),
            std::string::npos);
  EXPECT_NE(refusal_of([&] { windows.fill(rows, std::array{view_of(tokens)}); }), "");
  for (const int64_t row : {int64_t{-1}, windows.rows()})
    EXPECT_NE(refusal_of([&] { windows.fill(std::array{row}, std::array{view_of(tokens), view_of(targets)}); }), "");
}

TEST(Dataset, LeavesOutFieldsThatAreNotWanted) {
  const TokenWindows windows(counting_tokens(50), {0, 50}, 2);
  std::vector<int32_t> targets(2);
  windows.fill(std::array<int64_t, 1>{3}, std::array{FieldView{}, view_of(targets)});
  EXPECT_EQ(targets, (std::vector<int32_t>{7, 8}));
}

TEST(HostArrays, AreReadInPlaceAndKeepTheirOwner) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::array<int64_t, 3> label = {7, 8, 9};
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> held = owner;
  {
    const HostArrays arrays(3, {{{"x", DType::f32, Shape{2}}, x.data()}, {{"label", DType::i64, {}}, label.data()}}, std::move(owner));
    EXPECT_EQ(arrays.rows(), 3);
    std::vector<float> some(4);
    std::vector<int64_t> labels(2);
    x[0] = 10;
    arrays.fill(std::array<int64_t, 2>{2, 0}, std::array{view_of(some), view_of(labels)});
    EXPECT_EQ(some, (std::vector<float>{5, 6, 10, 2}));
    EXPECT_EQ(labels, (std::vector<int64_t>{9, 7}));
    EXPECT_FALSE(held.expired());
  }
  EXPECT_TRUE(held.expired());
}

TEST(HostArrays, MayLieAnywhere) {
  std::vector<std::byte> memory(33);
  const std::array<double, 4> values = {1.5, 2.5, 3.5, 4.5};
  std::memcpy(memory.data() + 1, values.data(), 32);
  const HostArrays arrays(4, {{{"x", DType::f64, {}}, memory.data() + 1}});
  std::vector<double> out(1);
  arrays.fill(std::array<int64_t, 1>{2}, std::array{view_of(out)});
  EXPECT_EQ(out[0], 3.5);
}

TEST(HostArrays, AreRefusedWithTheirName) {
  const float x = 0;
  const auto make = [&](int64_t rows, std::vector<HostArray> arrays) { return refusal_of([&] { HostArrays(rows, std::move(arrays)); }); };
  EXPECT_NE(make(0, {{{"x", DType::f32, {}}, &x}}), "");
  EXPECT_NE(make(1, {}), "");
  EXPECT_NE(make(1, {{{"x", DType::f32, {}}, nullptr}}).find("\"x\" is null"), std::string::npos);
  EXPECT_NE(make(1, {{{"x", DType::f32, {}}, &x}, {{"x", DType::f32, {}}, &x}}).find("\"x\" is given twice"), std::string::npos);
  EXPECT_NE(make(1, {{{"x", DType::f32, Shape{-2}}, &x}}).find("below 0"), std::string::npos);
  EXPECT_NE(make(int64_t{1} << 61, {{{"x", DType::f32, Shape{8}}, &x}}).find("do not fit"), std::string::npos);
  EXPECT_NE(make(1, {{{"", DType::f32, {}}, &x}}).find("empty name"), std::string::npos);
}

}  // namespace
}  // namespace st

// A model's weights in the host's memory: any strides, any floating type; cloned, blended and compared.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

const char* const kWeight = "layer.0.weight";  // [2, 3]

class ModelWeights : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    model = mlp(1);
  }
  HeldModel mlp(int64_t seed, const char* json = R"({"inputs": 2, "hidden": [3], "outputs": 2})") {
    return hold<HeldModel>(st_model_builtin, context, "mlp", json, seed);
  }
  static std::vector<float> get(st_model* from, const char* name = kWeight, std::vector<int64_t> dims = {2, 3}) {
    std::vector<float> values(6, -7);
    const st_view view = {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, values.data(), 24};
    EXPECT_TRUE(works(st_model_get(from, name, &view)));
    return values;
  }
  static void set(st_model* to, const std::vector<float>& values) {
    const int64_t dims[] = {2, 3};
    const st_view view = {ST_F32, 2, dims, nullptr, const_cast<float*>(values.data()), 24};
    ASSERT_TRUE(works(st_model_set(to, kWeight, &view)));
  }
  static std::string digest(st_model* of) { return text_of(st_model_digest, of); }
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  HeldContext context;
  HeldModel model;
};

TEST_F(ModelWeights, GoInAndOutByAnyStrides) {
  const int64_t dims[] = {2, 3}, columns[] = {1, 2}, gaps[] = {8, 2};
  float transposed[] = {1, 4, 2, 5, 3, 6};  // column-major
  const st_view from = {ST_F32, 2, dims, columns, transposed, sizeof transposed};
  ASSERT_TRUE(works(st_model_set(model, kWeight, &from)));
  EXPECT_EQ(get(model), numbers);
  std::vector<float> spread(13, -1);  // the strides reach 1 + 8 + 2 * 2 elements; no more memory is needed
  const st_view to = {ST_F32, 2, dims, gaps, spread.data(), 13 * 4};
  ASSERT_TRUE(works(st_model_get(model, kWeight, &to)));
  EXPECT_EQ(spread, (std::vector<float>{1, -1, 2, -1, 3, -1, -1, -1, 4, -1, 5, -1, 6}));
}

TEST_F(ModelWeights, AreConvertedFromAndToEveryFloatingType) {
  const int64_t dims[] = {2, 3};
  double wide[] = {1, -0.5, 0.1, 1e300, -1e300, 1.0 + 0x1p-24 + 0x1p-40};  // the last one is nearer to 1 + 2^-23 than to 1
  st_view view = {ST_F64, 2, dims, nullptr, wide, sizeof wide};
  ASSERT_TRUE(works(st_model_set(model, kWeight, &view)));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(get(model), (std::vector<float>{1, -0.5F, 0.1F, infinity, -infinity, 1 + 0x1p-23F}));
  ASSERT_TRUE(works(st_model_get(model, kWeight, &view)));
  EXPECT_EQ(wide[2], static_cast<double>(0.1F));

  set(model, {1, -2, 0.1F, 65536, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F});
  uint16_t narrow[6];
  view = {ST_BF16, 2, dims, nullptr, narrow, sizeof narrow};
  ASSERT_TRUE(works(st_model_get(model, kWeight, &view)));
  EXPECT_EQ(std::vector<uint16_t>(narrow, narrow + 6),
            (std::vector<uint16_t>{0x3F80, 0xC000, 0x3DCD, 0x4780, 0x3F80, 0x3F82}));  // ties to even
  ASSERT_TRUE(works(st_model_set(model, kWeight, &view)));
  EXPECT_EQ(get(model), (std::vector<float>{1, -2, 0.10009765625F, 65536, 1, 1 + 0x1p-6F}));
  view.dtype = ST_F16;
  ASSERT_TRUE(works(st_model_get(model, kWeight, &view)));
  EXPECT_EQ(narrow[0], 0x3C00);
  EXPECT_EQ(narrow[3], 0x7C00) << "65536 exceeds the largest half";
}

TEST_F(ModelWeights, AreTakenWhereverTheHostHasThem) {  // not aligned to their size
  const int64_t dims[] = {2, 3};
  alignas(8) unsigned char bytes[25];
  std::memcpy(bytes + 1, numbers.data(), 24);
  const st_view view = {ST_F32, 2, dims, nullptr, bytes + 1, 24};
  ASSERT_TRUE(works(st_model_set(model, kWeight, &view)));
  EXPECT_EQ(get(model), numbers);
}

TEST_F(ModelWeights, ThatAreNaNAreRefusedAndNothingChanges) {
  const std::string before = digest(model);
  const int64_t dims[] = {2, 3}, columns[] = {1, 2};
  float values[] = {1, 2, 3, std::nanf(""), 5, 6};
  st_view view = {ST_F32, 2, dims, nullptr, values, sizeof values};
  EXPECT_TRUE(fails(ST_NOT_FINITE, st_model_set(model, kWeight, &view), {"set", kWeight, "element 3"}));
  view.strides = columns;
  EXPECT_TRUE(fails(ST_NOT_FINITE, st_model_set(model, kWeight, &view), {"element 4"}));
  uint16_t halves[] = {0, 0, 0, 0, 0, 0x7C01};
  view = {ST_F16, 2, dims, nullptr, halves, sizeof halves};
  EXPECT_TRUE(fails(ST_NOT_FINITE, st_model_set(model, kWeight, &view), {"element 5"}));
  EXPECT_EQ(digest(model), before);
}

// Other views that cannot be: wrong_views.cpp.
TEST_F(ModelWeights, ViewsWhoseElementsShareMemoryAreRefused) {
  const std::string before = digest(model);
  const int64_t dims[] = {2, 3};
  std::vector<float> values(64, 9);
  for (const auto& [strides, shown] : {std::pair{std::array<int64_t, 2>{2, 1}, "[2, 1]"}, {{0, 1}, "[0, 1]"}, {{1, 1}, "[1, 1]"}}) {
    const st_view view = {ST_F32, 2, dims, strides.data(), values.data(), 256};
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_get(model, kWeight, &view), {kWeight, "share memory", shown}));
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_set(model, kWeight, &view), {kWeight, "share memory", shown}));
  }
  EXPECT_EQ(values, std::vector<float>(64, 9)) << "a refused get wrote something";
  EXPECT_EQ(digest(model), before);
}

TEST_F(ModelWeights, OfACloneAreItsOwn) {
  const auto clone = hold<HeldModel>(st_model_clone, model);
  EXPECT_EQ(digest(clone), digest(model));
  set(clone, numbers);
  EXPECT_NE(get(model), numbers);
  EXPECT_NE(digest(clone), digest(model));
  const std::string kept = digest(clone);
  model.reset();
  EXPECT_EQ(digest(clone), kept) << "the clone outlives its model";
}

TEST_F(ModelWeights, HaveADigestOfNamesShapesAndBits) {
  const std::string first = digest(model);
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(digest(mlp(1)), first);
  EXPECT_NE(digest(mlp(2)), first);
  set(model, {0, 0, 0, 0, 0, 0});
  const std::string zeros = digest(model);
  set(model, {0, 0, 0, 0, 0, -0.0F});
  EXPECT_NE(digest(model), zeros) << "one bit differs";
}

TEST_F(ModelWeights, BlendTowardsAnotherModel) {
  HeldModel other = mlp(2);
  set(model, numbers);
  set(other, {9, 2, 3, 4, 5, -2});
  ASSERT_TRUE(works(st_model_blend(model, other, 0.25)));
  EXPECT_EQ(get(model), (std::vector<float>{3, 2, 3, 4, 5, 4}));
  ASSERT_TRUE(works(st_model_blend(model, other, 0)));
  EXPECT_EQ(get(model), (std::vector<float>{3, 2, 3, 4, 5, 4}));
  set(model, {1e8F, 1, 1, 1, 1, 1});
  set(other, {1e-8F, 2, 2, 2, 2, 2});
  ASSERT_TRUE(works(st_model_blend(model, other, 1)));
  EXPECT_EQ(digest(model), digest(other)) << "weight 1 copies exactly, without the rounding of a difference";
  const std::string before = digest(model);
  EXPECT_TRUE(works(st_model_blend(model, model, 0.5)));
  EXPECT_EQ(digest(model), before);
}

TEST_F(ModelWeights, BlendOnlyBetweenTheSameParameters) {
  const std::string before = digest(model);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_blend(model, mlp(1), std::nan("")), {"blend", "t must be finite"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_blend(model, mlp(1), std::numeric_limits<double>::infinity()), {"finite"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_blend(model, mlp(1, R"({"inputs": 2, "hidden": [4], "outputs": 2})"), 1),
                    {"layer.0.weight", "[2, 3]", "[2, 4]"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_model_blend(model, mlp(1, R"({"inputs": 2, "hidden": [3, 2], "outputs": 2})"), 1), {"layer.2"}));
  EXPECT_EQ(digest(model), before);
}

TEST_F(ModelWeights, BlendedCrosswiseByTwoThreadsNeverWaitForEachOther) {
  HeldModel other = mlp(2);
  std::thread threads[2];
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      st_model *a = t == 0 ? model : other, *b = t == 0 ? other : model;
      for (int done = 0; done < 50;) {
        const st_status status = st_model_blend(a, b, 0.5);
        ASSERT_TRUE(status == ST_OK || status == ST_BUSY) << st_last_error();
        done += status == ST_OK;
        if (status == ST_BUSY) std::this_thread::yield();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

#include "train/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "ir/build.h"
#include "training.h"

namespace st {
namespace {

std::vector<std::byte> bytes_of_model(const Model& model) {
  std::vector<std::byte> bytes;
  for (const SlotId id : model.parameters()) bytes.insert(bytes.end(), model.data(id), model.data(id) + model.slot(id).type.bytes());
  return bytes;
}

class ModelFile : public ::testing::Test {
 protected:
  const std::string path_ =
      ::testing::TempDir() + "model_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors";
  const std::shared_ptr<Context> context_ = Training{}.context();

  Model gpt(uint64_t seed) const { return {context_, build_gpt(odd_gpt()), seed}; }
  /// A model of one parameter "w" [2, 3].
  Model one(DType dtype, uint64_t seed, const std::string& name = "w", const Shape& shape = {2, 3}) const {
    Program program;
    program.sections.push_back({{}, Phase::forward, 0, 0});
    Builder(program, 0).parameter(name, shape, {.kind = Init::normal, .values = {}}, dtype);
    return {context_, program, seed};
  }
  ~ModelFile() override { std::filesystem::remove(path_); }
};

using ModelInit = ModelFile;

TEST_F(ModelInit, DependsOnTheSeedAlone) {
  EXPECT_EQ(bytes_of_model(gpt(3)), bytes_of_model(gpt(3)));
  EXPECT_NE(bytes_of_model(gpt(3)), bytes_of_model(gpt(4)));
}

TEST_F(ModelInit, IsTheSameOnEveryBackend) {
  const Training cpu{.device = "cpu", .threads = 2};
  EXPECT_EQ(bytes_of_model(Model(cpu.context(), build_gpt(odd_gpt()), 3)), bytes_of_model(gpt(3)));
}

TEST_F(ModelInit, MakesADoubleParameterOfTheSameNumbers) {
  const Model narrow = one(DType::f32, 5), wide = one(DType::f64, 5);
  const auto* f = reinterpret_cast<const float*>(narrow.data(narrow.parameters()[0]));
  const auto* d = reinterpret_cast<const double*>(wide.data(wide.parameters()[0]));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(d[i], static_cast<double>(f[i]));
}

TEST_F(ModelInit, CountsElementsAndFindsParametersByName) {
  const Model model = gpt(1);
  EXPECT_EQ(model.elements(), parameter_count(odd_gpt()));
  EXPECT_EQ(model.slot(model.parameter_named("final_norm.gamma")).name, "final_norm.gamma");
  try {
    model.parameter_named("final_norm.gama");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_NE(error.message().find("did you mean \"final_norm.gamma\"?"), std::string::npos) << error.message();
  }
}

TEST_F(ModelFile, ReadsBackWhatItWroteBitForBit) {
  const Model written = gpt(3);
  Model read = gpt(4);
  written.write(path_);
  read.read(path_);
  EXPECT_EQ(bytes_of_model(read), bytes_of_model(written));
}

TEST_F(ModelFile, ReadsBackDoublesBitForBit) {
  Model written = one(DType::f64, 3), read = one(DType::f64, 4);
  reinterpret_cast<double*>(written.data(written.parameters()[0]))[1] = 1.0 / 3;  // has more bits than an f32
  written.write(path_);
  read.read(path_);
  EXPECT_EQ(bytes_of_model(read), bytes_of_model(written));
}

TEST_F(ModelFile, ConvertsBetweenFloatingTypes) {
  const Model doubles = one(DType::f64, 3);
  Model floats = one(DType::f32, 4);
  doubles.write(path_);
  floats.read(path_);
  EXPECT_EQ(bytes_of_model(floats), bytes_of_model(one(DType::f32, 3)));
}

TEST_F(ModelFile, AFileThatDoesNotFitChangesNothing) {
  Model model = gpt(3);
  const auto before = bytes_of_model(model);
  const auto refusal = [&](const Model& other) {
    other.write(path_);
    try {
      model.read(path_);
    } catch (const Error& error) {
      EXPECT_EQ(bytes_of_model(model), before);
      return error.message();
    }
    return std::string();
  };
  EXPECT_NE(refusal(one(DType::f32, 1)).find("token_embedding.weight"), std::string::npos) << "the missing tensor is named";
  const std::string shapes = refusal(one(DType::f32, 1, "token_embedding.weight"));
  EXPECT_NE(shapes.find("[2, 3]"), std::string::npos) << shapes;
  EXPECT_NE(shapes.find("[17, 12]"), std::string::npos) << shapes;
  // All fit but the last one's shape.
  GptOptions longer = odd_gpt();
  longer.context = 9;
  EXPECT_NE(refusal(Model(context_, build_gpt(longer), 4)).find("position_embedding.weight"), std::string::npos);
}

TEST_F(ModelFile, AMissingOrTornFileIsNamed) {
  Model model = gpt(3);
  const auto before = bytes_of_model(model);
  EXPECT_THROW(model.read(path_), Error);
  model.write(path_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 5);
  try {
    model.read(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(path_), std::string::npos) << error.message();
  }
  EXPECT_EQ(bytes_of_model(model), before);
}

TEST_F(ModelInit, IsRefusedBeforeMemoryIsTouchedWhenItDoesNotFit) {
  const auto small = std::make_shared<Context>(
      ContextOptions{.device = "reference", .threads = 1, .memory_limit = 4096, .log = {}, .parallel = {}, .memory = {}});
  try {
    Model(small, build_gpt(odd_gpt()), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_NE(error.message().find("there is 4.00 KiB"), std::string::npos) << error.message();
  }
  EXPECT_EQ(small->backend().allocated_bytes(), 0);
}

}  // namespace
}  // namespace st

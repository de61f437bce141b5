#include "model/model.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "../base/folder_test.h"
#include "../checkpoint/safetensors_bytes.h"
#include "ir/build.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

std::vector<std::byte> bytes_of_model(const Model& model) {
  std::vector<std::byte> bytes;
  for (const SlotId id : model.parameters()) {
    const std::byte* const begin = pointer_to(model.data(id));
    bytes.insert(bytes.end(), begin, begin + model.slot(id).type.bytes());
  }
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
    program.sections.emplace_back();
    Builder(program, 0).parameter(name, shape, {.kind = Init::normal, .values = {}}, dtype);
    return {context_, program, seed};
  }
  void read_strictly(Model& model) const {
    ReadReport report;
    model.read(path_, {}, report);
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
  const auto* f = pointer_to<const float>(narrow.data(narrow.parameters()[0]));
  const auto* d = pointer_to<const double>(wide.data(wide.parameters()[0]));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(d[i], static_cast<double>(f[i]));
}

TEST_F(ModelInit, CountsElementsAndFindsParametersByName) {
  const Model model = gpt(1);
  EXPECT_EQ(model.elements(), parameter_count(odd_gpt()));
  EXPECT_EQ(model.slot(model.parameter_named("final_norm.gamma")).name, "final_norm.gamma");
  EXPECT_TRUE(refuses(Code::not_found, {"did you mean \"final_norm.gamma\"?"}, [&] { model.parameter_named("final_norm.gama"); }));
}

TEST_F(ModelFile, ReadsBackWhatItWroteBitForBit) {
  const Model written = gpt(3);
  Model read = gpt(4);
  written.write(path_);
  read_strictly(read);
  EXPECT_EQ(bytes_of_model(read), bytes_of_model(written));
}

TEST_F(ModelFile, ReadsBackDoublesBitForBit) {
  Model written = one(DType::f64, 3), read = one(DType::f64, 4);
  pointer_to<double>(written.data(written.parameters()[0]))[1] = 1.0 / 3;  // needs more bits than an f32
  written.write(path_);
  read_strictly(read);
  EXPECT_EQ(bytes_of_model(read), bytes_of_model(written));
}

TEST_F(ModelFile, ConvertsBetweenFloatingTypes) {
  const Model doubles = one(DType::f64, 3);
  Model floats = one(DType::f32, 4);
  doubles.write(path_);
  read_strictly(floats);
  EXPECT_EQ(bytes_of_model(floats), bytes_of_model(one(DType::f32, 3)));
}

TEST_F(ModelFile, AFileThatDoesNotFitChangesNothing) {
  Model model = gpt(3);
  const auto before = bytes_of_model(model);
  const auto message = [&](const Model& other) {
    other.write(path_);
    const Error error = error_of([&] { read_strictly(model); });
    EXPECT_EQ(bytes_of_model(model), before);
    return error.message();
  };
  EXPECT_TRUE(says(message(one(DType::f32, 1)), {"token_embedding.weight"})) << "the missing tensor is named";
  EXPECT_TRUE(says(message(one(DType::f32, 1, "token_embedding.weight")), {"[2, 3]", "[17, 12]"}));
  // All match except the shape of the last one.
  GptOptions longer = odd_gpt();
  longer.context = 9;
  EXPECT_TRUE(says(message(Model(context_, build_gpt(longer), 4)), {"position_embedding.weight"}));
}

TEST_F(ModelFile, NanIsNamedAndChangesNothing) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Model bad = one(dtype, 3), model = one(DType::f32, 4);
    const auto before = bytes_of_model(model);
    if (dtype == DType::f32)
      pointer_to<float>(bad.data(bad.parameters()[0]))[4] = NAN;
    else
      pointer_to<double>(bad.data(bad.parameters()[0]))[4] = NAN;
    bad.write(path_);
    ReadReport report;
    EXPECT_TRUE(refuses(Code::not_finite, {"\"w\"", path_, "element 4"}, [&] { model.read(path_, {}, report); }));
    std::ifstream file(path_, std::ios::binary);
    const ReadBytes bytes = [&](std::span<std::byte> out) {
      return static_cast<size_t>(file.read(reinterpret_cast<char*>(out.data()), std::ssize(out)).gcount());
    };
    EXPECT_TRUE(refuses(Code::not_finite, {"\"w\"", "element 4"}, [&] { model.read(bytes, {}, report); }));
    EXPECT_EQ(bytes_of_model(model), before);
  }
}

TEST_F(ModelFile, AMissingOrTornFileIsNamed) {
  Model model = gpt(3);
  const auto before = bytes_of_model(model);
  EXPECT_THROW(read_strictly(model), Error);
  model.write(path_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 5);
  EXPECT_TRUE(says(error_of([&] { read_strictly(model); }), path_));
  EXPECT_EQ(bytes_of_model(model), before);
}

TEST_F(ModelFile, PassesOverADtypeOfTheFormatUnlessAParameterAsksForIt) {
  // "h" is after "w", with a dtype that no parameter has.
  Model written = one(DType::f32, 3);
  written.write(path_);
  const std::string plain = content_of_file(path_);
  const std::string json =
      R"({"h":{"dtype":"I8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[3,27]}})";
  const std::string file = with_length(json, "abc" + plain.substr(plain.size() - 24));
  std::ofstream(path_, std::ios::binary) << file;
  const auto from_stream = [&](Model& model, const ReadOptions& options, ReadReport& report) {
    model.read(reader_of(file, 5), options, report);
  };
  const auto from_file = [&](Model& model, const ReadOptions& options, ReadReport& report) { model.read(path_, options, report); };
  const auto try_it = [&](const auto& read) {
    Model model = one(DType::f32, 4);
    ReadReport report;
    EXPECT_TRUE(refuses(Code::invalid_argument, {"holds tensor \"h\""}, [&] { read(model, ReadOptions{}, report); }));
    read(model, ReadOptions{.partial = true, .renames = {}}, report = {});
    EXPECT_EQ(report.unexpected, std::vector<std::string>{"h"});
    EXPECT_EQ(bytes_of_model(model), bytes_of_model(written));
    Model named = one(DType::f32, 4);
    read(named, ReadOptions{.renames = {}, .names = {"w"}}, report = {});
    EXPECT_EQ(report.read, 1);
    EXPECT_TRUE(report.unexpected.empty());
    EXPECT_EQ(bytes_of_model(named), bytes_of_model(written));
    Model asking = one(DType::f32, 4, "h", {3});
    EXPECT_TRUE(refuses(Code::invalid_argument, {"tensor \"h\"", "is I8 [3]", "F32, F64, BF16 or F16"},
                        [&] { read(asking, ReadOptions{.partial = true, .renames = {}}, report = {}); }));
  };
  try_it(from_stream);
  try_it(from_file);
}

TEST_F(ModelInit, IsRefusedBeforeMemoryIsTouchedWhenItDoesNotFit) {
  const auto small = context_within(4096);
  EXPECT_TRUE(refuses(Code::out_of_memory, {"4.00 KiB is available"}, [&] { Model(small, build_gpt(odd_gpt()), 1); }));
  EXPECT_EQ(small->backend().allocated_bytes(), 0);
}

}  // namespace
}  // namespace st

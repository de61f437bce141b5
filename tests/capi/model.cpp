// A model: made, asked, changed, kept in a file and read back.
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "small_run.h"

namespace {

using namespace st::test;

std::string read_file(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

struct Parameter {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> values;
  st_view view() { return {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, values.data(), bytes()}; }
  int64_t bytes() const { return static_cast<int64_t>(values.size() * sizeof(float)); }
};

std::vector<Parameter> parameters_of(st_model* model) {
  int64_t count = 0;
  EXPECT_TRUE(works(st_model_parameter_count(model, &count)));
  std::vector<Parameter> all;
  for (int64_t i = 0; i < count; ++i) {
    auto info = filled(st_parameter_info_init);
    EXPECT_TRUE(works(st_model_parameter(model, i, &info)));
    EXPECT_EQ(info.dtype, ST_F32);
    EXPECT_EQ(info.trainable, 1);
    Parameter& p = all.emplace_back();
    p.name = info.name;
    size_t elements = 1;
    for (int32_t d = 0; d < info.rank; ++d) elements *= static_cast<size_t>(p.dims.emplace_back(info.dims[d]));
    p.values.resize(elements);
    const st_view to = p.view();
    EXPECT_TRUE(works(st_model_get(model, p.name.c_str(), &to)));
  }
  return all;
}

bool equal(const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].dims != b[i].dims ||
        std::memcmp(a[i].values.data(), b[i].values.data(), a[i].values.size() * 4) != 0)
      return false;
  return true;
}

class Model : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    model = mlp(1);
  }
  HeldModel mlp(int64_t seed, const char* json = R"({"inputs": 2, "hidden": [3], "outputs": 2})") {
    HeldModel made;
    EXPECT_TRUE(works(st_model_builtin(context, "mlp", json, seed, made.out())));
    return made;
  }
  HeldContext context;
  HeldModel model;
};

TEST_F(Model, ListsItsParametersInOrder) {
  const auto all = parameters_of(model);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].name, "layer.0.weight");
  EXPECT_EQ(all[0].dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(all[3].name, "layer.1.bias");
  EXPECT_EQ(all[3].dims, (std::vector<int64_t>{2}));
  EXPECT_EQ(all[3].values, (std::vector<float>{0, 0}));
  auto info = filled(st_parameter_info_init);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_parameter(model, 4, &info), {"index 4", "4 parameters"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_parameter(model, -1, &info), {"-1"}));
}

TEST_F(Model, BeginsFromItsSeedAlone) {
  EXPECT_TRUE(equal(parameters_of(model), parameters_of(mlp(1))));
  EXPECT_FALSE(equal(parameters_of(model), parameters_of(mlp(2))));
}

TEST_F(Model, GivesBackWhatWasSet) {
  auto all = parameters_of(model);
  for (size_t i = 0; i < all[0].values.size(); ++i) all[0].values[i] = static_cast<float>(i) / 7;
  const st_view from = all[0].view();
  ASSERT_TRUE(works(st_model_set(model, "layer.0.weight", &from)));
  EXPECT_TRUE(equal(parameters_of(model), all));
}

TEST_F(Model, RefusesViewsThatAreNotTheParameter) {
  const auto before = parameters_of(model);
  auto all = before;
  const char* name = "layer.0.weight";
  const std::array<int64_t, 2> turned = {3, 2};
  const auto expect_refused = [&](st_view view, st_status status, std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(status, st_model_get(model, name, &view), words));
    EXPECT_TRUE(fails(status, st_model_set(model, name, &view), words));
  };
  st_view v = all[0].view();
  v.dtype = ST_I32;
  expect_refused(v, ST_INVALID_ARGUMENT, {name, "f32"});
  v = all[0].view();
  v.dims = turned.data();
  expect_refused(v, ST_INVALID_ARGUMENT, {name, "[2, 3]", "[3, 2]"});
  v = all[0].view();
  v.rank = 1;
  expect_refused(v, ST_INVALID_ARGUMENT, {name, "[2, 3]"});
  v.rank = -1;
  expect_refused(v, ST_INVALID_ARGUMENT, {name});
  v.rank = 1000;
  expect_refused(v, ST_INVALID_ARGUMENT, {name});
  v = all[0].view();
  v.bytes = 23;
  expect_refused(v, ST_INVALID_ARGUMENT, {name, "24 bytes", "23"});
  v = all[0].view();
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_model_get(model, "layer.0.wieght", &v), {"layer.0.wieght", "layer.0.weight"}));
  EXPECT_TRUE(equal(parameters_of(model), before));
}

TEST_F(Model, OptionsThatCannotBeAreRefused) {
  st_model* made = nullptr;
  const auto gpt = [&](const char* json) { return st_model_builtin(context, "gpt", json, 0, &made); };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, gpt(R"({"width": 100, "heads": 3})"), {"width", "100", "heads", "3"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, gpt(R"({"laysers": 3})"), {"laysers", "layers"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, gpt(R"({"layers": 0})"), {"layers", "0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, gpt(R"({"layers": "two"})"), {"layers"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, gpt(R"({"dropout": 0.1})"), {"unknown option dropout"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, gpt("{"), {"gpt"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_builtin(context, "mlp", R"({"activation": "gelo"})", 0, &made), {"gelo", "gelu"}));
  EXPECT_EQ(made, nullptr);
}

TEST_F(Model, IsTheSameAfterAFile) {
  const std::string path = file_of("model.safetensors", "");
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_write_file(model, "", nullptr), {"path is empty"}));
  ASSERT_TRUE(works(st_model_write_file(model, path.c_str(), nullptr)));
  HeldModel other = mlp(2);
  ASSERT_FALSE(equal(parameters_of(model), parameters_of(other)));
  ASSERT_TRUE(works(st_model_read_file(other, path.c_str())));
  EXPECT_TRUE(equal(parameters_of(model), parameters_of(other)));
}

// What the format says, read by hand: 8 bytes of header length, a JSON header, then the tensors.
TEST_F(Model, FilesAreSafetensors) {
  const std::string path = file_of("by_hand.safetensors", "");
  ASSERT_TRUE(works(st_model_write_file(model, path.c_str(), nullptr)));
  const std::string file = read_file(path);
  ASSERT_GT(file.size(), 8U);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  ASSERT_LT(length, file.size());
  const std::string header = file.substr(8, length);
  size_t data_bytes = 0;
  for (const Parameter& p : parameters_of(model)) {
    const size_t at = header.find("\"" + p.name + "\"");
    ASSERT_NE(at, std::string::npos) << header;
    const std::string entry = header.substr(at, header.find('}', at) - at);
    EXPECT_NE(entry.find("\"dtype\":\"F32\""), std::string::npos) << entry;
    const size_t offsets = entry.find("\"data_offsets\":[");
    ASSERT_NE(offsets, std::string::npos) << entry;
    const size_t begin = std::stoull(entry.substr(offsets + 16));
    EXPECT_EQ(std::memcmp(file.data() + 8 + length + begin, p.values.data(), p.values.size() * 4), 0) << p.name;
    data_bytes += p.values.size() * 4;
  }
  EXPECT_EQ(file.size(), 8 + length + data_bytes);
}

/// One safetensors file with tensors of zeros.
std::string safetensors(const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors, const char* dtype = "F32",
                        int64_t width = 4) {
  std::ostringstream header;
  int64_t end = 0;
  header << "{";
  for (const auto& [name, dims] : tensors) {
    const int64_t begin = end;
    int64_t elements = 1;
    header << (begin == 0 ? "\"" : ",\"") << name << "\":{\"dtype\":\"" << dtype << "\",\"shape\":[";
    for (size_t i = 0; i < dims.size(); ++i) {
      header << (i == 0 ? "" : ",") << dims[i];
      elements *= dims[i];
    }
    end += elements * width;
    header << "],\"data_offsets\":[" << begin << "," << end << "]}";
  }
  header << "}";
  std::string text = header.str();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + text + std::string(static_cast<size_t>(end), '\0');
}

TEST_F(Model, ReadsEveryFloatingType) {
  for (const auto& [dtype, width] : {std::pair{"F32", 4}, std::pair{"F64", 8}, std::pair{"BF16", 2}, std::pair{"F16", 2}}) {
    HeldModel other = mlp(3);
    const std::string path = file_of(
        "float.safetensors",
        safetensors({{"layer.0.weight", {2, 3}}, {"layer.0.bias", {3}}, {"layer.1.weight", {3, 2}}, {"layer.1.bias", {2}}}, dtype, width));
    ASSERT_TRUE(works(st_model_read_file(other, path.c_str()))) << dtype;
    for (const Parameter& p : parameters_of(other))
      for (const float v : p.values) EXPECT_EQ(v, 0) << dtype;
  }
}

TEST_F(Model, AFileThatDoesNotFitChangesNothing) {
  const auto before = parameters_of(model);
  const auto expect_refused = [&](const std::string& name, const std::string& bytes, st_status status,
                                  std::initializer_list<std::string_view> words) {
    const std::string path = file_of(name, bytes);
    EXPECT_TRUE(fails(status, st_model_read_file(model, path.c_str()), words));
    EXPECT_NE(std::strstr(st_last_error(), path.c_str()), nullptr) << st_last_error();
    EXPECT_TRUE(equal(parameters_of(model), before)) << name;
  };
  // The last one is what is wrong: all before it would have been taken.
  expect_refused("missing.safetensors", safetensors({{"layer.0.weight", {2, 3}}, {"layer.0.bias", {3}}, {"layer.1.weight", {3, 2}}}),
                 ST_NOT_FOUND, {"layer.1.bias"});
  expect_refused("shape.safetensors",
                 safetensors({{"layer.0.weight", {2, 3}}, {"layer.0.bias", {3}}, {"layer.1.weight", {3, 2}}, {"layer.1.bias", {1, 2}}}),
                 ST_INVALID_ARGUMENT, {"layer.1.bias", "[1, 2]", "[2]"});
  expect_refused("type.safetensors",
                 safetensors({{"layer.0.weight", {2, 3}}, {"layer.0.bias", {3}}, {"layer.1.weight", {3, 2}}, {"layer.1.bias", {2}}}, "I32"),
                 ST_INVALID_ARGUMENT, {"layer.0.weight", "floating"});
  const std::string whole =
      safetensors({{"layer.0.weight", {2, 3}}, {"layer.0.bias", {3}}, {"layer.1.weight", {3, 2}}, {"layer.1.bias", {2}}});
  expect_refused("cut.safetensors", whole.substr(0, whole.size() - 1), ST_CORRUPT, {});
  expect_refused("empty.safetensors", "", ST_CORRUPT, {});
  expect_refused("text.safetensors", "this is no tensor file at all, just text", ST_CORRUPT, {});
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_model_read_file(model, "/no/such/weights"), {"/no/such/weights"}));
  EXPECT_TRUE(equal(parameters_of(model), before));
}

TEST_F(Model, AFileThatCannotBeWrittenIsAnError) {
  const st_status status = st_model_write_file(model, "/no/such/folder/w.safetensors", nullptr);
  EXPECT_TRUE(status == ST_IO || status == ST_NOT_FOUND) << status;
  EXPECT_NE(std::strstr(st_last_error(), "/no/such/folder"), nullptr) << st_last_error();
}

}  // namespace

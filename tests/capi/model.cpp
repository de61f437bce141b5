// A model: created, queried, changed, written to a file and read back.
#include <array>
#include <cstring>

#include "small_run.h"

namespace {

using namespace st::test;

struct Parameter {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> values;
  st_view view() { return {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, values.data(), bytes()}; }
  int64_t bytes() const { return static_cast<int64_t>(values.size() * sizeof(float)); }
};

std::vector<Parameter> parameters_of(st_model* model) {
  const auto count = asked<int64_t>(st_model_parameter_count, model);
  std::vector<Parameter> all;
  for (int64_t i = 0; i < count; ++i) {
    const auto info = filled(st_parameter_info_init, st_model_parameter, model, i);
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

class Model : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    model = mlp(1);
  }
  HeldModel mlp(int64_t seed, const char* json = R"({"inputs": 2, "hidden": [3], "outputs": 2})") {
    return hold<HeldModel>(st_model_builtin, context, "mlp", json, seed);
  }
  HeldContext context;
  HeldModel model;
};

TEST_F(Model, ListsItsParametersInOrderAndNamesTheNearest) {
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
  // Views that fit no parameter: wrong_views.cpp, model_weights.cpp.
  const st_view view{};
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_model_get(model, "layer.0.wieght", &view), {"layer.0.wieght", "layer.0.weight"}));
}

TEST_F(Model, AFileIsListedAndReadByOptions) {
  const std::string path = file_of("model.safetensors", "");
  ASSERT_TRUE(works(st_model_write_file(mlp(7), path.c_str(), nullptr)));
  const char* json = nullptr;
  ASSERT_TRUE(works(st_weights_inspect(path.c_str(), &json)));
  const std::string_view listed = json;
  for (const char* words : {R"("metadata":{"format":"scaletrain"})", R"({"name":"layer.0.bias","dtype":"F32","shape":[)", R"("foreign":0)"})
    EXPECT_NE(listed.find(words), std::string_view::npos) << words << " | " << listed;
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_weights_inspect("/no/such/weights", &json), {"/no/such/weights"}));
  auto options = filled(st_read_options_init);
  const char* const names[] = {"*.bias"};
  options.name_count = 1;
  options.names = names;
  auto report = filled(st_read_report_init);
  ASSERT_TRUE(works(st_model_read_file(model, path.c_str(), &options, &report)));
  EXPECT_EQ(report.read, 2);
  EXPECT_EQ(report.unexpected_count, 0);
}

TEST_F(Model, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_write_file(model, "", nullptr), {"path is empty"}));
  const st_status status = st_model_write_file(model, "/no/such/folder/w.safetensors", nullptr);
  EXPECT_TRUE(status == ST_IO || status == ST_NOT_FOUND) << status;
  EXPECT_NE(std::strstr(st_last_error(), "/no/such/folder"), nullptr) << st_last_error();
}

}  // namespace

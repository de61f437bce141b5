#include "small_run.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace st::test {

const char* const kSmallGpt = R"({"layers": 2, "width": 16, "heads": 2, "context": 8})";

std::string file_of(const std::string& name, const std::string& bytes) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("scaletrain_capi_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::string path = (folder / name).string();
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string text_file(const std::string& name, int64_t bytes) {
  static const char* const kWords[] = {"the ", "runtime ", "trains ", "a ", "small ", "model ", "step ", "by ", "step.\n"};
  std::string text;
  uint32_t state = 7;
  while (static_cast<int64_t>(text.size()) < bytes) text += kWords[((state = state * 1664525u + 1013904223u) >> 16) % 9];
  text.resize(static_cast<size_t>(bytes));
  return file_of(name, text);
}

SmallRun::SmallRun(const std::string& text, const st_context_options* options, const char* recipe_json, const char* gpt_json) {
  EXPECT_TRUE(works(st_context_create(options, context.out())));
  EXPECT_TRUE(works(st_model_builtin(context, "gpt", gpt_json, 1, model.out())));
  EXPECT_TRUE(works(st_recipe_create(recipe_json, recipe.out())));
  if (!text.empty()) {
    EXPECT_TRUE(works(st_data_files(context, text.c_str(), R"({"context": 8})", data.out())));
  }
  EXPECT_TRUE(works(st_trainer_create(model, recipe, data, trainer.out())));
}

namespace {

std::string digest_of(st_trainer* trainer) { return text_of(st_trainer_digest, trainer); }

st_value linear(st_graph* graph, const char* name, st_value x, int64_t in, int64_t out) {
  const int64_t shape[] = {in, out};
  st_value w = 0, b = 0, y = 0;
  EXPECT_TRUE(works(st_graph_scope(graph, name)));
  EXPECT_TRUE(works(st_graph_parameter(graph, "weight", 2, shape, ST_INIT_XAVIER, 1, &w)));
  EXPECT_TRUE(works(st_graph_parameter(graph, "bias", 1, shape + 1, ST_INIT_ZEROS, 0, &b)));
  const st_value product[] = {x, w};
  EXPECT_TRUE(works(st_graph_op(graph, "matmul", 2, product, nullptr, 1, &y)));
  const st_value sum[] = {y, b};
  EXPECT_TRUE(works(st_graph_op(graph, "add", 2, sum, nullptr, 1, &y)));
  EXPECT_TRUE(works(st_graph_scope_end(graph)));
  return y;
}

}  // namespace

std::string SmallRun::digest() const { return digest_of(trainer); }

TokenBatch::TokenBatch(int64_t rows, uint32_t seed) : dims_{rows, kSmallContext} {
  uint32_t state = seed;
  for (int64_t i = 0; i < rows * kSmallContext; ++i) {
    tokens.push_back(static_cast<int32_t>((state = state * 1664525u + 1013904223u) >> 24));
    targets.push_back((tokens.back() + 1) % 256);
  }
  const auto bytes = static_cast<int64_t>(tokens.size() * sizeof(int32_t));
  views_[0] = {"tokens", {ST_I32, 2, dims_, nullptr, tokens.data(), bytes}};
  views_[1] = {"targets", {ST_I32, 2, dims_, nullptr, targets.data(), bytes}};
}

st_status forward(st_trainer* trainer, int64_t n, const st_named_view* batch, const st_named_view** outputs) {
  int64_t count = 0;
  const st_named_view* not_looked_at = nullptr;
  return st_trainer_forward(trainer, n, batch, &count, outputs != nullptr ? outputs : &not_looked_at);
}

st_value sine_graph(st_graph* graph) {
  const int64_t column[] = {ST_BATCH, 1};
  st_value x = 0, y = 0, loss[2] = {0, 0};
  EXPECT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, column, &x)));
  EXPECT_TRUE(works(st_graph_input(graph, "y", ST_F32, 2, column, &y)));
  st_value hidden = linear(graph, "first", x, 1, 16);
  EXPECT_TRUE(works(st_graph_op(graph, "gelu", 1, &hidden, nullptr, 1, &hidden)));
  const st_value pair[] = {linear(graph, "second", hidden, 16, 1), y};
  EXPECT_TRUE(works(st_graph_op(graph, "mse", 2, pair, nullptr, 2, loss)));
  EXPECT_TRUE(works(st_graph_output(graph, "prediction", pair[0])));
  EXPECT_TRUE(works(st_graph_loss(graph, loss[0])));
  return loss[0];
}

SineRun::SineRun(const char* recipe_json) {
  EXPECT_TRUE(works(st_context_create(nullptr, context.out())));
  EXPECT_TRUE(works(st_graph_create(context, graph.out())));
  sine_graph(graph);
  EXPECT_TRUE(works(st_model_create(graph, 1, model.out())));
  EXPECT_TRUE(works(st_recipe_create(recipe_json, recipe.out())));
  EXPECT_TRUE(works(st_trainer_create(model, recipe, nullptr, trainer.out())));
  for (int i = 0; i < 8; ++i) {
    x.push_back(static_cast<float>(i) - 3.5F);
    y.push_back(std::sin(x.back()));
  }
  views[0] = {"x", {ST_F32, 2, dims, nullptr, x.data(), 32}};
  views[1] = {"y", {ST_F32, 2, dims, nullptr, y.data(), 32}};
}

std::string SineRun::digest() const { return digest_of(trainer); }

Written written(st_predictor* predictor, const st_generate_options& options, const std::vector<int32_t>& prompt) {
  const auto add = [](void* user, int32_t token) {
    static_cast<std::vector<int32_t>*>(user)->push_back(token);
    return st_status{ST_OK};
  };
  Written made{};
  made.status = st_predictor_generate(predictor, static_cast<int64_t>(prompt.size()), prompt.data(), &options, add, &made.tokens);
  return made;
}

Written written(st_predictor* predictor) {
  auto options = filled(st_generate_options_init);
  options.tokens = 12;
  return written(predictor, options);
}

std::string plan_of(st_trainer* trainer) { return text_of(st_trainer_plan, trainer); }

int64_t number_in(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\":");
  EXPECT_NE(at, std::string::npos) << key << " in " << json;
  return at == std::string::npos ? -1 : std::stoll(json.substr(at + key.size() + 3));
}

int instructions_of(st_trainer* trainer) { return static_cast<int>(number_in(plan_of(trainer), "instructions")); }

}  // namespace st::test

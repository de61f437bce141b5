#include "squared_text.h"

#include "square_and_mix.h"

namespace st::test {
namespace {

st_status forward(void* user, int32_t n, const st_view* in, int32_t m, const st_view* out) {
  square(nullptr, n, in, m, out);
  return static_cast<HostSquare*>(user)->forward();
}

st_status backward(void* user, int32_t n, const st_view* in, int32_t m, const st_view* out, const st_view* dy, const st_view* dx) {
  square_backward(nullptr, n, in, m, out, dy, dx);
  return static_cast<HostSquare*>(user)->backward();
}

/// tokens -> embedding -> square -> matmul: logits, and their cross entropy to targets.
void text_graph(st_graph* graph, bool by_host) {
  const int64_t row[] = {ST_BATCH, kSmallContext}, table[] = {256, 8}, head[] = {8, 256};
  st_value tokens = 0, targets = 0, v[2], loss = 0;
  EXPECT_TRUE(works(st_graph_input(graph, "tokens", ST_I32, 2, row, &tokens)));
  EXPECT_TRUE(works(st_graph_input(graph, "targets", ST_I32, 2, row, &targets)));
  EXPECT_TRUE(works(st_graph_parameter(graph, "table", 2, table, ST_INIT_NORMAL, 1, &v[0])));
  v[1] = tokens;
  EXPECT_TRUE(works(st_graph_op(graph, "embedding", 2, v, nullptr, 1, v)));
  v[1] = v[0];
  EXPECT_TRUE(works(st_graph_op(graph, by_host ? "square" : "mul", by_host ? 1 : 2, v, nullptr, 1, v)));
  EXPECT_TRUE(works(st_graph_parameter(graph, "head", 2, head, ST_INIT_NORMAL, 1, &v[1])));
  EXPECT_TRUE(works(st_graph_op(graph, "matmul", 2, v, nullptr, 1, v)));
  EXPECT_TRUE(works(st_graph_output(graph, "logits", v[0])));
  v[1] = targets;
  EXPECT_TRUE(works(st_graph_op(graph, "cross_entropy", 2, v, nullptr, 1, &loss)));
  EXPECT_TRUE(works(st_graph_loss(graph, loss)));
}

}  // namespace

SquaredText::SquaredText(HostSquare* host) {
  // Written once: data files are mapped, and another run may be reading this one.
  static const std::string file = text_file("squared_text.txt", 700);
  EXPECT_TRUE(works(st_context_create(nullptr, context.out())));
  const auto op = callbacks(forward, backward);
  if (host != nullptr) {
    EXPECT_TRUE(works(st_op_register(context, "square", &op, host)));
  }
  EXPECT_TRUE(works(st_graph_create(context, graph.out())));
  text_graph(graph, host != nullptr);
  EXPECT_TRUE(works(st_model_create(graph, 1, model.out())));
  EXPECT_TRUE(works(st_recipe_create(R"({"batch": 4, "warmup": 0})", recipe.out())));
  EXPECT_TRUE(works(st_data_files(context, file.c_str(), R"({"context": 8})", data.out())));
  EXPECT_TRUE(works(st_trainer_create(model, recipe, data, trainer.out())));
}

std::string SquaredText::answer(st_predictor* predictor, st_status* status) const {
  int32_t tokens[kSmallContext] = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> logits(kSmallContext * 256);
  const int64_t in_dims[] = {1, kSmallContext}, out_dims[] = {1, kSmallContext, 256};
  const auto bytes = static_cast<int64_t>(logits.size() * 4);
  const st_named_view in = {"tokens", {ST_I32, 2, in_dims, nullptr, tokens, sizeof tokens}};
  const st_named_view out = {"logits", {ST_F32, 3, out_dims, nullptr, logits.data(), bytes}};
  const st_status got = st_predictor_run(predictor, 1, &in, 1, &out);
  if (status != nullptr) {
    *status = got;
  } else {
    EXPECT_TRUE(works(got));
  }
  return {reinterpret_cast<const char*>(logits.data()), static_cast<size_t>(bytes)};
}

st_status SquaredText::evaluate(double* loss) const {
  auto evaluation = filled(st_evaluation_init);
  const st_status status = st_trainer_evaluate(trainer, data, &evaluation);
  *loss = evaluation.loss;
  return status;
}

std::string SquaredText::digest() const { return text_of(st_trainer_digest, trainer); }

}  // namespace st::test

// Graphs: leaves, ops, layers, and ops of the host.
#include "api_calls.h"

#include <vector>

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {
namespace {

st_value linear(st_graph* graph, const char* name, st_value x, const int64_t* dims) {
  st_value w = 0, b = 0, y = 0;
  st_graph_scope(graph, name);
  st_graph_parameter(graph, "weight", 2, dims, ST_INIT_XAVIER, 1, &w);
  st_graph_parameter(graph, "bias", 1, dims + 1, ST_INIT_ZEROS, 0, &b);
  const st_value product[] = {x, w};
  st_graph_op(graph, "matmul", 2, product, nullptr, 1, &y);
  const st_value sum[] = {y, b};
  st_graph_op(graph, "add", 2, sum, nullptr, 1, &y);
  st_graph_scope_end(graph);
  return y;
}

}  // namespace

void graph_op(World& world) {
  static const std::array<const char*, 24> kOps = {"add",        "mul",       "matmul",        "gelu",       "softmax", "mse",
                                                   "layer_norm", "sum",       "mean",          "split",      "concat",  "reshape",
                                                   "transpose",  "embedding", "cross_entropy", "slice",      "pad",     "host_op",
                                                   "cast",       "fill",      "where",         "no_such_op", "adamw",   "broadcast_to"};
  std::array<st_value, 4> inputs{}, made{};
  const int32_t n = world.bytes.next() % 4, m = 1 + world.bytes.next() % 3;
  for (st_value& input : inputs) input = value(world);
  const char* op = world.bytes.pick(kOps);
  st_graph* graph = world.handle(world.graphs);
  if (world.bytes.rarely(2)) {
    std::vector<st_attribute> attributes;
    static const std::array<const char*, 8> kNames = {"axis", "axes", "shape", "value", "epsilon", "approximate", "", nullptr};
    for (int i = 0, count = world.bytes.next() % 3; i < count; ++i)
      attributes.push_back({world.bytes.pick(kNames), world.bytes.next() % 7, world.bytes.next() % 5, world.number(), 0.5, world.dims(),
                            world.bytes.rarely(4) ? nullptr : world.name()});
    const auto count = static_cast<int32_t>(attributes.size());
    const st_status status = st_graph_apply(graph, op, n, inputs.data(), count, attributes.data(), m, made.data());
    return keep_value(world, "st_graph_apply", status, made[0]);
  }
  const int32_t stated = world.bytes.rarely(32) ? -1 : n;
  keep_value(world, "st_graph_op", st_graph_op(graph, op, stated, inputs.data(), json(world), m, made.data()), made[0]);
}

void graph_leaf(World& world) {
  st_value made = 0;
  st_graph* graph = world.handle(world.graphs);
  const char* name = world.name();
  const auto rank = static_cast<int32_t>(world.bytes.next() % 10) - (world.bytes.rarely(16) ? 2 : 0);
  const int64_t* dims = world.bytes.rarely(16) ? nullptr : world.dims();
  if (world.bytes.rarely(3))
    return keep_value(world, "st_graph_input", st_graph_input(graph, name, world.bytes.next() % 10, rank, dims, &made), made);
  if (world.bytes.rarely(3)) {
    const st_view view = world.view();
    return keep_value(world, "st_graph_parameter_values", st_graph_parameter_values(graph, name, &view, world.bytes.next() % 2, &made),
                      made);
  }
  keep_value(world, "st_graph_parameter", st_graph_parameter(graph, name, rank, dims, world.bytes.next() % 8 - 1, 0.1, &made), made);
}

void graph_layer(World& world) {
  struct Layer {
    const char* name;
    decltype(&st_layer_linear) make;
    const char* good;
  };
  static constexpr std::array<Layer, 6> kLayers = {{{"st_layer_linear", st_layer_linear, R"({"outputs": 3})"},
                                                    {"st_layer_embedding", st_layer_embedding, R"({"vocabulary": 16, "width": 4})"},
                                                    {"st_layer_norm", st_layer_norm, R"({"kind": "rms"})"},
                                                    {"st_layer_attention", st_layer_attention, R"({"heads": 1})"},
                                                    {"st_layer_mlp", st_layer_mlp, R"({"hidden": [4], "outputs": 2})"},
                                                    {"st_layer_dropout", st_layer_dropout, R"({"rate": 0.5})"}}};
  const Layer& layer = world.bytes.pick(kLayers);
  st_graph* graph = world.handle(world.graphs);
  st_value x = value(world), made = 0;
  if (world.bytes.rarely(2)) {  // a suitable value: of three dimensions, or tokens
    const bool tokens = layer.make == st_layer_embedding;
    CALL(st_graph_input, graph, world.name(), tokens ? ST_I32 : ST_F32, tokens ? 2 : 3, world.dims({ST_BATCH, 4, 8}), &x);
  }
  const char* options = world.bytes.rarely(2) ? layer.good : json(world);
  keep_value(world, layer.name, layer.make(graph, world.name(), x, options, &made), made);
}

void graph_use(World& world) {
  st_graph* graph = world.handle(world.graphs);
  const char* text = nullptr;
  const Calls calls = {
      [&] { CALL(st_graph_scope, graph, world.name()); },
      [&] { CALL(st_graph_scope_end, graph); },
      [&] { CALL(st_graph_output, graph, world.name(), value(world)); },
      [&] { CALL(st_graph_loss, graph, value(world)); },
      [&] { CALL(st_graph_text, graph, world.bytes.rarely() ? nullptr : &text); },
      [&] { CALL(st_graph_value, graph, value(world), FILLED(st_value_info_init)); },
      [&] {
        if (world.graphs.live.size() < 6) MAKE(st_graph_create, graphs, world.handle(world.contexts));
      },
  };
  world.bytes.choose(7, calls);
}

void op_register(World& world) {
  auto* callbacks = FILLED(st_op_callbacks_init);
  if (callbacks != nullptr) {
    callbacks->shape = world.bytes.rarely() ? nullptr : op_shape;
    callbacks->forward = world.bytes.rarely() ? nullptr : op_forward;
    callbacks->backward = world.bytes.rarely(4) ? nullptr : op_backward;
    if (world.bytes.rarely()) callbacks->outputs = static_cast<int32_t>(world.bytes.next()) - 2;
  }
  elsewhere().op_behaviour = world.bytes.next();
  CALL(st_op_register, world.handle(world.contexts), world.bytes.rarely(3) ? world.name() : "host_op", callbacks, nullptr);
}

void sine_graph(World& world, st_graph* graph) {
  st_value x = 0, y = 0, loss[2] = {0, 0};
  const int64_t* column = world.dims({ST_BATCH, 1});
  st_graph_input(graph, "x", ST_F32, 2, column, &x);
  st_graph_input(graph, "y", ST_F32, 2, column, &y);
  st_value hidden = linear(graph, "first", x, world.dims({1, 4}));
  st_graph_op(graph, "gelu", 1, &hidden, nullptr, 1, &hidden);
  const st_value pair[] = {linear(graph, "second", hidden, world.dims({4, 1})), y};
  st_graph_op(graph, "mse", 2, pair, nullptr, 2, loss);
  st_graph_output(graph, "prediction", pair[0]);
  st_graph_loss(graph, loss[0]);
  for (const st_value made : {x, y, hidden, pair[0], loss[0]}) world.values.push_back(made);
}

}  // namespace st::fuzz

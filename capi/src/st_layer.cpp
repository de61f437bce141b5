#include "graph_call.h"
#include "models/json_options.h"
#include "models/layers.h"

using namespace st;
using namespace st::capi;

namespace {

using Listed = std::vector<Option>;

/// A layer of `name` over `x`: its options read into `options`, where `listed` says, then its ops appended by `make`.
template <class Options, class Make>
st_status layer(st_graph* graph, const char* call, std::string_view what, const char* name, st_value x, const char* json, Options& options,
                const Listed& listed, st_value* y, const Make& make) {
  return build(graph, call, 1, y, [&](GraphObject& g, Builder& b) {
    const std::string own_name = name_given(name);
    const Value in = value_of(g, x);
    read_options(what, json == nullptr ? "" : json, listed);
    const size_t slots = g.program.slots.size();
    std::vector<Value> made = {make(b, own_name, in, options)};
    count_parameters(g, slots);
    return made;
  });
}

}  // namespace

st_status st_layer_linear(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  LinearOptions o;
  const Listed listed = {{"outputs", &o.outputs}, {"bias", &o.bias}, {"init", &o.init}, {"scale", &o.scale}};
  return layer(graph, "st_layer_linear", "linear", name, x, options, o, listed, y, linear_layer);
}

st_status st_layer_embedding(st_graph* graph, const char* name, st_value tokens, const char* options, st_value* y) {
  EmbeddingOptions o;
  const Listed listed = {{"vocabulary", &o.vocabulary}, {"width", &o.width}, {"scale", &o.scale}};
  return layer(graph, "st_layer_embedding", "embedding", name, tokens, options, o, listed, y, embedding_layer);
}

st_status st_layer_norm(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  NormOptions o;
  const Listed listed = {{"kind", &o.kind}, {"epsilon", &o.epsilon}};
  return layer(graph, "st_layer_norm", "norm", name, x, options, o, listed, y, norm_layer);
}

st_status st_layer_attention(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  AttentionOptions o;
  const Listed listed = {{"heads", &o.heads}, {"groups", &o.groups}, {"causal", &o.causal}, {"rope", &o.rope}, {"bias", &o.bias}};
  return layer(graph, "st_layer_attention", "attention", name, x, options, o, listed, y, attention_layer);
}

st_status st_layer_mlp(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  MlpLayerOptions o;
  const Listed listed = {{"hidden", &o.hidden}, {"outputs", &o.outputs}, {"activation", &o.activation}};
  return layer(graph, "st_layer_mlp", "mlp", name, x, options, o, listed, y, mlp_layer);
}

st_status st_layer_dropout(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  DropoutOptions o;
  return layer(graph, "st_layer_dropout", "dropout", name, x, options, o, {{"rate", &o.rate}}, y, dropout_layer);
}

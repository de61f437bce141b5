#include "graph_call.h"
#include "models/json_options.h"
#include "models/layers.h"

using namespace st;
using namespace st::capi;

namespace {

using Listed = std::vector<Option>;

/// A layer `name` over `x`: parses its options into the fields that `list` names, then `make` appends its ops.
template <class Options, class List, class Make>
st_status layer(st_graph* graph, const char* call, std::string_view what, const char* name, st_value x, const char* json, const List& list,
                st_value* y, const Make& make) {
  return build(graph, call, 1, y, [&](GraphObject& g, Builder& b) {
    const std::string own_name = name_given(name);
    const Value in = value_of(g, x);
    Options options;
    read_options(what, json == nullptr ? "" : json, list(options));
    const size_t slots = g.program.slots.size();
    std::vector<Value> made = {make(b, own_name, in, options)};
    count_parameters(g, slots);
    return made;
  });
}

}  // namespace

st_status st_layer_linear(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  const auto list = [](LinearOptions& o) {
    return Listed{{"outputs", &o.outputs}, {"bias", &o.bias}, {"init", &o.init}, {"scale", &o.scale}};
  };
  return layer<LinearOptions>(graph, "st_layer_linear", "linear", name, x, options, list, y, linear_layer);
}

st_status st_layer_embedding(st_graph* graph, const char* name, st_value tokens, const char* options, st_value* y) {
  const auto list = [](EmbeddingOptions& o) { return Listed{{"vocabulary", &o.vocabulary}, {"width", &o.width}, {"scale", &o.scale}}; };
  return layer<EmbeddingOptions>(graph, "st_layer_embedding", "embedding", name, tokens, options, list, y, embedding_layer);
}

st_status st_layer_norm(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  const auto list = [](NormOptions& o) { return Listed{{"kind", &o.kind}, {"epsilon", &o.epsilon}}; };
  return layer<NormOptions>(graph, "st_layer_norm", "norm", name, x, options, list, y, norm_layer);
}

st_status st_layer_attention(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  const auto list = [](AttentionOptions& o) {
    return Listed{{"heads", &o.heads}, {"groups", &o.groups}, {"causal", &o.causal}, {"rope", &o.rope}, {"bias", &o.bias}};
  };
  return layer<AttentionOptions>(graph, "st_layer_attention", "attention", name, x, options, list, y, attention_layer);
}

st_status st_layer_mlp(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  const auto list = [](MlpLayerOptions& o) {
    return Listed{{"hidden", &o.hidden}, {"outputs", &o.outputs}, {"activation", &o.activation}};
  };
  return layer<MlpLayerOptions>(graph, "st_layer_mlp", "mlp", name, x, options, list, y, mlp_layer);
}

st_status st_layer_dropout(st_graph* graph, const char* name, st_value x, const char* options, st_value* y) {
  const auto list = [](DropoutOptions& o) { return Listed{{"rate", &o.rate}}; };
  return layer<DropoutOptions>(graph, "st_layer_dropout", "dropout", name, x, options, list, y, dropout_layer);
}

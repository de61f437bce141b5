#include "models/builtin.h"

#include <functional>

#include "base/error.h"
#include "base/heap.h"
#include "models/gpt2_config.h"
#include "models/json_options.h"
#include "models/llama_config.h"

namespace st {
namespace {

struct Builtin {
  std::string name;
  std::function<Program(std::string_view json)> build;
};

const std::vector<Builtin>& table() {
  static const auto rows = once_for_the_process([] {
    return std::vector<Builtin>{
        {"gpt", [](auto json) { return build_gpt(gpt_options(json)); }},
        {"gpt2", [](auto json) { return build_gpt(read_gpt2_config(json).options); }},
        {"llama", [](auto json) { return build_llama(llama_options(json)); }},
        {"llama-hf", [](auto json) { return build_llama(read_llama_config(json).options); }},
        {"mlp", [](auto json) { return build_mlp(mlp_options(json)); }},
    };
  });
  return rows;
}

const Builtin& builtin_named(std::string_view name) {
  for (const Builtin& row : table())
    if (row.name == name) return row;
  fail(Code::invalid_argument, text("model: \"", name, "\" is unknown", suggestion(name, builtin_models())));
}

}  // namespace

GptOptions gpt_options(std::string_view json) {
  GptOptions o;
  read_options("gpt", json,
               {{"layers", &o.layers},
                {"width", &o.width},
                {"heads", &o.heads},
                {"context", &o.context},
                {"vocabulary", &o.vocabulary},
                {"activation", &o.activation},
                {"layer_norm_epsilon", &o.layer_norm_epsilon},
                {"scale_attn_weights", &o.scale_attn_weights},
                {"scale_attn_by_inverse_layer_idx", &o.scale_attn_by_inverse_layer_idx}});
  check_options(o);
  return o;
}

LlamaOptions llama_options(std::string_view json) {
  LlamaOptions o;
  read_options("llama", json,
               {{"layers", &o.layers},
                {"width", &o.width},
                {"heads", &o.heads},
                {"groups", &o.groups},
                {"context", &o.context},
                {"vocabulary", &o.vocabulary},
                {"ffn", &o.ffn},
                {"rope_base", &o.rope_base},
                {"rms_norm_epsilon", &o.rms_norm_epsilon},
                {"tied_embedding", &o.tied_embedding}});
  check_options(o);
  return o;
}

MlpOptions mlp_options(std::string_view json) {
  MlpOptions o;
  read_options("mlp", json,
               {{"inputs", &o.inputs}, {"hidden", &o.hidden}, {"outputs", &o.outputs}, {"activation", &o.activation}, {"loss", &o.loss}});
  check_options(o);
  return o;
}

const std::vector<std::string>& builtin_models() {
  static const auto names = once_for_the_process([] {
    std::vector<std::string> all;
    for (const Builtin& row : table()) all.push_back(row.name);
    return all;
  });
  return names;
}

std::vector<std::string> keys_not_taken(std::string_view model, std::string_view json) {
  if (model == "gpt2") return read_gpt2_config(json).not_taken;
  if (model == "llama-hf") return read_llama_config(json).not_taken;
  return {};
}

Program build_builtin(std::string_view model, std::string_view json) { return builtin_named(model).build(json); }

}  // namespace st

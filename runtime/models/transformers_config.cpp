#include "models/transformers_config.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace st {
namespace {

// Keys of every configuration that do not change the forward pass.
constexpr std::array<std::string_view, 22> kWithoutEffect = {"_name_or_path",
                                                             "architectures",
                                                             "bos_token_id",
                                                             "chunk_size_feed_forward",
                                                             "dtype",
                                                             "eos_token_id",
                                                             "finetuning_task",
                                                             "gradient_checkpointing",
                                                             "id2label",
                                                             "initializer_range",
                                                             "is_decoder",
                                                             "label2id",
                                                             "model_type",
                                                             "output_attentions",
                                                             "output_hidden_states",
                                                             "pad_token_id",
                                                             "problem_type",
                                                             "return_dict",
                                                             "task_specific_params",
                                                             "torch_dtype",
                                                             "transformers_version",
                                                             "use_cache"};
// No built-in model has these, as JSON.
constexpr std::array<WordPair, 4> kOnly = {
    {{"add_cross_attention", "false"}, {"is_encoder_decoder", "false"}, {"pruned_heads", "{}"}, {"quantization_config", "null"}}};

template <class Words>
bool has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

template <class Pairs>
const WordPair* pair_of(const Pairs& pairs, std::string_view word) {
  const auto found = std::ranges::find(pairs, word, &WordPair::first);
  return found == pairs.end() ? nullptr : &*found;
}

}  // namespace

TransformersConfig::TransformersConfig(const ConfigRules& rules, std::string_view json)
    : rules_(rules), config_(parse_json(json.empty() ? "{}" : json, text(rules.name, ": config.json"))) {
  check(config_.is(Json::Kind::object), rules_.name, ": config.json must be an object, got ", config_.dump().substr(0, 60));
  for (const std::span<const WordPair> pairs : {std::span<const WordPair>(kOnly), rules_.only})
    for (const auto& [key, only] : pairs)
      if (const Json* value = find(key); value != nullptr && value->dump() != only) refuse(key, *value, only);
}

std::vector<std::string> TransformersConfig::read(const std::vector<Option>& options) const {
  std::vector<std::string> not_taken;
  for (const auto& [given, value] : config_.members()) {
    const WordPair* alias = pair_of(rules_.aliases, given);
    const std::string key(alias == nullptr ? std::string_view(given) : alias->second);
    if (value.is(Json::Kind::null)) continue;
    if (std::ranges::find(options, key, &Option::name) != options.end()) {
      read_option(rules_.name, key, value, options);
    } else if (has(rules_.dropouts, key)) {
      if (value.is_number() && value.number() != 0) not_taken.push_back(text(key, " ", value.dump(), " (dropout is set in the recipe)"));
    } else if (!has(kWithoutEffect, key) && !has(rules_.without_effect, key) && pair_of(kOnly, key) == nullptr &&
               pair_of(rules_.only, key) == nullptr) {
      not_taken.push_back(key);
    }
  }
  return not_taken;
}

void TransformersConfig::require_size(std::string_view key, int64_t size, std::string_view what) const {
  const Json* value = find(key);
  if (value != nullptr && (!value->is(Json::Kind::whole) || value->whole() != size)) refuse(key, *value, text(what, ", ", size));
}

const Json* TransformersConfig::find(std::string_view key) const {
  const Json* value = config_.find(key);
  return value == nullptr || value->is(Json::Kind::null) ? nullptr : value;
}

void TransformersConfig::refuse(std::string_view key, const Json& value, std::string_view supported) const {
  fail(Code::invalid_argument,
       text(rules_.name, ": config.json has ", key, " ", value.dump(), "; the model \"", rules_.model, "\" supports only ", supported));
}

}  // namespace st

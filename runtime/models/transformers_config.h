// Reads a config.json of Hugging Face's transformers as options of a built-in model, by that architecture's rules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "models/json_options.h"

namespace st {

using WordPair = std::pair<std::string_view, std::string_view>;

/// Keys of an architecture's configuration class. Those that all configurations share need no mention.
struct ConfigRules {
  std::string_view name, model;                // the built-in models: "gpt2", and "gpt", which it configures
  std::span<const WordPair> aliases;           // other name, the class's own
  std::span<const std::string_view> dropouts;  // rates, which belong to the recipe
  std::span<const std::string_view>
      without_effect;              // that do not change the forward pass, or change only its rounding, or are read elsewhere
  std::span<const WordPair> only;  // the only value that the model supports, as JSON; null is accepted too
};

class TransformersConfig {
 public:
  /// Empty text has no keys. Throws invalid_argument for what is not an object, and, with key and value, for one that is not the only one
  /// supported. Borrows the rules.
  TransformersConfig(const ConfigRules& rules, std::string_view json);

  /// Sets the options that the file has. Returns the keys that have no effect here but would have in transformers: unknown keys, and
  /// "attn_pdrop 0.1 (dropout is set in the recipe)". Throws invalid_argument for a value of the wrong type.
  std::vector<std::string> read(const std::vector<Option>& options) const;
  /// Checks a size that follows from others, if the file has it; `what` says from which.
  void require_size(std::string_view key, int64_t size, std::string_view what) const;
  /// null: no such key, or null.
  const Json* find(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, const Json& value, std::string_view supported) const;

 private:
  const ConfigRules& rules_;
  Json config_;
};

}  // namespace st

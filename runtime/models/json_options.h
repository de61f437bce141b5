// Options of models and layers, read from a JSON object.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace st {

class Json;

/// A key and the variable that receives its value; the variable's present value is the default.
struct Option {
  std::string name;
  std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*> target;
};

/// Empty text keeps the defaults. Throws invalid_argument that begins with `what`: an unknown key (suggests the nearest), a value of the
/// wrong type. Whole numbers may be written as 128.0 or 1.28e2.
void read_options(std::string_view what, std::string_view json, const std::vector<Option>& options);

/// Reads one option; `name` must be in `options`. Throws invalid_argument for a value of the wrong type.
void read_option(std::string_view what, std::string_view name, const Json& value, const std::vector<Option>& options);

/// Throws invalid_argument if `word` is not in `known`: "mlp: loss \"mze\" is unknown; did you mean mse? There are: mse, cross_entropy".
void check_word(std::string_view what, std::string_view key, std::string_view word, const std::vector<std::string>& known);

/// "; did you mean layers? There are: layers, width"
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace st

#include "models/builtin.h"

#include <functional>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace st {
namespace {

/// Where the value of each key goes.
using Fields = std::vector<std::pair<std::string, std::function<void(const Json&)>>>;

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  const std::string near = nearest(word, known);
  return (near.empty() ? "; there are: " : "; did you mean " + near + "? There are: ") + all;
}

void read_options(std::string_view model, std::string_view json, const Fields& fields) {
  if (json.empty()) return;
  const Json options = parse_json(json, text(model, " options"));
  check(options.is_object(), model, ": options must be a JSON object, got ", json);
  for (const auto& [key, value] : options.items()) {
    bool known = false;
    for (const auto& [name, take] : fields) {
      if (name != key) continue;
      take(value);
      known = true;
    }
    if (known) continue;
    std::vector<std::string> names;
    for (const auto& field : fields) names.push_back(field.first);
    fail(Code::invalid_argument, text(model, ": unknown option ", key, suggestion(key, names)));
  }
}

int64_t whole_number(std::string_view what, const Json& value) {
  // 1e3 and 128.0 are whole numbers to the person who wrote them, and to languages whose only number is a double.
  if (value.is_number_float()) {
    const double real = value.get<double>();
    if (real >= -0x1p53 && real <= 0x1p53 && real == static_cast<double>(static_cast<int64_t>(real))) return static_cast<int64_t>(real);
  }
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  check(value.is_number_integer() && !too_large, what, " must be a whole number, got ", value.dump());
  return value.get<int64_t>();
}

auto integer(std::string what, int64_t& target) {
  return [what = std::move(what), &target](const Json& value) { target = whole_number(what, value); };
}

auto word(std::string what, std::string& target) {
  return [what = std::move(what), &target](const Json& value) {
    check(value.is_string(), what, " must be text, got ", value.dump());
    target = value.get<std::string>();
  };
}

auto integers(std::string what, std::vector<int64_t>& target) {
  return [what = std::move(what), &target](const Json& value) {
    check(value.is_array(), what, " must be a list of whole numbers, got ", value.dump());
    target.clear();
    for (const Json& item : value) target.push_back(whole_number(what, item));
  };
}

struct Builtin {
  std::string name;
  std::function<Program(std::string_view json)> build;
  std::function<int64_t(std::string_view json)> parameter_count;
};

const std::vector<Builtin>& table() {
  static const std::vector<Builtin> rows = {
      {"gpt", [](auto json) { return build_gpt(gpt_options(json)); }, [](auto json) { return parameter_count(gpt_options(json)); }},
      {"mlp", [](auto json) { return build_mlp(mlp_options(json)); }, [](auto json) { return parameter_count(mlp_options(json)); }},
  };
  return rows;
}

const Builtin& builtin_named(std::string_view name) {
  for (const Builtin& row : table())
    if (row.name == name) return row;
  fail(Code::invalid_argument, text("model: none is called ", name, suggestion(name, builtin_models())));
}

}  // namespace

GptOptions gpt_options(std::string_view json) {
  GptOptions o;
  read_options("gpt", json,
               {{"layers", integer("gpt: layers", o.layers)},
                {"width", integer("gpt: width", o.width)},
                {"heads", integer("gpt: heads", o.heads)},
                {"context", integer("gpt: context", o.context)},
                {"vocabulary", integer("gpt: vocabulary", o.vocabulary)}});
  check_options(o);
  return o;
}

MlpOptions mlp_options(std::string_view json) {
  MlpOptions o;
  read_options("mlp", json,
               {{"inputs", integer("mlp: inputs", o.inputs)},
                {"hidden", integers("mlp: hidden", o.hidden)},
                {"outputs", integer("mlp: outputs", o.outputs)},
                {"activation", word("mlp: activation", o.activation)},
                {"loss", word("mlp: loss", o.loss)}});
  check_options(o);
  return o;
}

const std::vector<std::string>& builtin_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Builtin& row : table()) all.push_back(row.name);
    return all;
  }();
  return names;
}

Program build_builtin(std::string_view model, std::string_view json) { return builtin_named(model).build(json); }

int64_t builtin_parameter_count(std::string_view model, std::string_view json) { return builtin_named(model).parameter_count(json); }

}  // namespace st

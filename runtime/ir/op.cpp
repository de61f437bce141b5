#include "ir/op.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/dtype.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/interval.h"

namespace st {
namespace {

/// A row of ops.def, unparsed.
struct Row {
  std::string_view name, inputs, outputs, attrs, shape_rule, layout_rule, gradient, help;
};

constexpr std::array<Row, kOps> kRows = {{
#define ST_OP(name, inputs, outputs, attrs, shape_rule, layout_rule, gradient, help) \
  {#name, inputs, outputs, attrs, #shape_rule, #layout_rule, #gradient, help},
#include "ir/ops.def"
#undef ST_OP
}};

std::vector<std::string> split(std::string_view line, char by) {
  std::vector<std::string> parts;
  while (!line.empty()) {
    const auto end = std::min(line.find(by), line.size());
    if (end > 0) parts.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return parts;
}

// A row that does not parse is a bug of the library; the first use of any op finds it.
[[noreturn]] void broken_row(const Row& row, std::string_view part) {
  fail(Code::internal, text("ops.def: row ", row.name, ": cannot read \"", part, "\""));
}

std::vector<OpInput> inputs_of(const Row& row) {
  std::vector<OpInput> inputs;
  for (auto& word : split(row.inputs, ' ')) {
    OpInput input{.name = word, .optional = word.back() == '?', .variadic = word.back() == '*'};
    if (input.optional || input.variadic) input.name.pop_back();
    const bool after = !inputs.empty() && (inputs.back().variadic || (inputs.back().optional && !input.optional));
    if (after) broken_row(row, word);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

template <class Number>
Number number_of(const Row& row, std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);  // ignores the host's locale, unlike strtod
  if (error != std::errc{} || end != word.data() + word.size()) broken_row(row, word);
  return number;
}

// The value of "=default" in the type that the row names; without it the type's empty value, which only carries the type.
AttrValue standard_of(const Row& row, std::string_view type, std::string_view standard) {
  const bool empty = standard.empty();
  if (type == "bool" && (empty || standard == "true" || standard == "false")) return standard == "true";
  if (type == "int") return empty ? int64_t{0} : number_of<int64_t>(row, standard);
  if (type == "real") return empty ? 0.0 : number_of<double>(row, standard);
  if (type == "word") return std::string(standard.substr(0, standard.find('|')));
  if (type == "ints") {
    Ints ints;
    for (const auto& word : split(standard, ',')) ints.push_back(number_of<int64_t>(row, word));
    return ints;
  }
  broken_row(row, type);
}

OpAttr attr_of(const Row& row, const std::string& whole) {
  const auto domain = std::min(whole.find_first_of("[("), whole.size());
  const std::string word = whole.substr(0, domain);
  const auto colon = word.find(':');
  if (colon == std::string::npos) broken_row(row, word);
  const auto equals = std::min(word.find('='), word.size());
  const auto standard = std::string_view(word).substr(std::min(equals + 1, word.size()));
  OpAttr attr{
      .name = word.substr(0, colon), .standard = {}, .required = equals == word.size(), .words = {}, .domain = whole.substr(domain)};
  attr.standard = standard_of(row, std::string_view(word).substr(colon + 1, equals - colon - 1), standard);
  if (standard.find('|') != std::string_view::npos) attr.words = split(standard, '|');
  return attr;
}

OpInfo info_of(const Row& row, Op op) {
  OpInfo info;
  info.op = op;
  info.name = row.name;
  info.help = row.help;
  info.inputs = inputs_of(row);
  if (row.outputs != "-") info.outputs = split(row.outputs, ' ');
  for (const auto& word : split(row.attrs, ' ')) info.attrs.push_back(attr_of(row, word));
  info.shape_rule = row.shape_rule;
  info.layout_rule = row.layout_rule;
  info.gradient = row.gradient;
  // The ops of these layout rules compute an output element from the same element of each operand of the output's type.
  constexpr std::array<std::string_view, 6> kElementwise = {"elementwise", "linear2", "product", "quotient", "scaled", "dropout"};
  for (const auto rule : kElementwise) info.elementwise |= row.layout_rule == rule;
  info.view = op == Op::load || op == Op::reshape || op == Op::tensor_share;
  info.exchange = op == Op::reduce_scatter || op == Op::all_gather || op == Op::rank_sums || op == Op::gather_squares || op == Op::await ||
                  op == Op::send || op == Op::receive || op == Op::tensor_gather || op == Op::tensor_scatter || op == Op::tensor_sum;
  return info;
}

std::array<OpInfo, kOps> all_infos() {
  std::array<OpInfo, kOps> infos;
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = info_of(kRows[i], static_cast<Op>(i));
  return infos;
}

constexpr std::array<DType, 8> kDTypes = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                          DType::i32, DType::i64, DType::u8,   DType::boolean};

std::string_view type_name_of(const AttrValue& value) {
  constexpr std::array<std::string_view, 5> kNames = {"bool", "int", "real", "ints", "word"};
  return kNames[value.index()];
}

// The given value in the row's type; an integer is accepted for a real.
AttrValue typed(const OpInfo& info, const OpAttr& attr, const AttrValue& given) {
  if (std::holds_alternative<double>(attr.standard) && std::holds_alternative<int64_t>(given))
    return static_cast<double>(std::get<int64_t>(given));
  check(given.index() == attr.standard.index(), info.name, ": attribute ", attr.name, " must be ", type_name_of(attr.standard), ", got ",
        type_name_of(given), " ", text_of(given));
  return given;
}

bool is_in_domain(const OpAttr& attr, const AttrValue& value) {
  if (attr.domain.empty()) return true;
  const auto* integer = std::get_if<int64_t>(&value);
  return is_inside(integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value), attr.domain);
}

void check_domain(const OpInfo& info, const OpAttr& attr, const AttrValue& value) {
  if (is_in_domain(attr, value)) return;
  const bool whole = std::holds_alternative<int64_t>(value);
  fail(Code::invalid_argument,
       text(info.name, ": ", attr.name, " must be in ", interval_text(attr.domain, whole), ", got ", text_of(value)));
}

void check_word(const OpInfo& info, const OpAttr& attr, const std::string& word) {
  if (attr.name == "dtype") {
    try {
      dtype_named(word);
    } catch (const Error& error) {
      throw Error(error.code(), text(info.name, ": ", error.message()));
    }
  }
  if (attr.words.empty()) return;
  std::string choices;
  for (const auto& choice : attr.words) {
    if (choice == word) return;
    choices += choices.empty() ? choice : ", " + choice;
  }
  fail(Code::invalid_argument, text(info.name, ": attribute ", attr.name, " must be one of ", choices, ", got \"", word, "\""));
}

void check_names(const OpInfo& info, const Attrs& given) {
  for (const auto& [name, value] : given.all()) {
    if (std::ranges::find(info.attrs, name, &OpAttr::name) != info.attrs.end()) continue;
    std::vector<std::string> known;
    for (const auto& attr : info.attrs) known.push_back(attr.name);
    const std::string all = known.empty() ? "it has none" : text("it has ", listed(known));
    fail(Code::invalid_argument, text(info.name, ": attribute \"", name, "\" is unknown", way_out(name, known, all)));
  }
}

}  // namespace

const OpInfo& info_of(Op op) {
  static const auto kInfos = once_for_the_process(all_infos);
  const auto index = static_cast<size_t>(op);
  check(index < kInfos.size(), "op: number ", static_cast<int32_t>(op), " must be in [0, ", kOps, ")");
  return kInfos[index];
}

std::string_view name_of(Op op) { return info_of(op).name; }

bool is_view(Op op) { return info_of(op).view; }
bool is_of_values(Op op) { return op == Op::tensor_gather || op == Op::tensor_scatter || op == Op::tensor_sum; }

Op op_named(std::string_view name) {
  std::vector<std::string> known;
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<Op>(i);
    known.emplace_back(kRows[i].name);
  }
  fail(Code::not_found, text("op: \"", name, "\" is unknown", way_out(name, known, text("`ops.def` lists all ", kOps))));
}

bool are_whole(Op op, const Attrs& given) {
  const auto is_attr = [](const std::pair<std::string, AttrValue>& one, const OpAttr& attr) {
    const auto& [name, value] = one;
    if (name != attr.name || value.index() != attr.standard.index() || !is_in_domain(attr, value)) return false;
    const auto* word = std::get_if<std::string>(&value);
    if (word == nullptr) return true;
    if (attr.name == "dtype") return std::ranges::any_of(kDTypes, [&](DType dtype) { return name_of(dtype) == *word; });
    return attr.words.empty() || std::ranges::find(attr.words, *word) != attr.words.end();
  };
  return std::ranges::equal(given.all(), info_of(op).attrs, is_attr);
}

Attrs make_attrs(Op op, const Attrs& given) {
  if (are_whole(op, given)) return given;
  const auto& info = info_of(op);
  check_names(info, given);
  Attrs::Values values;
  for (const auto& attr : info.attrs) {
    const AttrValue* value = given.find(attr.name);
    check(value != nullptr || !attr.required, info.name, ": attribute ", attr.name, " (", type_name_of(attr.standard), ") must be given");
    const AttrValue& whole = values.emplace_back(attr.name, value != nullptr ? typed(info, attr, *value) : attr.standard).second;
    if (value != nullptr) check_domain(info, attr, whole);
    if (const auto* word = std::get_if<std::string>(&whole)) check_word(info, attr, *word);
  }
  return Attrs(std::move(values));
}

}  // namespace st

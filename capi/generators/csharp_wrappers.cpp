#include <cmath>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "op_wrappers.h"

namespace st::capi {
namespace in_csharp {
namespace {

constexpr const char* kHead =
    "using System.Collections.Generic;\n"
    "\n"
    "namespace ScaleTrain {\n"
    "\n"
    "/// <summary>Every op as a method. Parameters: inputs, then attributes. Returns the first result; further ones are its\n"
    "/// <see cref=\"Value.More\"/>. Throws the graph's error if the call is wrong. null omits an optional input.</summary>\n"
    "/// <remarks>Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file.</remarks>\n"
    "public static class Ops {\n";
constexpr const char* kTail = "}\n\n}\n";

/// transpose_a: transposeA; a keyword of C# gets an @.
std::string camel(std::string_view name) {
  std::string made;
  bool begins = false;
  for (const char c : name) {
    if (c == '_') {
      begins = true;
      continue;
    }
    made += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = false;
  }
  for (const std::string_view word :
       {"base", "fixed", "params", "in", "out", "ref", "is", "as", "lock", "long", "float", "object", "string"})
    if (made == word) return "@" + made;
  return made;
}

std::string pascal(std::string_view name) {
  std::string made = camel(name);
  if (made.front() == '@') made.erase(0, 1);
  made.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(made.front())));
  return made;
}

std::string escaped(std::string_view help) {
  std::string made;
  for (const char c : help) made += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return made;
}

std::string type_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "DType";
  if (has_list(attr)) return "long[]";
  if (std::holds_alternative<std::string>(attr.standard)) return "string";
  if (std::holds_alternative<double>(attr.standard)) return "double";
  return std::holds_alternative<bool>(attr.standard) ? "bool" : "long";
}

std::string usual_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "DType." + pascal(std::get<std::string>(attr.standard));
  if (has_list(attr)) return "null";
  if (const auto* word = std::get_if<std::string>(&attr.standard)) return text('"', *word, '"');
  if (const auto* yes = std::get_if<bool>(&attr.standard)) return *yes ? "true" : "false";
  const auto* real = std::get_if<double>(&attr.standard);
  if (real == nullptr || !std::isinf(*real)) return text_of(attr.standard);
  return *real < 0 ? "double.NegativeInfinity" : "double.PositiveInfinity";
}

/// "Value x, long axis = -1": trailing parameters with a default may be omitted.
std::string signature_of(const OpInfo& op) {
  std::vector<std::pair<std::string, std::string>> all;  // second: the default, "" if required
  if (op.inputs.empty()) all.emplace_back("Graph graph", "");
  for (const OpInput& input : op.inputs)
    all.emplace_back((input.variadic ? "IReadOnlyList<Value> " : "Value ") + camel(input.name), input.optional ? "null" : "");
  for (const OpAttr& attr : op.attrs) all.emplace_back(type_of(attr) + " " + camel(attr.name), attr.required ? "" : usual_of(attr));
  size_t needed = all.size();
  while (needed > 0 && !all[needed - 1].second.empty()) --needed;
  std::string list;
  for (size_t i = 0; i < all.size(); ++i)
    list += text(i == 0 ? "" : ", ", all[i].first, i < needed ? std::string() : " = " + all[i].second);
  return list;
}

std::string notes_of(const OpInfo& op) {
  std::string notes;
  for (const OpAttr& attr : op.attrs)
    for (const std::string& word : attr.words) notes += text(&word == &attr.words.front() ? "; " + camel(attr.name) + ": " : "|", word);
  for (size_t i = 1; i < op.outputs.size(); ++i) notes += text(i == 1 ? "; more: " : ", ", op.outputs[i]);
  return notes;
}

std::string wrapper_of(const OpInfo& op) {
  const bool variadic = takes_list(op);
  require(!variadic || op.inputs.size() == 1, Code::internal, "ops.def: ", op.name, ": inputs next to a list have no C# wrapper yet");
  std::string inputs, attributes, results = text(op.outputs.size());
  for (const OpInput& input : op.inputs) inputs += text(inputs.empty() ? "" : ", ", camel(input.name));
  inputs = variadic ? inputs : inputs.empty() ? "new Value[0]" : "new[] { " + inputs + " }";
  for (const OpAttr& attr : op.attrs) {
    if (gives_list(op) && has_list(attr)) results = text("Handle.Given(", camel(attr.name), ", \"", attr.name, "\").Length");
    attributes += text(", \"", attr.name, "\", ", has_list(attr) ? text(camel(attr.name), " ?? new long[0]") : camel(attr.name));
  }
  const std::string call =
      text("Graph.Made(", op.inputs.empty() ? "graph" : "null", ", \"", op.name, "\", ", inputs, ", ", results, attributes, ")");
  return text("\n  /// <summary>", escaped(op.help), escaped(notes_of(op)), "</summary>\n  public static ",
              gives_list(op) ? "Value[] " : "Value ", pascal(op.name), "(", signature_of(op), ") {\n    return ", call,
              gives_list(op) ? "" : "[0]", ";\n  }\n");
}

}  // namespace
}  // namespace in_csharp

std::string csharp_wrappers() { return in_csharp::kHead + each_wrapper(in_csharp::wrapper_of) + in_csharp::kTail; }

}  // namespace st::capi

#include <cmath>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "op_wrappers.h"

namespace st::capi {
namespace in_cpp {
namespace {

constexpr const char* kHead =
    "// Every op as a typed function in namespace scaletrain::ops. Parameters: inputs, attributes, then pointers for further results.\n"
    "// Throws the graph's error if the call is wrong. Value() omits an optional input.\n"
    "// Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file.\n"
    "#pragma once\n"
    "\n"
    "#include <scaletrain/ops.h>\n"
    "\n"
    "#include <limits>\n"
    "#include <scaletrain/graph.hpp>\n"
    "#include <string>\n"
    "#include <vector>\n"
    "\n"
    "// clang-format off\n"
    "namespace scaletrain {\n"
    "namespace ops {\n";
constexpr const char* kTail =
    "\n"
    "}  // namespace ops\n"
    "\n"
    "using ops::matmul;  // found by argument-dependent lookup, like the operators\n"
    "\n"
    "}  // namespace scaletrain\n"
    "// clang-format on\n";

std::string type_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "DType ";
  if (has_list(attr)) return "const std::vector<int64_t>& ";
  if (std::holds_alternative<std::string>(attr.standard)) return "const std::string& ";
  if (std::holds_alternative<double>(attr.standard)) return "double ";
  return std::holds_alternative<bool>(attr.standard) ? "bool " : "int64_t ";
}

std::string usual_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "DType::" + std::get<std::string>(attr.standard);
  if (has_list(attr)) return "{}";
  if (const auto* word = std::get_if<std::string>(&attr.standard)) return text('"', *word, '"');
  const auto* real = std::get_if<double>(&attr.standard);
  if (real == nullptr || !std::isinf(*real)) return text_of(attr.standard);
  return text(*real < 0 ? "-" : "", "std::numeric_limits<double>::infinity()");
}

/// An attribute in the form that the C wrapper takes.
std::string given(const OpAttr& attr) {
  if (is_dtype(attr)) return text("static_cast<st_dtype>(", attr.name, ")");
  if (has_list(attr)) return text("static_cast<int32_t>(", attr.name, ".size()), ", attr.name, ".data()");
  if (std::holds_alternative<std::string>(attr.standard)) return attr.name + ".c_str()";
  return std::holds_alternative<bool>(attr.standard) ? attr.name + " ? 1 : 0" : attr.name;
}

struct Parameter {
  std::string declared, usual;  // usual "": required
};

std::vector<Parameter> parameters_of(const OpInfo& op) {
  std::vector<Parameter> all;
  if (op.inputs.empty()) all.push_back({"const Graph& graph", ""});
  for (const OpInput& input : op.inputs)
    all.push_back({(input.variadic ? "const std::vector<Value>& " : "const Value& ") + input.name, input.optional ? "Value()" : ""});
  for (const OpAttr& attr : op.attrs) all.push_back({type_of(attr) + attr.name, attr.required ? "" : usual_of(attr)});
  for (size_t i = 1; i < op.outputs.size(); ++i) all.push_back({"Value* " + op.outputs[i], "nullptr"});
  return all;
}

/// "const Value& x, int64_t axis = -1": trailing parameters with a default may be omitted.
std::string signature_of(const OpInfo& op) {
  const auto all = parameters_of(op);
  size_t needed = all.size();
  while (needed > 0 && !all[needed - 1].usual.empty()) --needed;
  std::string list;
  for (size_t i = 0; i < all.size(); ++i)
    list += text(i == 0 ? "" : ", ", all[i].declared, i < needed ? std::string() : " = " + all[i].usual);
  return list;
}

std::string notes_of(const OpInfo& op) {
  std::string notes;
  for (const OpInput& input : op.inputs)
    if (input.optional) notes += text("; ", input.name, " optional");
  for (const OpAttr& attr : op.attrs)
    for (const std::string& word : attr.words) notes += text(&word == &attr.words.front() ? "; " + attr.name + ": " : "|", word);
  return notes;
}

/// The C wrapper's arguments after the graph. The graph is the first input's; the other inputs must belong to it.
std::string arguments_of(const OpInfo& op) {
  std::string list;
  for (const OpInput& input : op.inputs) {
    const std::string graph = op.inputs.front().name + ".graph()";
    list += input.variadic                 ? ", static_cast<int32_t>(ids.size()), ids.data()"
            : input.optional               ? text(", detail::id_or_none(", input.name, ", ", graph, ")")
            : &input == &op.inputs.front() ? text(", ", input.name, ".id()")
                                           : text(", ", input.name, ".id_in(", graph, ")");
  }
  for (const OpAttr& attr : op.attrs) list += ", " + given(attr);
  for (size_t i = 1; i < op.outputs.size(); ++i) list += text(", &ids[", i - 1, "]");
  return list;
}

/// As many results as its list has elements: split's sizes.
std::string list_wrapper_of(const OpInfo& op) {
  const OpAttr* list = nullptr;
  for (const OpAttr& attr : op.attrs)
    if (has_list(attr)) list = &attr;
  require(list != nullptr && !takes_list(op) && !op.inputs.empty(), Code::internal, "ops.def: ", op.name,
          ": its number of results is unknown, so it has no C++ wrapper yet");
  const std::string& x = op.inputs.front().name;
  return text("inline std::vector<Value> ", op.name, "(", signature_of(op), ") {\n  std::vector<st_value> ids(", list->name, ".size());\n",
              "  const st_value first = st_op_", op.name, "(", x, ".graph()", arguments_of(op),
              ", static_cast<int32_t>(ids.size()), ids.data());\n", "  std::vector<Value> values = {", x, ".made(first)};\n",
              "  for (size_t i = 1; i < ids.size(); ++i) values.push_back(", x, ".made(ids[i]));\n  return values;\n}\n");
}

std::string wrapper_of(const OpInfo& op) {
  const std::string comment = text("\n/// ", op.help, notes_of(op), "\n");
  if (gives_list(op)) return comment + list_wrapper_of(op);
  std::string first, body;
  if (op.inputs.empty()) {
    first = "graph.made(";
  } else if (takes_list(op)) {
    first = "detail::first_of(" + op.inputs.front().name + ").made(";
    body = text("  const std::vector<st_value> ids = detail::ids_of(", op.inputs.front().name, ", detail::first_of(",
                op.inputs.front().name, ").graph());\n");
  } else {
    first = op.inputs.front().name + ".made(";
  }
  const std::string graph = op.inputs.empty() ? "graph.get()" : first.substr(0, first.size() - 6) + ".graph()";
  const std::string call = text(first, "st_op_", op.name, "(", graph, arguments_of(op), "))");
  if (op.outputs.size() == 1)
    return text(comment, "inline Value ", op.name, "(", signature_of(op), ") {\n", body, "  return ", call, ";\n}\n");

  require(!op.inputs.empty() && !takes_list(op), Code::internal, "ops.def: ", op.name, ": its further results have no C++ wrapper yet");
  body += text("  st_value ids[", op.outputs.size() - 1, "] = {0};\n  const Value value = ", call, ";\n");
  for (size_t i = 1; i < op.outputs.size(); ++i)
    body += text("  if (", op.outputs[i], " != nullptr) *", op.outputs[i], " = ", first, "ids[", i - 1, "]);\n");
  return text(comment, "inline Value ", op.name, "(", signature_of(op), ") {\n", body, "  return value;\n}\n");
}

}  // namespace
}  // namespace in_cpp

std::string cpp_wrappers() { return in_cpp::kHead + each_wrapper(in_cpp::wrapper_of) + in_cpp::kTail; }

}  // namespace st::capi

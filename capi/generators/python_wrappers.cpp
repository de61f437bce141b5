#include <cmath>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "op_wrappers.h"

namespace st::capi {
namespace in_python {
namespace {

constexpr const char* kHead =
    "\"\"\"Every op as a function. Parameters: inputs, then attributes. Returns the first result; further ones are its `more`. Raises the\n"
    "graph's error if the call is wrong.\n"
    "\n"
    "Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file.\n"
    "\"\"\"\n"
    "\n"
    "# ruff: noqa\n"
    "from __future__ import annotations\n"
    "\n"
    "import math\n"
    "from typing import Sequence\n"
    "\n"
    "from .arrays import number_of\n"
    "from .graph import Graph, Value\n";

std::string type_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "object";
  if (has_list(attr)) return "Sequence[int]";
  if (std::holds_alternative<std::string>(attr.standard)) return "str";
  if (std::holds_alternative<double>(attr.standard)) return "float";
  return std::holds_alternative<bool>(attr.standard) ? "bool" : "int";
}

std::string usual_of(const OpAttr& attr) {
  if (has_list(attr)) return "()";
  if (const auto* word = std::get_if<std::string>(&attr.standard)) return text('"', *word, '"');
  if (const auto* yes = std::get_if<bool>(&attr.standard)) return *yes ? "True" : "False";
  const auto* real = std::get_if<double>(&attr.standard);
  if (real == nullptr || !std::isinf(*real)) return text_of(attr.standard);
  return text(*real < 0 ? "-" : "", "math.inf");
}

/// An attribute in the form that Graph.op takes.
std::string given(const OpAttr& attr) {
  if (is_dtype(attr)) return text(attr.name, "=number_of(", attr.name, ")");
  if (has_list(attr)) return text(attr.name, "=list(", attr.name, ")");
  if (std::holds_alternative<double>(attr.standard)) return text(attr.name, "=float(", attr.name, ")");
  return text(attr.name, "=", attr.name);
}

/// "x: Value, axis: int = -1": trailing parameters with a default may be omitted.
std::string signature_of(const OpInfo& op) {
  std::string inputs = op.inputs.empty() ? "graph: Graph" : "", attributes;
  const auto add = [](std::string& list, const std::string& one) { list += (list.empty() ? "" : ", ") + one; };
  for (const OpInput& input : op.inputs)
    add(inputs, text(input.name, ": ", input.variadic ? "Sequence[Value]" : "Value", input.optional ? " | None = None" : ""));
  for (const OpAttr& attr : op.attrs)
    add(attributes, text(attr.name, ": ", type_of(attr), attr.required ? std::string() : " = " + usual_of(attr)));
  if (attributes.empty()) return inputs;
  return text(inputs, ", *, ", attributes);
}

std::string notes_of(const OpInfo& op) {
  std::string notes;
  for (const OpAttr& attr : op.attrs)
    for (const std::string& word : attr.words) notes += text(&word == &attr.words.front() ? "; " + attr.name + ": " : "|", word);
  for (size_t i = 1; i < op.outputs.size(); ++i) notes += text(i == 1 ? "; more: " : ", ", op.outputs[i]);
  return notes;
}

std::string wrapper_of(const OpInfo& op) {
  const bool variadic = takes_list(op);
  require(!variadic || op.inputs.size() == 1, Code::internal, "ops.def: ", op.name, ": inputs next to a list have no Python wrapper yet");
  std::string graph = "graph", call;
  if (!op.inputs.empty()) graph = op.inputs.front().name + (variadic ? "[0].graph" : ".graph");
  for (const OpInput& input : op.inputs) call += text(", ", input.variadic ? "*" : "", input.name);
  std::string results, values = "Value";
  if (op.outputs.size() > 1) results = text(", results=", op.outputs.size());
  for (const OpAttr& attr : op.attrs) {
    if (gives_list(op) && has_list(attr)) results = text(", results=len(", attr.name, ")");
    call += ", " + given(attr);
  }
  std::string made = text(graph, ".op(\"", op.name, "\"", call, results, ")");
  if (gives_list(op)) {
    values = "tuple[Value, ...]";
    made = text("first = ", made, "\n    return (first, *first.more)");
  } else {
    made = "return " + made;
  }
  return text("\n\ndef ", op.name, "(", signature_of(op), ") -> ", values, ":\n    \"\"\"", op.help, notes_of(op), "\"\"\"\n    ", made,
              "\n");
}

}  // namespace
}  // namespace in_python

std::string python_wrappers() { return in_python::kHead + each_wrapper(in_python::wrapper_of); }

}  // namespace st::capi

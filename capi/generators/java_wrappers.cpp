#include <algorithm>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "op_wrappers.h"

namespace st::capi {
namespace in_java {
namespace {

constexpr const char* kHead =
    "package org.scaletrain;\n"
    "\n"
    "import java.util.ArrayList;\n"
    "import java.util.Arrays;\n"
    "import java.util.LinkedHashMap;\n"
    "import java.util.List;\n"
    "import java.util.Map;\n"
    "\n"
    "/**\n"
    " * Every op as a method. Parameters: inputs, then attributes; all attributes may be omitted together if each has a default. Returns\n"
    " * the first result; further ones are its {@link Value#more}. An optional input may be null. Throws the graph's error if the call is\n"
    " * wrong.\n"
    " *\n"
    " * <p>Generated from {@code runtime/ir/ops.def} by {@code capi/generators/ops_header.cpp}: change the row, not this file.\n"
    " */\n"
    "public final class Ops {\n"
    "  private Ops() {}\n"
    "\n"
    "  /** attributes: alternating names and values. */\n"
    "  private static Value op(Graph graph, String name, int results, List<Value> inputs, Object... attributes) {\n"
    "    Map<String, Object> all = new LinkedHashMap<>();\n"
    "    for (int i = 0; i < attributes.length; i += 2) all.put((String) attributes[i], attributes[i + 1]);\n"
    "    return graph.op(name, inputs, all, results);\n"
    "  }\n"
    "\n"
    "  private static Value op(String name, int results, List<Value> inputs, Object... attributes) {\n"
    "    return op(Graph.of(inputs), name, results, inputs, attributes);\n"
    "  }\n";

constexpr size_t kColumns = 130;

/// "keep_dims" becomes keepDims.
std::string camel(std::string_view name) {
  std::string made;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '_') {
      ++i;
      made += static_cast<char>(name[i] - 'a' + 'A');
    } else {
      made += name[i];
    }
  }
  return made;
}

std::string type_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "DType";
  if (has_list(attr)) return "long[]";
  if (std::holds_alternative<std::string>(attr.standard)) return "String";
  if (std::holds_alternative<double>(attr.standard)) return "double";
  return std::holds_alternative<bool>(attr.standard) ? "boolean" : "long";
}

/// Escapes text for a Javadoc comment.
std::string commented(std::string_view words) {
  std::string made;
  for (const char c : words) made += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return made;
}

std::string usual_of(const OpAttr& attr) {
  if (has_list(attr)) return "none";
  if (const auto* word = std::get_if<std::string>(&attr.standard)) return *word;
  if (const auto* yes = std::get_if<bool>(&attr.standard)) return *yes ? "true" : "false";
  return is_dtype(attr) ? "F32" : text_of(attr.standard);
}

std::string notes_of(const OpInfo& op) {
  std::string notes;
  for (const OpAttr& attr : op.attrs) {
    for (const std::string& word : attr.words) notes += text(&word == &attr.words.front() ? "; " + camel(attr.name) + ": " : "|", word);
    if (!attr.required) notes += text("; ", camel(attr.name), ": default ", usual_of(attr));
  }
  for (size_t i = 1; i < op.outputs.size(); ++i) notes += text(i == 1 ? "; more: " : ", ", op.outputs[i]);
  return notes;
}

/// A Javadoc comment, wrapped to short lines.
std::string comment_of(const std::string& words) {
  std::string lines, line;
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      lines += "   * " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  if (lines.empty()) return text("  /** ", line, " */\n");
  return text("  /**\n", lines, "   * ", line, "\n   */\n");
}

/// One method with these inputs and attributes; omitted ones do not appear.
std::string method_of(const OpInfo& op, size_t inputs, bool with_attributes) {
  const bool variadic = takes_list(op);
  std::string arguments, given;
  const auto add = [](std::string& list, const std::string& one) { list += (list.empty() ? "" : ", ") + one; };
  if (op.inputs.empty()) add(arguments, "Graph graph");
  for (size_t i = 0; i < inputs; ++i) {
    add(arguments, text(op.inputs[i].variadic ? "List<Value> " : "Value ", camel(op.inputs[i].name)));
    add(given, camel(op.inputs[i].name));
  }
  std::string results = text(op.outputs.size()), attributes;
  for (const OpAttr& attr : op.attrs) {
    if (!with_attributes && !attr.required) continue;
    if (gives_list(op) && has_list(attr)) results = camel(attr.name) + ".length";
    attributes += text(", \"", attr.name, "\", ", camel(attr.name));
    add(arguments, text(type_of(attr), ' ', camel(attr.name)));
  }
  const std::string list = op.inputs.empty() ? "List.of()" : variadic ? given : text("Arrays.asList(", given, ")");
  const std::string made = text("op(", op.inputs.empty() ? "graph, " : "", "\"", op.name, "\", ", results, ", ", list, attributes, ")");
  const std::string name = camel(op.name);
  const std::string head = text("\n", comment_of(commented(op.help) + commented(notes_of(op)) + "."), "  public static ");
  if (!gives_list(op)) return text(head, "Value ", name, "(", arguments, ") {\n    return ", made, ";\n  }\n");
  return text(
      head, "List<Value> ", name, "(", arguments, ") {\n    Value first = ", made,
      ";\n    List<Value> all = new ArrayList<>(List.of(first));\n    all.addAll(first.more());\n    return List.copyOf(all);\n  }\n");
}

std::string wrapper_of(const OpInfo& op) {
  require(!takes_list(op) || op.inputs.size() == 1, Code::internal, "ops.def: ", op.name,
          ": inputs next to a list have no Java wrapper yet");
  size_t needed = 0;
  bool has_usual = false;
  for (const OpInput& input : op.inputs) needed += input.optional ? 0 : 1;
  for (const OpAttr& attr : op.attrs) has_usual = has_usual || !attr.required;
  std::string methods = method_of(op, needed, false);
  if (needed < op.inputs.size()) methods += method_of(op, op.inputs.size(), false);
  if (has_usual) methods += method_of(op, op.inputs.size(), true);
  return methods;
}

}  // namespace
}  // namespace in_java

std::string java_wrappers() { return in_java::kHead + each_wrapper(in_java::wrapper_of) + "}\n"; }

}  // namespace st::capi

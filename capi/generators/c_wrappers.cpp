#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "op_wrappers.h"

namespace st::capi {
namespace in_c {
namespace {

constexpr const char* kHead =
    "/* Every op as a typed function. Parameters: inputs, attributes, then pointers for further results (each may be NULL). Returns\n"
    " * the first result, or 0 if the call is wrong; st_model_create reports the first error. An optional input may be ST_NONE. A word\n"
    " * of NULL means the first one listed, a dtype of 0 the default. A list is a count and its elements.\n"
    " * Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file. */\n"
    "#ifndef SCALETRAIN_OPS_H\n"
    "#define SCALETRAIN_OPS_H\n"
    "\n"
    "#include <scaletrain/graph.h>\n"
    "\n"
    "/* clang-format off */\n"
    "ST_BEGIN\n";
constexpr const char* kTail = "\nST_END\n/* clang-format on */\n#endif\n";

std::string parameter_of(const OpAttr& attr) {
  if (is_dtype(attr)) return "st_dtype " + attr.name;
  if (has_list(attr)) return text("int32_t ", attr.name, "_count, const int64_t* ", attr.name);
  if (std::holds_alternative<std::string>(attr.standard)) return "const char* " + attr.name;
  if (std::holds_alternative<double>(attr.standard)) return "double " + attr.name;
  return (std::holds_alternative<bool>(attr.standard) ? "int32_t " : "int64_t ") + attr.name;
}

// The fields of st_attribute: name, type, count, integer, real, integers, word.
std::string initializer_of(const OpAttr& attr) {
  const auto fields = [&](std::string_view type, std::string_view count, std::string_view integer, std::string_view real,
                          std::string_view integers, std::string_view word) {
    return text("{\"", attr.name, "\", ST_ATTRIBUTE_", type, ", ", count, ", ", integer, ", ", real, ", ", integers, ", ", word, "}");
  };
  if (is_dtype(attr)) return fields("INT", "0", attr.name, "0", "ST_NULL", "ST_NULL");
  if (has_list(attr)) return fields("INTS", attr.name + "_count", "0", "0", attr.name, "ST_NULL");
  if (std::holds_alternative<std::string>(attr.standard)) return fields("WORD", "0", "0", "0", "ST_NULL", attr.name);
  if (std::holds_alternative<double>(attr.standard)) return fields("REAL", "0", "0", attr.name, "ST_NULL", "ST_NULL");
  return fields(std::holds_alternative<bool>(attr.standard) ? "BOOL" : "INT", "0", attr.name, "0", "ST_NULL", "ST_NULL");
}

std::string usual_of(const OpAttr& attr) {
  const bool* flag = std::get_if<bool>(&attr.standard);
  return flag == nullptr ? text_of(attr.standard) : *flag ? "1" : "0";
}

/// "; approximate: tanh|erf; axis: default -1": what the signature does not show.
std::string notes_of(const OpInfo& op) {
  std::string notes;
  for (const OpInput& input : op.inputs)
    if (input.optional) notes += text("; ", input.name, " optional");
  for (const OpAttr& attr : op.attrs) {
    std::string words;
    for (const std::string& word : attr.words) words += (words.empty() ? "" : "|") + word;
    if (!words.empty()) notes += text("; ", attr.name, ": ", words);
    const std::string usual = usual_of(attr);
    if (words.empty() && !attr.required && !has_list(attr) && usual != "0") notes += text("; ", attr.name, ": default ", usual);
  }
  return notes;
}

std::string wrapper_of(const OpInfo& op) {
  std::string parameters = "st_graph* graph", inputs, attributes;
  for (const OpInput& input : op.inputs) {
    parameters += input.variadic ? text(", int32_t ", input.name, "_count, const st_value* ", input.name) : ", st_value " + input.name;
    inputs += (inputs.empty() ? "" : ", ") + input.name;
  }
  for (const OpAttr& attr : op.attrs) {
    parameters += ", " + parameter_of(attr);
    attributes += (attributes.empty() ? "" : ",\n                                     ") + initializer_of(attr);
  }
  if (gives_list(op)) parameters += ", int32_t values_count, st_value* values";
  for (size_t i = 1; i < op.outputs.size(); ++i) parameters += ", st_value* " + op.outputs[i];

  require(!takes_list(op) || op.inputs.size() == 1, Code::internal, "ops.def: ", op.name,
          ": a list next to other inputs has no wrapper yet");
  std::string body;
  if (!op.inputs.empty() && !takes_list(op)) body += text("  const st_value inputs[] = {", inputs, "};\n");
  if (!attributes.empty()) body += text("  const st_attribute attributes[] = {", attributes, "};\n");
  const std::string room = text(op.outputs.size());
  if (!gives_list(op)) body += text("  st_value made[", room, "] = {0};\n");

  const std::string from = op.inputs.empty() ? "0, ST_NULL"
                           : takes_list(op)  ? text(inputs, "_count, ", inputs)
                                             : text(op.inputs.size(), ", inputs");
  const std::string with = attributes.empty() ? "0, ST_NULL" : text(op.attrs.size(), ", attributes");
  const std::string to = gives_list(op) ? "values_count, values" : room + ", made";
  body += text("  st_graph_apply(graph, \"", op.name, "\", ", from, ", ", with, ", ", to, ");\n");
  for (size_t i = 1; i < op.outputs.size(); ++i)
    body += text("  if (", op.outputs[i], " != ST_NULL) *", op.outputs[i], " = made[", i, "];\n");
  body += gives_list(op) ? "  return values_count > 0 && values != ST_NULL ? values[0] : 0;\n" : "  return made[0];\n";
  return text("\n/* ", op.help, notes_of(op), " */\nstatic inline st_value st_op_", op.name, "(", parameters, ") {\n", body, "}\n");
}

}  // namespace
}  // namespace in_c

std::string c_wrappers() { return in_c::kHead + each_wrapper(in_c::wrapper_of) + in_c::kTail; }

}  // namespace st::capi

#include "ir/print.h"

#include <algorithm>
#include <array>

#include "ir/cuts.h"

namespace st {

std::string text_of(const Type& type) {
  std::string out = text(name_of(type.dtype), "[");
  for (int32_t i = 0; i < type.shape.rank(); ++i) {
    const int64_t dim = type.shape[i];
    if (i > 0) out += ", ";
    if (dim >= 0) out += text(dim);
    if (dim < -1) out += text(uint64_t{0} - static_cast<uint64_t>(dim), "*");  // unsigned, since errors may show INT64_MIN
    if (dim < 0) out += "batch";
  }
  out += ']';
  const auto layout = text_of(type.layout);
  return layout.empty() ? out : text(out, "{", layout, "}");
}

std::string_view name_of(When when) {
  constexpr std::array<std::string_view, 4> kNames = {"every", "first", "rest", "last"};
  return kNames[static_cast<size_t>(when)];
}

namespace {

std::string text_of(Value value) { return value.output == 0 ? text("%", value.node) : text("%", value.node, ".", value.output); }

// The attributes that differ from the row's defaults: "{transpose_b, axes=[0]}".
std::string attrs_of(const Node& node) {
  std::string out;
  for (const auto& [name, value] : node.attrs.all()) {
    const auto& rows = info_of(node.op).attrs;
    const auto row = std::ranges::find(rows, name, &OpAttr::name);
    if (row != rows.end() && !row->required && row->standard == value) continue;
    if (name == "id") continue;  // of a host op: differs between processes, but a graph's text must not
    out += text(out.empty() ? " {" : ", ", name);
    if (!(value == AttrValue(true))) out += text("=", st::text_of(value));
  }
  return out.empty() ? out : out + "}";
}

std::string slot_name(const Program& program, SlotId slot) {
  const bool known = slot >= 0 && static_cast<size_t>(slot) < program.slots.size();
  return known ? program.slot(slot).name : text("slot ", slot, "?");  // the verifier prints broken nodes too
}

/// "part.w": this rank's shard of a slot that is whole.
std::string slot_name(const Program& program, const Graph& graph, const Node& node, SlotId slot) {
  const bool known = slot >= 0 && static_cast<size_t>(slot) < program.slots.size();
  return known && access_of(program, graph, node, slot).is_shard ? text("part.", program.slot(slot).name) : slot_name(program, slot);
}

// "%1, %2 -> w, w.m"; a load has only its slot.
std::string operands_of(const Program& program, const Graph& graph, const Node& node) {
  std::string out;
  for (const Value value : node.in) out += text(out.empty() ? "" : ", ", text_of(value));
  const auto& slots = node.op == Op::load ? node.reads : node.writes;
  for (size_t i = 0; i < slots.size(); ++i)
    out += text(i > 0 ? ", " : node.in.empty() ? "" : " -> ", slot_name(program, graph, node, slots[i]));
  return out;
}

std::string init_of(const Initializer& init) {
  constexpr std::array<std::string_view, 7> kNames = {"zeros", "ones", "normal", "uniform", "xavier", "kaiming", "values"};
  const auto name = kNames[static_cast<size_t>(init.kind)];
  const bool scaled = init.kind != Init::zeros && init.kind != Init::ones && init.kind != Init::values;
  return scaled ? text(name, "(", init.scale, ")") : std::string(name);
}

std::string line_of(const Program& program, const Slot& slot) {
  std::string out = text("    ", slot.name, " : ", own_type(program, slot));
  if (slot.role == Role::parameter) out += text("  ", init_of(slot.init), slot.trainable ? "" : "  frozen");
  if (slot.of >= 0) out += text("  of ", slot_name(program, slot.of));
  return out + "\n";
}

std::string slots_of(const Program& program) {
  std::string out = "slots\n";
  for (const Role role : {Role::parameter, Role::gradient, Role::optimizer, Role::stash, Role::input, Role::control, Role::report,
                          Role::packed, Role::working, Role::gathered}) {
    bool first = true;
    for (const auto& slot : program.slots) {
      if (slot.role != role) continue;
      if (first) out += text("  ", name_of(role), "\n");
      first = false;
      out += line_of(program, slot);
    }
  }
  return out;
}

std::string outputs_of(const Program& program) {
  std::string out;
  for (const auto& output : program.outputs)
    out += text("output ", output.name, " = ", text_of(output.value), output.count ? text(" / ", text_of(output.count)) : "", "\n");
  if (program.loss_sum) out += text("loss = ", text_of(program.loss_sum));
  if (program.loss_count) out += text(" / ", text_of(program.loss_count));
  return program.loss_sum ? out + "\n" : out;
}

}  // namespace

std::string print(const Program& program, const Section& section, int32_t node) {
  const Node& it = section.graph[node];
  std::string out = text("%", node, " = ", name_of(it.op), "(", operands_of(program, section.graph, it), ")", attrs_of(it));
  for (size_t i = 0; i < it.out.size(); ++i) out += text(i == 0 ? " : " : ", ", it.out[i]);
  if (it.when != When::every) out += text("  when ", name_of(it.when));
  if (it.region > 0 && static_cast<size_t>(it.region) < program.regions.size())
    out += text("  @", program.regions[static_cast<size_t>(it.region)].name);
  return out;
}

std::string print(const Program& program) {
  std::string out = "program";
  if (program.batch > 0) out += text("  batch ", program.batch);
  if (!(program.mesh == Mesh{}))
    out += text("  mesh data ", program.mesh.data, ", tensor ", program.mesh.tensor, ", stage ", program.mesh.stage);
  out += '\n';
  if (!program.slots.empty()) out += slots_of(program);
  for (const auto& section : program.sections) {
    out += text("section ", name_of(section.phase));
    if (section.stage > 0) out += text("  stage ", section.stage);
    if (section.chunk > 0) out += text("  chunk ", section.chunk);
    out += '\n';
    for (int32_t i = 0; i < section.graph.size(); ++i) out += text("  ", print(program, section, i), "\n");
  }
  return out + outputs_of(program);
}

}  // namespace st
